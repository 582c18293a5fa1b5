"""Measures every client side by side, and writes tables, JSON and charts. README.md explains each figure."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])

from rich.console import Console

from benchmarks.harness.charts import write_charts
from benchmarks.harness.clients import Client, all_clients
from benchmarks.harness.context import Context, Settings
from benchmarks.harness.driver import running_driver
from benchmarks.harness.machine import describe_machine
from benchmarks.harness.report import print_tables, print_targets
from benchmarks.harness.results import Row, Target
from benchmarks.suites import Suite, clients_of, load_suites, targets_of

RESULTS = Path(__file__).parent / "results"
PARTIAL = RESULTS / "partial"
"""Where the results of runs go that leave something out; git ignores them."""

_WIDTH = 150

QUICK = Settings(seconds=0.1, sizes=(32,), quick=True)


def parse(arguments: Sequence[str], suites: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description=__doc__)
    parser.add_argument("--suite", choices=suites, action="append", help="only this suite; may be given repeatedly")
    parser.add_argument("--clients", type=_names, help="only these, separated by commas: rust,pyaeron,aeron_async")
    parser.add_argument("--sizes", type=_numbers, help="payload bytes, separated by commas")
    parser.add_argument("--workers", type=_numbers, help="numbers of processes side by side, separated by commas")
    parser.add_argument("--time", type=float, metavar="SECONDS", help="the timed window of one repeat")
    parser.add_argument("--repeats", type=int, help="how often each figure is measured (3)")
    parser.add_argument("--quick", action="store_true", help="a suite in under two minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results of all suites into one file, too")
    return parser.parse_args(arguments)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def settings_of(options: argparse.Namespace) -> Settings:
    given = {
        "seconds": options.time,
        "repeats": options.repeats,
        "sizes": options.sizes,
        "workers": options.workers,
    }
    base = QUICK if options.quick else Settings()
    return replace(base, **{name: value for name, value in given.items() if value is not None})


def check_names(names: Iterable[str], clients: Iterable[Client], suites: Iterable[Suite]) -> None:
    known = [client.name for client in clients] + [name for suite in suites for name in clients_of(suite)]
    unknown = sorted(set(names).difference(known))
    if unknown:
        raise SystemExit(f"there is no client {', '.join(unknown)}; there are {', '.join(known)}")


def to_json(
    suite: str, description: dict[str, Any], settings: Settings, rows: Sequence[Row], targets: Sequence[Target]
) -> dict[str, Any]:
    return {
        "suite": suite,
        "machine": description,
        "seconds": settings.seconds,
        "repeats": settings.repeats,
        "rows": [row.to_json() for row in rows],
        "targets": [target.to_json() for target in targets],
    }


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _kept_targets(folder: Path, suites: Iterable[str]) -> list[Any]:
    """The targets of all suites whose results are there."""
    files = [folder / f"{name}.json" for name in suites]
    return [target for file in files if file.exists() for target in json.loads(file.read_text())["targets"]]


def main(arguments: Sequence[str]) -> int:
    """Returns the exit status: 1 where a peer failed or counted wrong."""
    suites = load_suites()
    options = parse(arguments, list(suites))
    settings = settings_of(options)
    chosen = [name for name in suites if name in (options.suite or suites)]
    is_whole = options.clients is None and settings == Settings()
    folder = RESULTS if is_whole else PARTIAL
    # A narrower table could not be read.
    console = Console(width=max(_WIDTH, Console().width))
    status = console.status("building the peers")
    with status, running_driver() as driver:
        clients = all_clients()
        check_names(options.clients or (), clients, suites.values())
        context = Context(settings, clients, options.clients, driver.aeron_dir, status.update)
        description = {
            **describe_machine(driver),
            "clients": {client.name: client.version or client.reason for client in context.clients},
        }
        results, all_targets = [], []
        for name in chosen:
            rows = suites[name].run(context)
            targets = targets_of(suites[name], rows)
            all_targets += targets
            print_tables(console, name, rows)
            results.append(to_json(name, description, settings, rows, targets))
            write_json(folder / f"{name}.json", results[-1])
            write_charts(folder, name, rows)
    print_targets(console, all_targets)
    write_json(folder / "targets.json", _kept_targets(folder, suites))
    if options.json:
        write_json(options.json, results)
    for failure in context.failures:
        console.print(f"[red]FAILED[/red] {failure}", highlight=False)
    return 1 if context.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

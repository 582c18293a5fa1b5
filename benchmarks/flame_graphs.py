"""Draws where the time of our message path goes: perf's samples of the benchmarks' peers, as flame graphs.

`make flame-graphs` writes one SVG a path into results/flame_graphs/. It needs perf and `cargo install inferno`.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from benchmarks.harness.clients import OURS, Client, all_clients
from benchmarks.harness.driver import running_driver
from benchmarks.peers.python import ways

OUTPUT = Path(__file__).parent / "results" / "flame_graphs"

PATHS = {
    "round_trip": ("latency", ways.MESSAGES),
    "lists": ("throughput", ways.LISTS),
    "columns": ("throughput", ways.COLUMNS),
    "blocks": ("throughput", ways.BLOCKS),
    "publish_and_async_for": ("throughput", ways.TASKS),
    "async_for": ("receive", ways.PAYLOADS),
}
"""What is drawn, by the name of the file: the mode and the way of our peer."""

_SECONDS = 3.0
_HERTZ = "499"
_STACK = "dwarf,16384"
_TASK = b"task_step_impl;"


def draw(client: Client, aeron_dir: Path, name: str) -> Path:
    """The flame graph of one path; the name of its file."""
    mode, way = PATHS[name]
    output = OUTPUT / f"{name}.svg"
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(folder) / "perf.data"
        record = ("perf", "record", "--quiet", "-F", _HERTZ, "--call-graph", _STACK, "-o", str(samples), "--")
        options = {"aeron_dir": aeron_dir, "seconds": _SECONDS, "size": 32, "tick": "none"}
        with client.start(mode, way=way, prefix=record, **options) as peer:
            peer.wait_ready()
            peer.go()
            peer.result()
        stacks = _piped(["perf", "script", "-i", str(samples)], None)
    # What a task of the loop does is the message path; starting the interpreter is not.
    folded = _piped(["inferno-collapse-perf"], stacks).splitlines(keepends=True)
    path = b"".join(stack for line in folded for _, found, stack in [line.rpartition(_TASK)] if found)
    title = f"{way} ({mode}), 32 B"
    output.write_bytes(_piped(["inferno-flamegraph", "--title", title, "--minwidth", "0.5", "--deterministic"], path))
    return output


def _piped(command: list[str], content: bytes | None) -> bytes:
    return subprocess.run(command, input=content, stdout=subprocess.PIPE, check=True).stdout


def main() -> None:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    client = next(client for client in all_clients() if client.name == OURS)
    with running_driver() as driver:
        for name in PATHS:
            print(draw(client, driver.aeron_dir, name).name)


if __name__ == "__main__":
    main()

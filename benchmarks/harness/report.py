"""Rows and targets as tables on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table as RichTable

from benchmarks.harness.clients import PYAERON, RUST
from benchmarks.harness.results import Column, Row, Table, Target, select
from benchmarks.harness.statistics import Spread, paired_ratios, spread_of

REFERENCES = (RUST, PYAERON)
"""The clients that every row is set in relation to."""

_SCALES = {
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")),
    "msg/s": ((1e6, "M/s"), (1e3, "k/s"), (1, "/s")),
    "msg": ((1e6, "M"), (1e3, "k"), (1, "")),
    "B": ((2**20, "MiB"), (2**10, "KiB"), (1, "B")),
    "ratio": ((1, ""),),
}


def readable(value: float, unit: str) -> str:
    """The value to three digits, in a unit that suits it."""
    factor, name = _scale(value, unit)
    return f"{_digits(value / factor)} {name}".strip()


def readable_spread(spread: Spread, unit: str) -> str:
    """The median, and how far the repeats lie apart."""
    factor, name = _scale(spread.median, unit)
    median, low, high = (_digits(value / factor) for value in (spread.median, spread.low, spread.high))
    return f"{f'{median} {name}'.strip()} [dim]({low} … {high})[/dim]"


def _scale(value: float, unit: str) -> tuple[float, str]:
    """What to divide by, and the name of the unit that this gives."""
    scales = _SCALES.get(unit, ((1, unit),))
    return next((scale for scale in scales if abs(value) >= scale[0]), scales[-1])


def _digits(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"


def tables_of(rows: Sequence[Row]) -> list[tuple[Table, list[Row]]]:
    """The rows of each table, in the order in which they were measured."""
    return [(table, list(members)) for table, members in groupby(rows, key=lambda row: row.table)]


def cases_of(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """The rows of each case of one table."""
    return [(case, list(members)) for case, members in groupby(rows, key=lambda row: row.case)]


def print_tables(console: Console, suite: str, rows: Sequence[Row]) -> None:
    """One table for each of the suite's."""
    for table, members in tables_of(rows):
        console.print(_rich_table(f"{suite}: {table.title}", table, members))
        if table.note:
            console.print(f"[dim]{table.note}[/dim]")
        console.print()


def _rich_table(title: str, table: Table, rows: Sequence[Row]) -> RichTable:
    grid = RichTable(title=title, title_justify="left", title_style="bold")
    for heading in ("", "client"):
        grid.add_column(heading, no_wrap=True)
    for column in table.columns:
        grid.add_column(column.name, justify="right")
    for reference in REFERENCES:
        grid.add_column(f"vs {reference}", justify="right")
    for case, members in cases_of(rows):
        for number, row in enumerate(members):
            heading = case if number == 0 else ""
            if row.reason:
                grid.add_row(heading, row.label, f"[yellow]{row.reason.splitlines()[0]}[/yellow]")
                continue
            figures = [_cell(column, row) for column in table.columns]
            grid.add_row(heading, row.label, *figures, *(_relation(row, reference, rows) for reference in REFERENCES))
        grid.add_section()
    return grid


def _cell(column: Column, row: Row) -> str:
    spread = spread_of(row.values[column.name])
    return readable_spread(spread, column.unit) if column is row.table.main else readable(spread.median, column.unit)


def _relation(row: Row, reference: str, rows: Sequence[Row]) -> str:
    other = select(rows, row.table, row.case, reference)
    if other is None or 0 in other.main:
        return ""
    return f"{spread_of(paired_ratios(row.main, other.main)).median:.2f}"


def print_targets(console: Console, targets: Sequence[Target]) -> None:
    """The summary at the end of a run."""
    if not targets:
        return
    grid = RichTable(title="targets", title_justify="left", title_style="bold")
    for heading in ("", "figure", "target", "measured", ""):
        grid.add_column(heading)
    verdicts = {True: "[green]met[/green]", False: "[red]not met[/red]", None: "reported"}
    for target in targets:
        bounds = [f"≥ {target.at_least:g}"] if target.at_least is not None else []
        bounds += [f"≤ {target.at_most:g}"] if target.at_most is not None else []
        measured = readable_spread(target.spread, target.unit) if target.spread else f"[yellow]{target.reason}[/yellow]"
        verdict = verdicts[target.is_met] if target.spread else "not measured"
        grid.add_row(target.name, target.statement, " and ".join(bounds), measured, verdict)
    console.print(grid)

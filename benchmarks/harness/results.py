"""What a run of a suite gives: rows of tables, and targets measured by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.harness.statistics import Spread, paired_ratios, spread_of


@dataclass(frozen=True)
class Column:
    """One figure of a table's rows."""

    name: str
    unit: str
    more_is_better: bool = False


@dataclass(frozen=True)
class Table:
    """Rows that may be compared with each other, case by case."""

    title: str
    columns: tuple[Column, ...]
    """The first is the one that ratios and charts are of."""
    note: str = ""
    """What is inside the timed window, and whatever else a reader must know."""

    @property
    def main(self) -> Column:
        return self.columns[0]


@dataclass(frozen=True)
class Row:
    """What one client did in one case of a table: the values of every repeat, or the reason why there are none."""

    table: Table
    case: str
    """Such as "32 B": rows of the same case are compared."""
    client: str
    way: str = ""
    """Which calls of the client, such as "offer / poll"."""
    values: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Of each column, one value a repeat; empty where `reason` says why."""
    reason: str = ""

    @property
    def label(self) -> str:
        return f"{self.client}: {self.way}" if self.way else self.client

    @property
    def main(self) -> tuple[float, ...]:
        """The values of the table's first column; empty where there are none."""
        return self.values.get(self.table.main.name, ())

    def to_json(self) -> dict[str, Any]:
        units = {column.name: column.unit for column in self.table.columns}
        figures = {
            name: {"unit": units[name], **spread_of(values).to_json(), "repeats": list(values)}
            for name, values in self.values.items()
        }
        row: dict[str, Any] = {"table": self.table.title, "case": self.case, "client": self.client}
        if self.way:
            row["way"] = self.way
        return {**row, **({"reason": self.reason} if self.reason else {"figures": figures})}


def select(rows: Iterable[Row], table: Table, case: str, client: str, *ways: str) -> Row | None:
    """The best row with these coordinates that has values, or None; without `ways`, of all ways."""
    found = [
        row
        for row in rows
        if (row.table, row.case, row.client) == (table, case, client) and row.way in (ways or (row.way,)) and row.main
    ]
    best = max if table.main.more_is_better else min
    return best(found, key=lambda row: spread_of(row.main).median, default=None)


@dataclass(frozen=True)
class Target:
    """A figure that was aimed at, and what it came to."""

    name: str
    """Such as "T1, 32 B"."""
    statement: str
    values: tuple[float, ...] = ()
    """One a repeat; empty where it could not be measured here."""
    at_least: float | None = None
    at_most: float | None = None
    reason: str = ""
    """Why it could not be measured."""
    unit: str = "ratio"

    @classmethod
    def ratio(
        cls,
        name: str,
        statement: str,
        ours: Row | None,
        theirs: Row | None,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> Target:
        """The ratio of two rows' main figures, repeat by repeat."""
        if ours is None or theirs is None:
            return cls(name, statement, (), at_least, at_most, "a row that it needs has no figures")
        return cls(name, statement, paired_ratios(ours.main, theirs.main), at_least, at_most)

    @property
    def spread(self) -> Spread | None:
        return spread_of(self.values) if self.values else None

    @property
    def is_met(self) -> bool | None:
        """None where it was not measured, or is only reported."""
        if self.spread is None or (self.at_least is None and self.at_most is None):
            return None
        median = self.spread.median
        return (self.at_least is None or median >= self.at_least) and (self.at_most is None or median <= self.at_most)

    def to_json(self) -> dict[str, Any]:
        bounds = {"at_least": self.at_least, "at_most": self.at_most}
        return {
            "name": self.name,
            "statement": self.statement,
            "unit": self.unit,
            **{name: bound for name, bound in bounds.items() if bound is not None},
            **(self.spread.to_json() if self.spread else {"reason": self.reason}),
            "met": self.is_met,
        }

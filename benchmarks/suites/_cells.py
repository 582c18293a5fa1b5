"""What suites share: a cell for each client and way, and the columns of rates and delays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from benchmarks.harness.clients import Client
from benchmarks.harness.context import Cell
from benchmarks.harness.results import Column
from benchmarks.harness.statistics import PERCENTILES

RATE = Column("throughput", "msg/s", more_is_better=True)
DELAYS = tuple(Column(name, "ns") for name in PERCENTILES)

Measure = Callable[[Client, str], Mapping[str, float]]
"""One repeat of a client in one of its ways."""


def cells(clients: Iterable[Client], mode: str, measure: Measure) -> list[Cell]:
    """A cell for each way in which each client can do `mode`."""
    return [
        Cell(client.name, way, partial(measure, client, way), client.reason)
        for client in clients
        for way in client.ways_of(mode)
    ]


def delays(result: Mapping[str, Any]) -> dict[str, float]:
    """The percentiles of a peer's result."""
    return {name: result[name] for name in PERCENTILES}


def rate(result: Mapping[str, Any]) -> float:
    """Messages a second."""
    return float(result["messages"] / result["seconds"])

"""Requests and replies between two processes, one in flight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.harness.clients import OURS, PYAERON, Client
from benchmarks.harness.context import Context
from benchmarks.harness.results import Row, Table, Target, select
from benchmarks.peers.python import ways
from benchmarks.suites._cells import DELAYS, cells
from benchmarks.suites._exchange import End, exchange

NAME = "rpc"

ROUND_TRIPS = Table(
    "request and reply",
    DELAYS,
    "Timed: stamp a request, offer it, poll until the reply is there, decode it. Both processes spin, except rpc.call. "
    "Of several pairs of processes, the figures are the means.",
)

_SIZE = 32


def run(context: Context) -> list[Row]:
    """Every number of pairs."""
    rows = []
    for count in context.settings.workers:
        rows += _measure(context, count)
    return rows


def targets(rows: Sequence[Row]) -> list[Target]:
    """T5."""
    case = _case(1)
    ours = select(rows, ROUND_TRIPS, case, OURS, ways.MESSAGES)
    theirs = select(rows, ROUND_TRIPS, case, PYAERON)
    statement = f"{ways.MESSAGES}: request and reply between two processes, p50 against pyaeron"
    return [Target.ratio("T5", statement, ours, theirs, at_most=0.9)]


def _case(count: int) -> str:
    return f"{_SIZE} B, {count} pair{'s' if count > 1 else ''}"


def _measure(context: Context, count: int) -> list[Row]:
    here = End(context.aeron_dir)

    def once(client: Client, way: str) -> Mapping[str, float]:
        return exchange(context, client, way, here, here, pairs=count, size=_SIZE)

    return context.measure(ROUND_TRIPS, _case(count), cells(context.clients, "rpc-client", once))

"""One process, one thread: batches there and back, and one message at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from benchmarks.harness.clients import OURS, PURE, PYAERON, RUST, Client
from benchmarks.harness.context import Cell, Context
from benchmarks.harness.results import Row, Table, Target, select
from benchmarks.harness.ticks import check_sums
from benchmarks.peers.python import ways
from benchmarks.suites._cells import DELAYS, RATE, cells, delays, rate

NAME = "single"

FULL = Table(
    "throughput, full tick work",
    (RATE,),
    "Timed: stamp and offer 1000 messages, receive and decode them, again and again.",
)
TRANSPORT = Table(
    "throughput, transport only",
    (RATE,),
    "Timed: offer 1000 payloads that are ready, receive them. The tick is outside.",
)
RECEIVING = Table(
    "receive side, full tick work",
    (RATE,),
    "Timed: receive and decode 1000 messages that are there already. Sending is outside.",
)
RECEIVING_TRANSPORT = Table(
    "receive side, transport only",
    (RATE,),
    "Timed: receive 1000 messages that are there already, each as a bytes object. Sending and the tick are outside.",
)
ROUND_TRIP = Table(
    "round trip, full tick work", DELAYS, "Timed: stamp one message, offer it, poll until it is back, decode it."
)
ROUND_TRIP_TRANSPORT = Table(
    "round trip, transport only", DELAYS, "Timed: offer one ready payload, poll until it is back. The tick is outside."
)
BESIDE = Table(
    "round trip beside a thread that computes",
    DELAYS,
    "As the round trip for transport only, alone and with a second thread of the same process in pure Python code.",
)

_MODES = (
    (FULL, "throughput", True),
    (TRANSPORT, "throughput", False),
    (RECEIVING, "receive", True),
    (RECEIVING_TRANSPORT, "receive", False),
    (ROUND_TRIP, "latency", True),
    (ROUND_TRIP_TRANSPORT, "latency", False),
)
"""Of each table, the mode of the peers and whether the tick is inside."""

# Of a quick run: the tables, and of each the cells, that the targets need.
_QUICK: dict[Table, Callable[[Cell], bool]] = {
    FULL: lambda cell: cell.client != PURE,
    TRANSPORT: lambda cell: cell.client != PURE and cell.way in ("", ways.LISTS),
    RECEIVING_TRANSPORT: lambda cell: True,
    ROUND_TRIP_TRANSPORT: lambda cell: True,
}

_ALONE, _TOGETHER = "alone", "beside a thread"

# Targets that relate a row of ours to one of another client, at each size: the bound of a size, or of all.
_RELATIONS = (
    ("T1", FULL, OURS, (ways.COLUMNS, ways.BLOCKS), RUST, "at_least", {32: 0.5, 256: 0.7, 1024: 0.8}),
    ("T2", FULL, OURS, (ways.LISTS,), PYAERON, "at_least", 1.5),
    ("T2b", TRANSPORT, OURS, (ways.LISTS,), PYAERON, "at_least", 2.5),
    ("T3", ROUND_TRIP_TRANSPORT, OURS, (ways.MESSAGES,), PYAERON, "at_most", 0.8),
    ("T4", RECEIVING_TRANSPORT, OURS, (ways.PAYLOADS,), PYAERON, "at_least", 1.0),
    ("T4 pure", RECEIVING_TRANSPORT, PURE, (ways.PAYLOADS,), PYAERON, "at_least", 0.6),
)


def run(context: Context) -> list[Row]:
    """Every table at every size."""
    rows = []
    for table, mode, is_stamped in _MODES:
        for size in context.settings.sizes:
            rows += _measure(context, table, mode, size, is_stamped)
    return rows + _measure_beside_thread(context, context.settings.sizes[0])


def targets(rows: Sequence[Row]) -> list[Target]:
    """T1 to T4 at each size, and T10."""
    cases = dict.fromkeys(row.case for row in rows if row.table == FULL)
    found = []
    for name, table, client, which, reference, kind, bound in _RELATIONS:
        for case in cases:
            limit = bound.get(int(case.split()[0])) if isinstance(bound, dict) else bound
            ours, theirs = select(rows, table, case, client, *which), select(rows, table, case, reference)
            statement = f"{' or '.join(which)}: {table.title}, {table.main.name} against {reference}"
            found.append(Target.ratio(f"{name}, {case}", statement, ours, theirs, **{kind: limit}))
    for client, way, limit in ((OURS, ways.MESSAGES, 2.0), (PYAERON, "", None)):
        for case in dict.fromkeys(row.case for row in rows if row.table == BESIDE):
            together, alone = (select(rows, BESIDE, case, client, _named(way, which)) for which in (_TOGETHER, _ALONE))
            statement = f"{client}: round trip, p50 beside a thread that computes against the same without"
            found.append(Target.ratio(f"T10, {client}", statement, together, alone, at_most=limit))
    return found


def _measure(context: Context, table: Table, mode: str, size: int, is_stamped: bool) -> list[Row]:
    def once(client: Client, way: str) -> Mapping[str, float]:
        result = _run(context, client, mode, way, size, is_stamped)
        return delays(result) if mode == "latency" else {RATE.name: rate(result)}

    # The two sides apart are timed by the peers in Python only.
    clients = [client for client in context.clients if mode != "receive" or client.is_python]
    chosen = cells(clients, mode, once)
    if context.settings.quick:
        chosen = list(filter(_QUICK.get(table, lambda cell: False), chosen))
    return context.measure(table, f"{size} B", chosen)


def _measure_beside_thread(context: Context, size: int) -> list[Row]:
    """Both situations as ways of one case, so that they are interleaved."""

    def once(client: Client, way: str, is_beside: bool) -> Mapping[str, float]:
        return delays(_run(context, client, "latency", way, size, False, beside_thread=int(is_beside)))

    found = []
    for client in context.clients:
        way = client.ways_of("latency")[0]
        for which in (_ALONE, _TOGETHER) if client.is_python else ():
            measure = partial(once, client, way, which == _TOGETHER)
            found.append(Cell(client.name, _named(way, which), measure, client.reason))
    return context.measure(BESIDE, f"{size} B", found)


def _named(way: str, which: str) -> str:
    return f"{way}, {which}" if way else which


def _run(
    context: Context, client: Client, mode: str, way: str, size: int, is_stamped: bool, **options: object
) -> Mapping[str, Any]:
    result = client.run(
        mode,
        way=way,
        aeron_dir=context.aeron_dir,
        stream=context.stream_id(),
        seconds=context.settings.seconds,
        size=size,
        tick="full" if is_stamped else "none",
        **options,
    )
    check_sums(result, is_stamped=is_stamped)
    return result

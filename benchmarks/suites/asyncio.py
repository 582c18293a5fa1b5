"""Services on an event loop: requests, wake-ups, streams and rest, between two processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.harness.clients import OURS
from benchmarks.harness.context import Cell, Context
from benchmarks.harness.results import Column, Row, Table, Target, select
from benchmarks.suites._asyncio_pairs import Pair
from benchmarks.suites._asyncio_variants import (
    PARKING,
    PYZMQ,
    UNIX,
    UNSPUN,
    Variant,
    calling,
    embedding,
    receiving,
    waiting,
)

NAME = "asyncio"
CLIENTS = (PYZMQ, UNIX)

LOOPS = ("uvloop", "asyncio")

SIZE = 32
STAMPED_SIZE = 64
"""Payload bytes of messages that carry the time of their sending, too."""

RARE = (0.005, 0.02)
STEADY = (0.001, 0.001)
"""Seconds between messages, at least and at most."""

STREAMS = 10
UNVISITED, VISITED = "nobody at the other ends", "a silent process at the other ends"

_HEARTBEAT = (Column("heartbeat p50", "ns"), Column("heartbeat max", "ns"))

REQUESTS = Table(
    "request and response",
    (Column("p50", "ns"), Column("p99", "ns"), Column("CPU", "%"), *_HEARTBEAT),
    "32-byte requests, one in flight, from stamping the tick to having decoded that of the reply. CPU: the "
    "requester's, of one core. Heartbeat: how late a task on the requester's loop is that ticks every 10 ms.",
)
WAKING = Table(
    "wake-up of an idle receiver",
    (Column("p50", "ns"), Column("p99", "ns"), Column("max", "ns"), Column("CPU", "%")),
    "64-byte messages, one every 5 to 20 ms, from the moment before the sender's call to having decoded the tick. CPU: "
    "the receiver's.",
)
PACED = Table(
    "1,000 messages a second",
    (Column("CPU", "%"), Column("p50", "ns"), Column("p99", "ns"), *_HEARTBEAT),
    "The same, one message every millisecond, and a heartbeat on the receiver's loop.",
)
FLOW = Table(
    "one way, flat out",
    (Column("rate", "msg/s", more_is_better=True), Column("CPU", "%"), *_HEARTBEAT),
    "32-byte messages. The receiver decodes each tick; the window is from its first message to its last. A heartbeat "
    "that it never lets tick is as late as the window is long.",
)
COUNTED_FLOW = replace(FLOW, title="one way, flat out, counted", note="The same, but the receiver only counts.")
REST = Table(
    "ten quiet streams",
    (Column("client", "%"),),
    "CPU of a process that waits for messages on ten streams, of one core.",
)
EMBEDDED_REST = Table(
    "ten quiet streams and the driver",
    (Column("client and driver", "%"), Column("client", "%"), Column("driver", "%")),
    "The same, with the media driver that the client has started, as it is by default.",
)


Measure = Callable[[Pair], Mapping[str, float]]
Rest = Callable[..., Mapping[str, float]]


def run(context: Context) -> list[Row]:
    """Measures all tables."""
    seconds, quick = context.settings.seconds, context.settings.quick
    moving: list[tuple[Table, Sequence[Variant], Measure]] = [
        (REQUESTS, calling(context), partial(_request, seconds)),
        (WAKING, waiting(context), partial(_receive_paced, 2.5 * seconds, RARE)),
        (PACED, waiting(context), partial(_receive_paced, seconds, STEADY)),
        (FLOW, receiving(context), partial(_receive, seconds, "full")),
        *([] if quick else [(COUNTED_FLOW, receiving(context), partial(_receive, seconds, "none"))]),
    ]
    resting: list[tuple[Table, Sequence[Variant], Rest]] = [
        (REST, embedding(context) if quick else waiting(context), Pair.rest),
        (EMBEDDED_REST, embedding(context), Pair.rest_embedded),
    ]
    rows: list[Row] = []
    with TemporaryDirectory(dir=context.aeron_dir.parent) as folder:
        meet = _Meeting(context, Path(folder))
        for table, variants, measure in moving:
            for loop in LOOPS[:1] if quick else LOOPS:
                rows += context.measure(table, loop, meet.cells(variants, loop, measure))
        for table, variants, rest in resting:
            for case, is_visited in ((UNVISITED, False), (VISITED, True)):
                measure = partial(_rest, rest, 5 * seconds, is_visited)
                rows += context.measure(table, case, meet.cells(variants, LOOPS[0], measure))
    return rows


@dataclass(frozen=True)
class _Meeting:
    """Where the pairs of a run meet."""

    context: Context
    folder: Path
    """For sockets, and for the directories of embedded drivers."""

    def cells(self, variants: Iterable[Variant], loop: str, measure: Measure) -> list[Cell]:
        """A case's cells: those variants that are measured on this loop in this run."""
        everything = loop == LOOPS[0] and not self.context.settings.quick
        return [
            Cell(variant.client, variant.way, partial(self._measure, variant, loop, measure), variant.reason)
            for variant in variants
            if everything or variant.is_essential
        ]

    def _measure(self, variant: Variant, loop: str, measure: Measure) -> Mapping[str, float]:
        # A pair has a stream for each of its quiet ones.
        stream_id, *_ = (self.context.stream_id() for _ in range(STREAMS))
        return measure(Pair(variant, loop, self.context.aeron_dir, self.folder, stream_id))


def _request(seconds: float, pair: Pair) -> Mapping[str, float]:
    return _figures(pair.exchange(seconds, SIZE))


def _receive_paced(seconds: float, gap: tuple[float, float], pair: Pair) -> Mapping[str, float]:
    return _figures(pair.pace(seconds, STAMPED_SIZE, gap))


def _receive(seconds: float, tick: str, pair: Pair) -> Mapping[str, float]:
    figures = pair.flow(seconds, SIZE, tick)
    return {"rate": figures["messages"] / figures["seconds"], **_figures(figures)}


def _rest(rest: Rest, seconds: float, is_visited: bool, pair: Pair) -> Mapping[str, float]:
    used = rest(pair, seconds, STREAMS, is_visited=is_visited)
    return {**used, "client and driver": sum(used.values())}


def _figures(result: Mapping[str, Any]) -> dict[str, float]:
    """A peer's figures under the names of the tables' columns."""
    return {
        "CPU": 100 * result["cpu"],
        "heartbeat p50": result["heartbeat_p50"],
        "heartbeat max": result["heartbeat_max"],
        **{name: result[name] for name in ("p50", "p99", "max") if name in result},
    }


def targets(rows: Sequence[Row]) -> list[Target]:
    """T6, T6b and T7."""
    found: list[Target] = []
    for loop in LOOPS:
        parking = select(rows, REQUESTS, loop, OURS, PARKING)
        unspun = select(rows, REQUESTS, loop, OURS, UNSPUN)
        pyzmq, unix = (select(rows, REQUESTS, loop, other) for other in (PYZMQ, UNIX))
        paced = select(rows, PACED, loop, OURS, PARKING)
        found += [
            Target.ratio(f"T6, {loop}", "request and response, p50, against pyzmq", parking, pyzmq, at_most=0.03),
            _figure(f"T6, {loop}: CPU", "CPU of a receiver at 1,000 messages a second", paced, "CPU", "%"),
            _figure(f"T6, {loop}: heartbeat", "a 10 ms heartbeat then, late at most", paced, "heartbeat max", "ns"),
            Target.ratio(f"T6b, {loop}", "the same, never spinning, against pyzmq", unspun, pyzmq, at_most=0.45),
            Target.ratio(f"T6b, {loop}", "the same, never spinning, against Unix streams", unspun, unix, at_most=1.0),
        ]
    for case in (UNVISITED, VISITED):
        alone = select(rows, REST, case, OURS, PARKING)
        both = select(rows, EMBEDDED_REST, case, OURS, PARKING)
        found += [
            _figure(f"T7, {case}", "CPU of a client with ten quiet streams", alone, "client", "%", at_most=1.0),
            _figure(f"T7, {case}", "the same, with its driver", both, "client and driver", "%", at_most=3.0),
        ]
    return found


def _figure(
    name: str, statement: str, row: Row | None, column: str, unit: str, *, at_most: float | None = None
) -> Target:
    if row is None:
        return Target(name, statement, at_most=at_most, reason="a row that it needs has no figures")
    return Target(name, statement, row.values[column], at_most=at_most, unit=unit)

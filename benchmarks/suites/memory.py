"""What stays in memory, and what many streams cost."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from benchmarks.harness.clients import OURS, PURE, Client
from benchmarks.harness.context import Context
from benchmarks.harness.peer import PeerError
from benchmarks.harness.results import Column, Row, Table, Target, select
from benchmarks.harness.statistics import paired_ratios
from benchmarks.harness.ticks import check_sums
from benchmarks.peers.python.memory import AT_ONCE, BATCHES, MESSAGES, ONE_BY_ONE, PAYLOADS
from benchmarks.peers.python.ways import WAYS
from benchmarks.suites._cells import cells
from benchmarks.suites._cpu import driver_pid, percent_of_core

NAME = "memory"

_PEER = (sys.executable, "-m", "benchmarks.peers.python.memory")
_WAYS = {"grow": WAYS["throughput"], "keep": (BATCHES, PAYLOADS, MESSAGES), "spread": (ONE_BY_ONE, AT_ONCE)}

_SIZE = 32
_COUNTS = (1, 100, 1000)

_LONGEST = 600.0
"""Seconds that any of it may take: against hangs."""

GROWTH = Table(
    "growth over messages",
    (Column("resident", "KiB"), Column("private", "KiB")),
    "How much more memory the process has after so many messages of 32 bytes, sent and received in batches of 1,000, "
    "than before, after a warm-up of 200,000. Private: without the logs, which all share.",
)
KEPT = Table(
    "memory of messages that are kept",
    (Column("a payload byte", "B"), Column("a message", "B")),
    "Payloads received in batches of 1,000 messages; kept are the batches, the bytes objects in them, or "
    "the messages with their headers.",
)
_CPUS = (Column("CPU", "%"), Column("driver's CPU", "%"))
STREAMS = Table(
    "many streams in one client",
    (
        Column("add", "ns"),
        Column("close", "ns"),
        Column("deliver", "ns"),
        Column("private memory", "KiB"),
        *_CPUS,
    ),
    "A stream is a publication, a subscription and a task that waits for its messages; terms of 64 KiB. Add, close, "
    "deliver, memory: of one stream, as the total by their number; adding is until it is connected, delivering until "
    "each has its message. CPU: at rest, of all together.",
)


def run(context: Context) -> list[Row]:
    """Measures all tables."""
    # Memory is not noisy, and millions of messages take their time.
    once = replace(context, settings=replace(context.settings, repeats=1))
    clients = [replace(client, command=_PEER, ways=_WAYS) for client in context.clients if client.name in (OURS, PURE)]
    quick = context.settings.quick
    messages, kept_bytes = (300_000, 8 << 20) if quick else (10_000_000, 64 << 20)
    faces = clients[:1] if quick else clients
    rows = once.measure(GROWTH, f"{messages:,} messages", cells(faces, "grow", partial(_grow, context, messages)))
    for size in context.settings.sizes:
        keep = partial(_keep, context, kept_bytes // size, size)
        rows += once.measure(KEPT, f"{size} B", cells(faces, "keep", keep))
    for count in _COUNTS[:2] if quick else _COUNTS:
        rows += context.measure(STREAMS, f"{count:,}", cells(clients[:1], "spread", partial(_spread, context, count)))
    return rows


def _grow(context: Context, messages: int, client: Client, way: str) -> Mapping[str, float]:
    # A log that the warm-up goes round several times.
    channel = "aeron:ipc?term-length=1m"
    result = client.run("grow", way=way, messages=messages, size=_SIZE, **_options(context, channel))
    check_sums(result)
    return {"resident": result["whole"] / 1024, "private": result["private"] / 1024}


def _keep(context: Context, messages: int, size: int, client: Client, way: str) -> Mapping[str, float]:
    result = client.run("keep", way=way, messages=messages, size=size, **_options(context, "aeron:ipc"))
    check_sums(result)
    return {"a payload byte": result["private"] / (messages * size), "a message": result["private"] / messages}


def _spread(context: Context, count: int, client: Client, way: str) -> Mapping[str, float]:
    options = _options(context, "aeron:ipc?term-length=64k")
    with client.start("spread", way=way, messages=count, **options) as peer:
        peer.wait_ready()
        pids = {"CPU": peer.pid, "driver's CPU": driver_pid(context.aeron_dir)}
        used = percent_of_core(5 * context.settings.seconds, **pids)
        peer.go()
        result = peer.result()
    if result["messages"] != count:
        raise PeerError(f"{result['messages']} of {count} messages arrived")
    nanoseconds = {name: 1e9 * result[name] / count for name in ("add", "close", "deliver")}
    return {**used, **nanoseconds, "private memory": result["private"] / 1024 / count}


def _options(context: Context, channel: str) -> dict[str, object]:
    # The streams of `spread` have the ids that follow; nothing else of the run is open meanwhile.
    return {
        "aeron_dir": context.aeron_dir,
        "channel": channel,
        "stream": context.stream_id(),
        "seconds": _LONGEST,
    }


def targets(rows: Sequence[Row]) -> list[Target]:
    """That nothing grows, and whether many streams cost no more each than a few."""
    found = [
        Target(f"memory: {row.label}", f"growth over {row.case}", row.main, at_most=1024.0, unit="KiB")
        for row in rows
        if row.table is GROWTH and row.main
    ]
    for way in (ONE_BY_ONE, AT_ONCE):
        few, many = (select(rows, STREAMS, f"{count:,}", OURS, way) for count in _COUNTS[1:])
        if few and many:
            found += [
                Target(f"memory: {name}, {way}", "a stream among 1,000 against one among 100", ratios)
                for name, ratios in _ratios_a_stream(few, many).items()
            ]
    return found


def _ratios_a_stream(few: Row, many: Row) -> dict[str, tuple[float, ...]]:
    """How much more of each column a stream takes among many than among few; below 1 is less than linear."""
    totals = {column.name for column in _CPUS}
    scale = _COUNTS[1] / _COUNTS[2]
    return {
        name: tuple(ratio * scale if name in totals else ratio for ratio in paired_ratios(many.values[name], values))
        for name, values in few.values.items()
        if all(values)
    }

"""A native publisher of ticks, and consumers that keep up or hold it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from aeron_async.protocol.frames import compute_aligned_frame_length
from benchmarks.harness.clients import OURS, PYAERON, Client
from benchmarks.harness.context import Context
from benchmarks.harness.lag import Lag
from benchmarks.harness.results import Column, Row, Table, Target, select
from benchmarks.peers.python import ways
from benchmarks.suites._cells import cells
from benchmarks.suites._exchange import End
from benchmarks.suites._stream import COLUMNS, SIZE, choose_publisher, stream

NAME = "market"

TICKS = Table(
    f"ticks of {SIZE} bytes",
    (*COLUMNS, Column("lag", "msg")),
    "A publisher in another process sends as fast as there is room, or so many a second; it drops nothing, so that a "
    "slow consumer holds it back. Delays are from the stamp to the receipt, of every 64th message; the lag is the most "
    "that the consumer's position was seen behind the publisher's.",
)

_FRAME = compute_aligned_frame_length(SIZE)
"""Bytes of the stream that a message takes."""

_RATES = {0: "flat out", 250_000: "250 k/s", 500_000: "500 k/s", 1_000_000: "1 M/s", 2_000_000: "2 M/s"}


def run(context: Context) -> list[Row]:
    """Every rate."""
    here, publisher = End(context.aeron_dir), choose_publisher(context)

    def once(limit: int, client: Client, way: str) -> Mapping[str, float]:
        lag = Lag()
        watching = partial(lag.watching, context.aeron_dir)
        figures = stream(context, publisher, client, way, here, here, limit=limit, observed=watching)
        return {**figures, "lag": lag.largest / _FRAME}

    rows = []
    for limit, case in _RATES.items():
        if not (context.settings.quick and limit):
            rows += context.measure(TICKS, case, cells(context.clients, "market-consumer", partial(once, limit)))
    return rows


def targets(rows: Sequence[Row]) -> list[Target]:
    """T8."""
    ours = select(rows, TICKS, _RATES[0], OURS, ways.AS_ARRAY, ways.BLOCK)
    theirs = select(rows, TICKS, _RATES[0], PYAERON)
    return [Target.ratio("T8", "market flat out, columns, consume rate against pyaeron", ours, theirs, at_least=8)]

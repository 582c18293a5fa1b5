"""The consumer's side of the suite `market`: sums, gaps, and how late a sample of the ticks came."""

from __future__ import annotations

import struct
import time
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness.statistics import percentiles
from benchmarks.harness.ticks import SENT, TICK, Sums
from benchmarks.peers.python import columns
from benchmarks.peers.python.messages import Totals
from benchmarks.peers.python.protocol import LIMIT

MARKET_TICK = struct.Struct(TICK.format + SENT.format.lstrip("<"))

SILENCE = 0.5
"""Seconds without a message after which the stream counts as over."""

SAMPLED = 64
"""Of so many messages, one is looked at for when it came."""


class Arrivals(ABC):
    """What came: totals, jumps of the sequence, and the delays of the sampled messages in nanoseconds."""

    def __init__(self) -> None:
        self.delays = array("q")
        self._first = self._last = 0

    @abstractmethod
    def state(self) -> tuple[Totals, int]:
        """The totals, and the number of gaps."""

    def to_json(self) -> dict[str, Any]:
        totals, gaps = self.state()
        seconds = (self._last - self._first) / 1e9
        delays = percentiles(self.delays) if self.delays else {}
        return {"seconds": seconds, "gaps": gaps, **totals.to_json(), **delays}

    def _note(self, now: int) -> None:
        """Takes the time of receipt of a sampled message."""
        self._first, self._last = self._first or now, now


class ColumnArrivals(Arrivals):
    """Ticks that come as arrays."""

    def __init__(self) -> None:
        super().__init__()
        self._totals, self._gaps, self._expected = Totals(), 0, 0

    def take(self, records: columns.Array) -> int:
        """Takes a batch that has just come; returns its length."""
        count = len(records)
        if count:
            now = time.time_ns()
            sequences = records["sequence"]
            first, last = int(sequences[0]), int(sequences[-1])
            self._gaps += int(first != self._expected) + int(np.count_nonzero(np.diff(sequences) != 1))
            self._expected = last + 1
            self._totals += columns.total_of(records)
            self.delays.frombytes((now - records["sent"][-first % SAMPLED :: SAMPLED]).tobytes())
            self._note(now)
        return count

    def state(self) -> tuple[Totals, int]:
        return self._totals, self._gaps


class MessageArrivals(Arrivals):
    """Ticks that come one by one."""

    def __init__(self) -> None:
        super().__init__()
        unpack, clock, sample, note = MARKET_TICK.unpack_from, time.time_ns, self.delays.append, self._note
        messages = instruments = sequences = expected = gaps = 0
        bids = asks = 0.0

        # Variables of a function, because attributes would take longer.
        def take(buffer: Any, header: Any = None) -> None:
            nonlocal messages, instruments, bids, asks, sequences, expected, gaps
            instrument, bid, ask, sequence, sent = unpack(buffer)
            instruments += instrument
            bids += bid
            asks += ask
            sequences += sequence
            messages += 1
            if sequence != expected:
                gaps += 1
            expected = sequence + 1
            if not sequence % SAMPLED:
                now = clock()
                sample(now - sent)
                note(now)

        self.take = take
        """Takes a payload that has just come, with or without its header."""
        self._state = lambda: (Totals(messages, Sums(instruments, bids, asks, sequences)), gaps)

    def state(self) -> tuple[Totals, int]:
        return self._state()


class Ending:
    """Tells when a stream that is to last some seconds is over."""

    def __init__(self, seconds: float) -> None:
        self._earliest = time.monotonic() + seconds
        self._latest = self._earliest + LIMIT
        self._heard = 0.0

    def is_over(self, is_news: bool) -> bool:
        """To be asked whenever nothing came, with whether something had come since the last time."""
        now = time.monotonic()
        if is_news or not self._heard:
            self._heard = now
        return now > self._latest or (now > self._earliest and now - self._heard > SILENCE)


def consume(read: Callable[[], int], seconds: float) -> None:
    """Reads, without a pause, until the stream is over."""
    ending = Ending(seconds)
    while True:
        is_news = False
        while read():
            is_news = True
        if ending.is_over(is_news):
            return

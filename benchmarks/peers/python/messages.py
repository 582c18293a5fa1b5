"""Messages one by one, as Python sees them: each an object of its own, its tick packed and unpacked by `struct`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Self

from benchmarks.harness.pool import ENTRIES, pool_bytes
from benchmarks.harness.ticks import INSTRUMENTS, PRICES, TICK, Sums, tick

Payload = bytes | bytearray
Handler = Callable[[Any, Any], None]
"""Takes a fragment and its header."""


@dataclass(slots=True)
class Totals:
    """Messages that arrived, and what their ticks add up to."""

    messages: int = 0
    sums: Sums = field(default_factory=Sums)

    def __iadd__(self, other: Totals) -> Self:
        self.messages += other.messages
        self.sums += other.sums
        return self

    def to_json(self) -> dict[str, Any]:
        return {"messages": self.messages, "sum": self.sums.to_json()}


class Messages:
    """The pool, an object an entry: stamped as messages are taken, or, for transport alone, once beforehand."""

    def __init__(self, size: int, is_stamped: bool) -> None:
        pool = pool_bytes(size)
        entries = [bytearray(pool[number * size : (number + 1) * size]) for number in range(ENTRIES)]
        for number, entry in enumerate(entries):
            TICK.pack_into(entry, 0, *tick(number))
        self._is_stamped = is_stamped
        # Everything goes round and once more, so that the fields of any run of messages are a slice.
        self._ring: Sequence[Payload] = 2 * (entries if is_stamped else [bytes(entry) for entry in entries])
        self._instruments = [tick(number)[0] for number in range(INSTRUMENTS + ENTRIES)]
        self._bids = [tick(number)[1] for number in range(PRICES + ENTRIES)]
        self._asks = [tick(number)[2] for number in range(PRICES + ENTRIES)]

    def __getitem__(self, number: int) -> Payload:
        """What message `number` is sent in, before it is stamped."""
        return self._ring[number % ENTRIES]

    def take(self, first: int, count: int) -> Sequence[Payload]:
        """The messages from number `first` on; `count` is at most the number of entries."""
        place, instrument, price = first % ENTRIES, first % INSTRUMENTS, first % PRICES
        entries = self._ring[place : place + count]
        if self._is_stamped:
            instruments = self._instruments[instrument : instrument + count]
            bids, asks = self._bids[price : price + count], self._asks[price : price + count]
            for _ in map(TICK.pack_into, entries, repeat(0), instruments, bids, asks, range(first, first + count)):
                pass
        return entries


def total_of(payloads: Collection[Any]) -> Totals:
    """Decodes every payload."""
    instruments = sequences = 0
    bids = asks = 0.0
    for instrument, bid, ask, sequence in map(TICK.unpack_from, payloads):
        instruments += instrument
        bids += bid
        asks += ask
        sequences += sequence
    return Totals(len(payloads), Sums(instruments, bids, asks, sequences))


def decoding_handler() -> tuple[Handler, Callable[[], Totals]]:
    """A handler that does the same message by message, and what takes the totals away."""
    unpack = TICK.unpack_from
    messages = instruments = sequences = 0
    bids = asks = 0.0

    def decode(buffer: Any, header: Any) -> None:
        nonlocal messages, instruments, bids, asks, sequences
        instrument, bid, ask, sequence = unpack(buffer)
        instruments += instrument
        bids += bid
        asks += ask
        sequences += sequence
        messages += 1

    def take() -> Totals:
        nonlocal messages, instruments, bids, asks, sequences
        totals = Totals(messages, Sums(instruments, bids, asks, sequences))
        messages = instruments = sequences = 0
        bids = asks = 0.0
        return totals

    return decode, take


def counting_handler() -> tuple[Handler, Callable[[], Totals]]:
    """A handler that only counts."""
    messages = 0

    def count(buffer: Any, header: Any) -> None:
        nonlocal messages
        messages += 1

    def take() -> Totals:
        nonlocal messages
        totals, messages = Totals(messages), 0
        return totals

    return count, take


def handler_for(is_stamped: bool) -> tuple[Handler, Callable[[], Totals]]:
    return decoding_handler() if is_stamped else counting_handler()

"""The tick in the first bytes of every message, and what all ticks of a run add up to."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from benchmarks.harness.peer import PeerError

TICK = struct.Struct("<iddq")
"""Instrument, bid, ask, sequence: 28 bytes."""
SENT = struct.Struct("<q")
"""Behind the tick in the messages of the suite `market`: nanoseconds of CLOCK_REALTIME."""

INSTRUMENTS = 1000
PRICES = 64
LOWEST_PRICE = 100.0
PRICE_STEP = 0.25
"""A power of two, so that sums of prices are exact in any order."""


def tick(sequence: int) -> tuple[int, float, float, int]:
    """The fields of message number `sequence`."""
    bid = LOWEST_PRICE + PRICE_STEP * (sequence % PRICES)
    return sequence % INSTRUMENTS, bid, bid + PRICE_STEP, sequence


@dataclass(slots=True)
class Sums:
    """The fields of many ticks, added up."""

    instrument: int = 0
    bid: float = 0.0
    ask: float = 0.0
    sequence: int = 0

    def __iadd__(self, other: Sums) -> Self:
        self.instrument += other.instrument
        self.bid += other.bid
        self.ask += other.ask
        self.sequence += other.sequence
        return self

    def to_json(self) -> dict[str, int | float]:
        return asdict(self)


def _sum_below(count: int) -> int:
    return count * (count - 1) // 2


def _sum_of_remainders(count: int, modulus: int) -> int:
    """The sum of i mod `modulus` for every i below `count`."""
    whole, rest = divmod(count, modulus)
    return whole * _sum_below(modulus) + _sum_below(rest)


def expected_sums(count: int) -> Sums:
    """What the ticks of messages 0 to `count` - 1 add up to."""
    bid = LOWEST_PRICE * count + PRICE_STEP * _sum_of_remainders(count, PRICES)
    return Sums(_sum_of_remainders(count, INSTRUMENTS), bid, bid + PRICE_STEP * count, _sum_below(count))


def check_sums(result: Mapping[str, Any], *, is_stamped: bool = True) -> None:
    """Raises `PeerError` unless messages arrived and, where they were stamped, add up to what they must."""
    messages = result["messages"]
    if messages <= 0:
        raise PeerError("no message arrived")
    expected = expected_sums(messages).to_json()
    if is_stamped and result["sum"] != expected:
        raise PeerError(f"wrong sums over {messages} messages: {result['sum']} instead of {expected}")

"""Idle strategies: how a task waits for shared memory to change."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Backoff", "BusySpin", "IdleStrategy", "Parking", "Sleeping", "Yielding"]

# How long a strategy looks at a stretch before other tasks of the loop get a turn, in seconds.
_SLICE = 20e-6


class Waiting(Protocol):
    """A task that waits, as its strategy sees it."""

    def look(self, seconds: float = 0.0) -> bool:
        """Looks for that long, off the GIL; whether the wait is over."""

    async def turn(self) -> None:
        """Lets the loop's other ready tasks run."""

    async def sleep(self, seconds: float) -> None:
        """Sleeps for that long, or until the wait is over otherwise than by what a look finds."""

    async def park(self, spin: float) -> None:
        """Returns when the wait is over, having looked for up to `spin` seconds where that pays."""


class IdleStrategy(ABC):
    """How a task waits: for messages, for room to publish, for a connection.

    `connect` takes the one of a client, `Client.add_subscription` that of a subscription. They hold no state, so that
    one may be given to many. Whatever the strategy, closing and cancelling end a wait at once, and a subscription
    without images costs nothing: the client wakes it when one comes. Source: Aeron's `IdleStrategy`.
    """

    @abstractmethod
    async def _wait(self, waiting: Waiting) -> None: ...


@dataclass(frozen=True, slots=True)
class BusySpin(IdleStrategy):
    """Looks all the time, in stretches of 20 µs between which the loop's other ready tasks run.

    Costs a whole core for as long as the task waits. Lateness: under 1 µs, and as long as other tasks take.
    Source: Aeron's `BusySpinIdleStrategy`.
    """

    async def _wait(self, waiting: Waiting) -> None:
        while not waiting.look(_SLICE):
            await waiting.turn()


@dataclass(frozen=True, slots=True)
class Yielding(IdleStrategy):
    """Looks once in every turn of the loop, which never sleeps.

    Costs a whole core, of which other tasks get all that they ask for. Lateness: a turn of the loop, some 10 µs where
    it has nothing else to do. Source: Aeron's `YieldingIdleStrategy`.
    """

    async def _wait(self, waiting: Waiting) -> None:
        while not waiting.look():
            await waiting.turn()


@dataclass(frozen=True, slots=True)
class Sleeping(IdleStrategy):
    """Sleeps for `period` seconds between looks.

    Costs a timer of the loop for each look and task. Lateness: up to `period`, rounded up to the whole milliseconds
    that event loops count in. Raises `ValueError` where `period` is not finite and above 0.
    Source: Aeron's `SleepingIdleStrategy`.
    """

    period: float

    def __post_init__(self) -> None:
        _check_duration("period", self.period)

    async def _wait(self, waiting: Waiting) -> None:
        while not waiting.look():
            await waiting.sleep(self.period)


@dataclass(frozen=True, slots=True)
class Backoff(IdleStrategy):
    """Looks `max_spins` times at once, then in `max_yields` turns of the loop, then after ever longer sleeps.

    Sleeps double from `min_park` to `max_park` seconds, rounded up to whole milliseconds as those of `Sleeping`. Costs
    next to nothing while messages come at once, and as `Sleeping` when they do not. Lateness: about as long as the wait
    has lasted, and up to `max_park`. Raises `ValueError` for negative counts, and parks that are not finite, not above
    0, or the wrong way round. Source: Aeron's `BackoffIdleStrategy`.
    """

    max_spins: int = 10
    max_yields: int = 20
    min_park: float = 1e-6
    max_park: float = 1e-3

    def __post_init__(self) -> None:
        for name in ("max_spins", "max_yields"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}={getattr(self, name)} is negative")
        _check_duration("min_park", self.min_park)
        _check_duration("max_park", self.max_park)
        if self.min_park > self.max_park:
            raise ValueError(f"min_park={self.min_park} is longer than max_park={self.max_park}")

    async def _wait(self, waiting: Waiting) -> None:
        for _ in range(self.max_spins):
            if waiting.look():
                return
        for _ in range(self.max_yields):
            await waiting.turn()
            if waiting.look():
                return
        park = self.min_park
        while not waiting.look():
            await waiting.sleep(park)
            park = min(2 * park, self.max_park)


@dataclass(frozen=True, slots=True)
class Parking(IdleStrategy):
    """Looks for up to `spin` seconds where messages come that fast, then parks until the loop is woken. The default.

    Only one task of a client spins, in stretches between which the loop's other ready tasks run, and it looks on behalf
    of all that are parked. Where nothing came in time, spinning is tried ever more rarely, down to one wait in 64.
    ``Parking(spin=0)`` never spins.

    Costs nothing while parked, but for the client's one watcher thread: under 1 % of a core. Lateness: under 1 µs
    within the spin. Parked, a publisher of this library on the same driver wakes the task at once, by IPC, in some
    40 µs with all that the kernel and the loop do; what nobody signals (UDP, publishers of other libraries, room to
    publish) is noticed up to 1 ms late, 2 ms where a client watches so much that it would cost more than that 1 %.
    Raises `ValueError` where `spin` is not finite and at least 0.
    """

    spin: float = 50e-6

    def __post_init__(self) -> None:
        if not (math.isfinite(self.spin) and self.spin >= 0):
            raise ValueError(f"spin={self.spin} is no time in seconds")

    async def _wait(self, waiting: Waiting) -> None:
        await waiting.park(self.spin)


def check_idle(idle: IdleStrategy | None) -> None:
    """Raises `TypeError` for what is no strategy, as a class that was not called."""
    if not (idle is None or isinstance(idle, IdleStrategy)):
        raise TypeError(f"idle must be an IdleStrategy such as Parking(), not {idle!r}")


def _check_duration(name: str, seconds: float) -> None:
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(f"{name}={seconds} is no time in seconds that can be waited")

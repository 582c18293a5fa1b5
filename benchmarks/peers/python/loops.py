"""What is timed: batches there and drained, and round trips one at a time. The same for every client in Python."""

from __future__ import annotations

import argparse
import time
from array import array
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Protocol

from benchmarks.harness.statistics import percentiles
from benchmarks.harness.ticks import TICK, tick
from benchmarks.peers.python.messages import Handler, Messages, Payload, Totals, handler_for
from benchmarks.peers.python.protocol import WARM_UP, batches, wait_for_go

clock = time.monotonic_ns

Offer = Callable[[Any], Any]
"""Returns something greater than 0 once the message is taken."""
Poll = Callable[[Handler], int]

_ROUND_TRIPS = 64
"""How many there are between two looks at whether time is over."""


class Path(Protocol):
    """A way to send and to receive."""

    async def send(self, first: int, count: int) -> None:
        """Sends the messages from number `first` on; all of them fit into the publication's window."""

    async def receive(self, count: int) -> Totals:
        """Receives that many."""


class Polling:
    """One message a call of `offer`, and a handler that `poll` calls with each one."""

    def __init__(
        self,
        offer: Offer,
        poll: Callable[[Handler, int], int],
        messages: Messages,
        handler: tuple[Handler, Callable[[], Totals]],
    ) -> None:
        self._offer, self._poll, self._messages = offer, poll, messages
        self._handler, self._take = handler

    async def send(self, first: int, count: int) -> None:
        offer = self._offer
        for message in self._messages.take(first, count):
            while not offer(message) > 0:
                pass

    async def receive(self, count: int) -> Totals:
        poll, handler = self._poll, self._handler
        left = count
        while left:
            left -= poll(handler, left)
        return self._take()


async def throughput(path: Path, options: argparse.Namespace, *, receiving_only: bool = False) -> dict[str, Any]:
    """Batch after batch, each sent and then drained; of `receiving_only`, only the draining is timed."""

    async def carry(numbered: Iterator[tuple[int, int]]) -> tuple[Totals, int]:
        totals, elapsed = Totals(), 0
        for first, count in numbered:
            started = clock()
            await path.send(first, count)
            if receiving_only:
                started = clock()
            totals += await path.receive(count)
            elapsed += clock() - started
        return totals, elapsed

    wait_for_go()
    await carry(batches(options.batch, seconds=WARM_UP))
    totals, elapsed = await carry(batches(options.batch, seconds=options.seconds, messages=options.messages))
    return {"seconds": elapsed / 1e9, **totals.to_json()}


def round_trips(offer: Offer, poll: Poll, options: argparse.Namespace) -> dict[str, Any]:
    """One message in flight: stamped, offered, and polled for until it is back and decoded."""
    messages = Messages(options.size, options.is_stamped)
    stamp, is_stamped = TICK.pack_into, options.is_stamped
    handler, take = handler_for(is_stamped)

    def carry(numbered: Iterator[tuple[int, int]]) -> array[int]:
        samples = array("q")
        for first, count in numbered:
            for number in range(first, first + count):
                message, fields = messages[number], tick(number)
                started = clock()
                if is_stamped:
                    stamp(message, 0, *fields)
                while not offer(message) > 0:
                    pass
                while not poll(handler):
                    pass
                samples.append(clock() - started)
        return samples

    wait_for_go()
    carry(batches(_ROUND_TRIPS, seconds=WARM_UP))
    take()
    started = clock()
    samples = carry(batches(_ROUND_TRIPS, seconds=options.seconds, messages=options.messages))
    return {"seconds": (clock() - started) / 1e9, **take().to_json(), **percentiles(samples)}


async def async_round_trips(call: Callable[[Payload], Awaitable[bytes]], options: argparse.Namespace) -> dict[str, Any]:
    """The same with a call that is awaited."""
    messages = Messages(options.size, options.is_stamped)
    stamp, is_stamped = TICK.pack_into, options.is_stamped
    handler, take = handler_for(is_stamped)

    async def carry(numbered: Iterator[tuple[int, int]]) -> array[int]:
        samples = array("q")
        for first, count in numbered:
            for number in range(first, first + count):
                message, fields = messages[number], tick(number)
                started = clock()
                if is_stamped:
                    stamp(message, 0, *fields)
                handler(await call(message), None)
                samples.append(clock() - started)
        return samples

    wait_for_go()
    await carry(batches(_ROUND_TRIPS, seconds=WARM_UP))
    take()
    started = clock()
    samples = await carry(batches(_ROUND_TRIPS, seconds=options.seconds, messages=options.messages))
    return {"seconds": (clock() - started) / 1e9, **take().to_json(), **percentiles(samples)}


def echo(offer: Offer, poll: Poll, is_over: Callable[[], bool]) -> dict[str, Any]:
    """Offers every message that is polled as it is, until it `is_over`."""
    messages = 0

    def answer(buffer: Any, header: Any) -> None:
        nonlocal messages
        while not offer(buffer) > 0:
            pass
        messages += 1

    while not is_over():
        for _ in range(1000):
            poll(answer)
    return {"messages": messages}

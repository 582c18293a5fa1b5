"""The peer of the memory suite: what messages, batches and streams of this library cost while they are there."""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from aeron_async import Client, MessageBatch, Publication, Subscription
from benchmarks.peers.python import ours, protocol
from benchmarks.peers.python.columns import Records
from benchmarks.peers.python.messages import Totals, total_of
from benchmarks.peers.python.protocol import batches, wait_for_go
from benchmarks.peers.python.resident import resident

WARM_UP = 200_000
"""Messages that go round the whole log, and through every path, before memory is looked at."""

BATCHES, PAYLOADS, MESSAGES = "batches", "payloads", "messages"
"""What may be kept."""

ONE_BY_ONE, AT_ONCE = "one by one", "all at once"
"""How streams may be added and closed."""

T = TypeVar("T")


async def grow(client: Client, options: Namespace) -> Mapping[str, Any]:
    """How much more is resident after `messages` than before them, once everything is warm."""
    async with ours.pair(client, options) as (publication, subscription):
        path = ours.path(publication, subscription, options)
        wait_for_go()

        async def carry(messages: int) -> Totals:
            totals = Totals()
            for first, count in batches(options.batch, seconds=0, messages=messages):
                await path.send(first, count)
                totals += await path.receive(count)
            return totals

        await carry(WARM_UP)
        before = resident()
        totals = await carry(options.messages)
        return {**totals.to_json(), **(resident() - before).to_json()}


async def keep(client: Client, options: Namespace) -> Mapping[str, Any]:
    """How much memory `messages` take up that are kept."""
    forms: dict[str, Callable[[MessageBatch], Iterable[Any]]] = {
        BATCHES: lambda batch: batch,
        PAYLOADS: list,
        MESSAGES: lambda batch: list(batch.messages()),
    }
    form = forms[options.way]
    async with ours.pair(client, options) as (publication, subscription):
        records = Records(options.size, is_stamped=True)
        wait_for_go()
        kept: list[Iterable[Any]] = []
        before = resident()
        for first, count in batches(options.batch, seconds=0, messages=options.messages):
            if publication.offer_array(records.take(first, count)) != count:
                raise RuntimeError("there is no room for a batch")
            kept.append(form(subscription.poll_batch(count)))
        held = resident() - before
        totals = Totals()
        for messages in kept:
            totals += total_of([bytes(message) for message in messages])
        return {**totals.to_json(), **held.to_json()}


async def spread(client: Client, options: Namespace) -> Mapping[str, Any]:
    """What as many streams cost as there are `messages`: one each. A stream is a publication and a subscription."""
    streams = range(options.stream, options.stream + options.messages)
    arrived = 0
    everything_arrived = asyncio.Event()

    async def each(works: Iterable[Awaitable[T]]) -> list[T]:
        return await asyncio.gather(*works) if options.way == AT_ONCE else [await work for work in works]

    async def add(stream: int) -> tuple[Publication, Subscription]:
        # All at once, the last one waits for all the others.
        subscription = await client.add_subscription(options.channel, stream, timeout=options.seconds)
        publication = await client.add_exclusive_publication(options.channel, stream, timeout=options.seconds)
        await publication.wait_connected(options.seconds)
        return publication, subscription

    async def receive(subscription: Subscription) -> None:
        nonlocal arrived
        async for _ in subscription.payloads():
            arrived += 1
            if arrived == len(streams):
                everything_arrived.set()

    async def close(publication: Publication, subscription: Subscription) -> None:
        await publication.aclose()
        await subscription.aclose()

    before = resident()
    started = time.monotonic()
    pairs = await each(add(stream) for stream in streams)
    added = time.monotonic() - started
    readers = [asyncio.create_task(receive(subscription)) for _, subscription in pairs]
    await asyncio.sleep(0)
    held = resident() - before
    await asyncio.to_thread(wait_for_go)

    started = time.monotonic()
    for publication, _ in pairs:
        await publication.publish(b"to each its own")
    async with asyncio.timeout(options.seconds):
        await everything_arrived.wait()
    delivered = time.monotonic() - started

    started = time.monotonic()
    await each(close(*pair) for pair in pairs)
    closed = time.monotonic() - started
    await asyncio.gather(*readers)
    return {"messages": arrived, "add": added, "deliver": delivered, "close": closed, **held.to_json()}


if __name__ == "__main__":
    protocol.run({"grow": ours.mode(grow), "keep": ours.mode(keep), "spread": ours.mode(spread)})

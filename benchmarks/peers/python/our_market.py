"""The suite `market` with this library: a publisher, and a consumer for each way to receive."""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from typing import Any

from aeron_async import ExclusivePublication, OfferResult, Subscription
from aeron_async.protocol.frames import compute_aligned_frame_length
from benchmarks.peers.python import ways
from benchmarks.peers.python.columns import Records, record_type
from benchmarks.peers.python.market import Arrivals, ColumnArrivals, Ending, MessageArrivals, consume

_BURST = 100
_LOOK = 0.02
"""Seconds between two looks at whether a stream is over that a task reads."""


def publish(publication: ExclusivePublication, options: Namespace) -> dict[str, Any]:
    """Ticks in bursts, as many a second as asked for; what cannot be sent is tried again."""
    records = Records(options.size, is_stamped=True)
    started = time.monotonic()
    sent = refusals = 0
    while (elapsed := time.monotonic() - started) < options.seconds:
        due = int(elapsed * options.rate) - sent if options.rate else _BURST
        burst = records.take(sent, min(due, _BURST))
        burst["sent"] = time.time_ns()
        while len(burst):
            appended = publication.offer_array(burst)
            if appended == OfferResult.NOT_CONNECTED:
                raise SystemExit("the consumer has gone")
            refusals += appended < 0
            sent += max(0, appended)
            burst = burst[max(0, appended) :]
    return {"messages": sent, "seconds": time.monotonic() - started, "backpressured": refusals}


async def receive(subscription: Subscription, options: Namespace) -> Arrivals:
    """Reads the stream to its end in the way that was asked for."""
    if options.way in (ways.AS_ARRAY, ways.BLOCK):
        return _receive_arrays(subscription, options)
    arrivals = MessageArrivals()
    take, batch = arrivals.take, options.batch

    def read_list() -> int:
        payloads = subscription.poll_batch(batch)
        for payload in payloads:
            take(payload)
        return len(payloads)

    if options.way == ways.POLL:
        consume(lambda: subscription.poll(take, batch), options.seconds)
    elif options.way == ways.POLL_BATCH:
        consume(read_list, options.seconds)
    else:
        await _iterate(subscription, arrivals, options.seconds)
    return arrivals


def _receive_arrays(subscription: Subscription, options: Namespace) -> Arrivals:
    arrivals, dtype, batch = ColumnArrivals(), record_type(options.size), options.batch
    image, block_length = subscription.images[0], batch * compute_aligned_frame_length(options.size)

    def read_array() -> int:
        return arrivals.take(subscription.poll_batch(batch).as_array(dtype))

    def read_block() -> int:
        with image.block(block_length) as block:
            return arrivals.take(block.as_array(dtype))

    consume(read_block if options.way == ways.BLOCK else read_array, options.seconds)
    return arrivals


async def _iterate(subscription: Subscription, arrivals: MessageArrivals, seconds: float) -> None:
    async def iterate() -> None:
        async for payload in subscription.payloads():
            arrivals.take(payload)

    reader = asyncio.create_task(iterate())
    ending, seen = Ending(seconds), 0
    while not ending.is_over(len(arrivals.delays) != seen):
        seen = len(arrivals.delays)
        await asyncio.sleep(_LOOK)
        if reader.done():
            reader.result()
    reader.cancel()

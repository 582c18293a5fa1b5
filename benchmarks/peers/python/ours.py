"""The peer of this library, on either face (AERON_ASYNC_PURE)."""

from __future__ import annotations

import asyncio
import os
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aeron_async
from aeron_async import Client, ExclusivePublication, Subscription, _face, rpc
from benchmarks.peers.python import our_market, protocol, ways
from benchmarks.peers.python.loops import Path, Polling, async_round_trips, echo, round_trips, throughput
from benchmarks.peers.python.messages import Messages, Payload, handler_for
from benchmarks.peers.python.our_paths import Blocks, Columns, Lists, Receiving, Tasks
from benchmarks.peers.python.protocol import LIMIT, wait_for_go

_PATHS: dict[str, Callable[[ExclusivePublication, Subscription, int, bool], Path]] = {
    ways.LISTS: Lists,
    ways.COLUMNS: Columns,
    ways.BLOCKS: Blocks,
    ways.TASKS: Tasks,
    ways.PAYLOADS: Receiving,
}

_HOLD = 1.0
"""Seconds for which a publisher of the suite `market` stays after its last message."""


def mode(serve: Callable[[Client, Namespace], Awaitable[Mapping[str, Any] | None]]) -> protocol.Mode:
    """What a mode does with a client on the driver that all share."""

    async def run(options: Namespace) -> Mapping[str, Any] | None:
        async with aeron_async.connect(options.aeron_dir, driver="external") as client:
            return await serve(client, options)

    return lambda options: asyncio.run(run(options))


@asynccontextmanager
async def pair(client: Client, options: Namespace) -> AsyncIterator[tuple[ExclusivePublication, Subscription]]:
    """A publication and the subscription that it reaches."""
    async with (
        await client.add_subscription(options.channel, options.stream) as subscription,
        await client.add_exclusive_publication(options.channel, options.stream) as publication,
    ):
        await publication.wait_connected(LIMIT)
        await subscription.wait_connected(LIMIT)
        yield publication, subscription


def path(publication: ExclusivePublication, subscription: Subscription, options: Namespace) -> Path:
    """The way to send and to receive that was asked for."""
    if options.way in ("", ways.MESSAGES):
        messages = Messages(options.size, options.is_stamped)
        return Polling(publication.offer, subscription.poll, messages, handler_for(options.is_stamped))
    return _PATHS[options.way](publication, subscription, options.size, options.is_stamped)


async def measure_latency(client: Client, options: Namespace) -> Mapping[str, Any]:
    async with pair(client, options) as (publication, subscription):
        if options.way != ways.TASKS:
            return round_trips(publication.offer, subscription.poll, options)
        payloads = subscription.payloads()

        async def there_and_back(payload: Payload) -> bytes:
            await publication.publish(payload)
            return await anext(payloads)

        return await async_round_trips(there_and_back, options)


async def measure_throughput(client: Client, options: Namespace) -> Mapping[str, Any]:
    async with pair(client, options) as (publication, subscription):
        way = path(publication, subscription, options)
        return await throughput(way, options, receiving_only=options.mode == "receive")


async def answer(client: Client, options: Namespace) -> Mapping[str, Any]:
    if options.way == ways.CALLS:
        return await _answer_calls(client, options)
    async with (
        await client.add_subscription(options.channel, options.stream) as requests,
        await client.add_exclusive_publication(options.reply_channel, options.reply_stream) as replies,
    ):
        wait_for_go()
        released = protocol.release_event()
        await requests.wait_connected(LIMIT)
        await replies.wait_connected(LIMIT)
        return echo(replies.offer, requests.poll, released.is_set)


async def _answer_calls(client: Client, options: Namespace) -> Mapping[str, Any]:
    messages = 0

    async def handle(request: bytes) -> bytes:
        nonlocal messages
        messages += 1
        return request

    async with rpc.serve(client, options.channel, options.stream, handle, response_stream_id=options.reply_stream):
        wait_for_go()
        await asyncio.to_thread(protocol.release_event().wait, options.seconds + LIMIT)
    return {"messages": messages}


async def ask(client: Client, options: Namespace) -> Mapping[str, Any]:
    if options.way == ways.CALLS:
        dialled = rpc.dial(client, options.channel, options.stream, response_stream_id=options.reply_stream)
        async with dialled as remote:
            return await async_round_trips(remote.call, options)
    async with (
        await client.add_subscription(options.reply_channel, options.reply_stream) as replies,
        await client.add_exclusive_publication(options.channel, options.stream) as requests,
    ):
        await requests.wait_connected(LIMIT)
        await replies.wait_connected(LIMIT)
        return round_trips(requests.offer, replies.poll, options)


async def publish_market(client: Client, options: Namespace) -> None:
    async with await client.add_exclusive_publication(options.channel, options.stream) as publication:
        await publication.wait_connected(LIMIT)
        wait_for_go()
        protocol.print_figures(our_market.publish(publication, options))
        await asyncio.to_thread(protocol.release_event().wait, _HOLD)


async def consume_market(client: Client, options: Namespace) -> Mapping[str, Any]:
    async with await client.add_subscription(options.channel, options.stream) as subscription:
        await subscription.wait_connected(LIMIT)
        wait_for_go()
        return (await our_market.receive(subscription, options)).to_json()


def check_face() -> None:
    """Refuses to measure another face of the library than the one that the row will name."""
    wanted = "pure" if os.environ.get("AERON_ASYNC_PURE") else "speedups"
    if wanted != _face.NAME:
        raise SystemExit(f"this build of aeron_async has the face {_face.NAME!r} only, not {wanted!r}")


if __name__ == "__main__":
    check_face()
    protocol.run(
        {
            "latency": mode(measure_latency),
            "throughput": mode(measure_throughput),
            "receive": mode(measure_throughput),
            "rpc-server": mode(answer),
            "rpc-client": mode(ask),
            "market-publisher": mode(publish_market),
            "market-consumer": mode(consume_market),
        }
    )

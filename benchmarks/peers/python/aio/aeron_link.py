"""This library's end of a link."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import aeron_async
from aeron_async import rpc
from benchmarks.peers.python.aio.link import Call, Consume, OnMessage, Send
from benchmarks.peers.python.aio.options import Options
from benchmarks.peers.python.aio.tasks import background
from benchmarks.peers.python.messages import Payload
from benchmarks.peers.python.protocol import LIMIT

STRATEGIES = {
    "parking": aeron_async.Parking,
    "parking-unspun": lambda: aeron_async.Parking(spin=0),
    "busy-spin": aeron_async.BusySpin,
    "yielding": aeron_async.Yielding,
    "sleeping": lambda: aeron_async.Sleeping(0.001),
    "backoff": lambda: aeron_async.Backoff(max_spins=10, max_yields=20, min_park=0.00001, max_park=0.001),
}


class AeronLink:
    """Publications and subscriptions; requests and replies are streams of their own."""

    def __init__(self, client: aeron_async.Client, options: Options) -> None:
        self._client = client
        self._options = options

    @asynccontextmanager
    async def echo(self) -> AsyncIterator[None]:
        async with (
            await self._subscribe(self._options.stream) as requests,
            await self._publish(self._options.reply_stream) as replies,
        ):

            async def serve() -> None:
                async for request in requests.payloads():
                    await replies.publish(request)

            async with background(serve()):
                yield

    @asynccontextmanager
    async def dial(self) -> AsyncIterator[Call]:
        async with (
            await self._subscribe(self._options.reply_stream) as replies,
            await self._publish(self._options.stream) as requests,
        ):
            await requests.wait_connected(LIMIT)
            await replies.wait_connected(LIMIT)
            incoming = replies.payloads()

            async def call(request: Payload) -> bytes:
                await requests.publish(request)
                return await anext(incoming)

            yield call

    @asynccontextmanager
    async def receive(self) -> AsyncIterator[Consume]:
        async with await self._subscribe(self._options.stream) as subscription:

            async def consume(on_message: OnMessage) -> None:
                async for payload in subscription.payloads():
                    if not on_message(payload):
                        break

            yield consume

    @asynccontextmanager
    async def send(self) -> AsyncIterator[Send]:
        async with await self._publish(self._options.stream) as publication:
            await publication.wait_connected(LIMIT)

            def send(messages: Sequence[Payload]) -> None:
                start = 0
                while start < len(messages):
                    taken = publication.offer_many(messages[start:] if start else messages)
                    if taken > 0:
                        start += taken
                    elif taken in (aeron_async.OfferResult.BACK_PRESSURED, aeron_async.OfferResult.ADMIN_ACTION):
                        time.sleep(0)
                    else:
                        raise RuntimeError(f"messages are refused: {taken!r}")

            yield send

    @asynccontextmanager
    async def hold(self, count: int) -> AsyncIterator[None]:
        async def drain(subscription: aeron_async.Subscription) -> None:
            async for _ in subscription.payloads():
                pass

        async with AsyncExitStack() as stack:
            subscriptions = [
                await stack.enter_async_context(await self._subscribe(self._options.stream + number))
                for number in range(count)
            ]
            async with background(*map(drain, subscriptions)):
                yield

    @asynccontextmanager
    async def visit(self, count: int) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for number in range(count):
                publication = await stack.enter_async_context(await self._publish(self._options.stream + number))
                await publication.wait_connected(LIMIT)
            yield

    async def _subscribe(self, stream: int) -> aeron_async.Subscription:
        return await self._client.add_subscription(self._options.channel, stream)

    async def _publish(self, stream: int) -> aeron_async.ExclusivePublication:
        return await self._client.add_exclusive_publication(self._options.channel, stream)


class MessageLink(AeronLink):
    """The same, where a receiver iterates over messages with their headers."""

    @asynccontextmanager
    async def receive(self) -> AsyncIterator[Consume]:
        async with await self._subscribe(self._options.stream) as subscription:

            async def consume(on_message: OnMessage) -> None:
                async for message in subscription:
                    if not on_message(message.payload):
                        break

            yield consume


class RpcLink(AeronLink):
    """The same, where requests are calls of `aeron_async.rpc`."""

    @asynccontextmanager
    async def echo(self) -> AsyncIterator[None]:
        async def handle(request: bytes) -> bytes:
            return request

        async with rpc.serve(self._client, self._options.channel, self._options.stream, handle):
            yield

    @asynccontextmanager
    async def dial(self) -> AsyncIterator[Call]:
        async with rpc.dial(self._client, self._options.channel, self._options.stream, timeout=LIMIT) as remote:
            yield remote.call


LINKS = {"aeron": AeronLink, "messages": MessageLink, "rpc": RpcLink}


@asynccontextmanager
async def open_link(options: Options) -> AsyncIterator[AeronLink]:
    """The link of a client of its own."""
    idle = STRATEGIES[options.idle]()
    if options.driver == "embedded":
        connected = aeron_async.connect(driver=aeron_async.DriverConfig(aeron_dir=options.aeron_dir), idle=idle)
    else:
        connected = aeron_async.connect(options.aeron_dir, idle=idle)
    async with connected as client:
        yield LINKS[options.client](client, options)

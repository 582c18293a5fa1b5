"""pyaeron's end of a link. It knows no event loop: a task polls, and gives way to the others in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager

import pyaeron

from benchmarks.peers.python.aio.link import Call, Consume, OnMessage, Send
from benchmarks.peers.python.aio.options import Options
from benchmarks.peers.python.aio.tasks import background
from benchmarks.peers.python.messages import Payload
from benchmarks.peers.python.protocol import LIMIT

Handler = Callable[[pyaeron.BufferView, pyaeron.Header], None]

FRAGMENT_LIMIT = 256


class PyaeronLink:
    """Publications and subscriptions; requests and replies are streams of their own."""

    def __init__(self, aeron: pyaeron.Aeron, options: Options) -> None:
        self._aeron = aeron
        self._options = options

    @asynccontextmanager
    async def echo(self) -> AsyncIterator[None]:
        with self._subscribe(self._options.stream) as requests, self._publish(self._options.reply_stream) as replies:

            def on_request(request: pyaeron.BufferView, header: pyaeron.Header) -> None:
                _offer(replies, request)

            async with background(_poll(requests, on_request)):
                yield

    @asynccontextmanager
    async def dial(self) -> AsyncIterator[Call]:
        with self._subscribe(self._options.reply_stream) as replies, self._publish(self._options.stream) as requests:
            requests.await_connected(LIMIT)
            replies.await_connected(LIMIT)
            received: list[bytes] = []

            def on_reply(reply: pyaeron.BufferView, header: pyaeron.Header) -> None:
                received.append(bytes(reply))

            async def call(request: Payload) -> bytes:
                _offer(requests, request)
                while not replies.poll(on_reply):
                    await asyncio.sleep(0)
                return received.pop()

            yield call

    @asynccontextmanager
    async def receive(self) -> AsyncIterator[Consume]:
        with self._subscribe(self._options.stream) as subscription:

            async def consume(on_message: OnMessage) -> None:
                wanted = True

                def on_fragment(payload: pyaeron.BufferView, header: pyaeron.Header) -> None:
                    nonlocal wanted
                    wanted = on_message(payload)

                while wanted:
                    subscription.poll(on_fragment, FRAGMENT_LIMIT)
                    await asyncio.sleep(0)

            yield consume

    @asynccontextmanager
    async def send(self) -> AsyncIterator[Send]:
        with self._publish(self._options.stream) as publication:
            publication.await_connected(LIMIT)

            def send(messages: Sequence[Payload]) -> None:
                for message in messages:
                    _offer(publication, message)

            yield send

    @asynccontextmanager
    async def hold(self, count: int) -> AsyncIterator[None]:
        def ignore(payload: pyaeron.BufferView, header: pyaeron.Header) -> None:
            pass

        with ExitStack() as stack:
            subscriptions = [
                stack.enter_context(self._subscribe(self._options.stream + number)) for number in range(count)
            ]
            async with background(*(_poll(subscription, ignore) for subscription in subscriptions)):
                yield

    @asynccontextmanager
    async def visit(self, count: int) -> AsyncIterator[None]:
        with ExitStack() as stack:
            for number in range(count):
                publication = stack.enter_context(self._publish(self._options.stream + number))
                publication.await_connected(LIMIT)
            yield

    def _subscribe(self, stream: int) -> pyaeron.Subscription:
        return self._aeron.add_subscription(self._options.channel, stream)

    def _publish(self, stream: int) -> pyaeron.ExclusivePublication:
        return self._aeron.add_exclusive_publication(self._options.channel, stream)


async def _poll(subscription: pyaeron.Subscription, handler: Handler) -> None:
    while True:
        subscription.poll(handler, FRAGMENT_LIMIT)
        await asyncio.sleep(0)


def _offer(publication: pyaeron.ExclusivePublication, message: Payload | pyaeron.BufferView) -> None:
    while not publication.offer(message):
        time.sleep(0)


@asynccontextmanager
async def open_link(options: Options) -> AsyncIterator[PyaeronLink]:
    """The link of a client of its own."""
    with pyaeron.Aeron(dir=str(options.aeron_dir)) as aeron:
        yield PyaeronLink(aeron, options)

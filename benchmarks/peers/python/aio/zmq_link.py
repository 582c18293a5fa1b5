"""pyzmq's end of a link: PAIR sockets of `zmq.asyncio` over ipc://, the fastest that it has between two processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager

import zmq
import zmq.asyncio

from benchmarks.peers.python.aio.link import Call, Consume, OnMessage, Send
from benchmarks.peers.python.aio.options import Options
from benchmarks.peers.python.aio.tasks import background
from benchmarks.peers.python.messages import Payload


class ZmqLink:
    """One socket a stream; the receiving end binds."""

    def __init__(self, options: Options) -> None:
        self._options = options

    @asynccontextmanager
    async def echo(self) -> AsyncIterator[None]:
        with zmq.asyncio.Context() as context, self._bound(context) as socket:

            async def serve() -> None:
                while True:
                    await socket.send(await socket.recv())

            async with background(serve()):
                yield

    @asynccontextmanager
    async def dial(self) -> AsyncIterator[Call]:
        with zmq.asyncio.Context() as context, self._connected(context) as socket:

            async def call(request: Payload) -> bytes:
                await socket.send(request)
                reply: bytes = await socket.recv()
                return reply

            yield call

    @asynccontextmanager
    async def receive(self) -> AsyncIterator[Consume]:
        with zmq.asyncio.Context() as context, self._bound(context) as socket:

            async def consume(on_message: OnMessage) -> None:
                while on_message(await socket.recv()):
                    pass

            yield consume

    @asynccontextmanager
    async def send(self) -> AsyncIterator[Send]:
        with zmq.Context() as context, self._connected(context) as socket:

            def send(messages: Sequence[Payload]) -> None:
                for message in messages:
                    socket.send(message)

            yield send

    @asynccontextmanager
    async def hold(self, count: int) -> AsyncIterator[None]:
        async def drain(socket: zmq.asyncio.Socket) -> None:
            while True:
                await socket.recv()

        with zmq.asyncio.Context() as context, ExitStack() as stack:
            sockets = [stack.enter_context(self._bound(context, number)) for number in range(count)]
            async with background(*map(drain, sockets)):
                yield

    @asynccontextmanager
    async def visit(self, count: int) -> AsyncIterator[None]:
        with zmq.Context() as context, ExitStack() as stack:
            for number in range(count):
                stack.enter_context(self._connected(context, number))
            yield

    def _bound(self, context: zmq.Context, number: int = 0) -> zmq.Socket:
        socket = self._socket(context)
        socket.bind(self._endpoint(number))
        return socket

    def _connected(self, context: zmq.Context, number: int = 0) -> zmq.Socket:
        socket = self._socket(context)
        socket.connect(self._endpoint(number))
        return socket

    def _socket(self, context: zmq.Context) -> zmq.Socket:
        socket = context.socket(zmq.PAIR)
        # A sender stays until its receiver has everything: nothing that is still unsent then is worth waiting for.
        socket.linger = 0
        return socket

    def _endpoint(self, number: int) -> str:
        return f"ipc://{self._options.socket(number)}"


@asynccontextmanager
async def open_link(options: Options) -> AsyncIterator[ZmqLink]:
    """The link of a client that has nothing to open."""
    yield ZmqLink(options)

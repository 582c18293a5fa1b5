"""The standard library's end of a link: asyncio streams over Unix sockets, each message behind its length."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from benchmarks.peers.python.aio.link import Call, Consume, OnMessage, Send
from benchmarks.peers.python.aio.options import Options
from benchmarks.peers.python.aio.tasks import background
from benchmarks.peers.python.messages import Payload
from benchmarks.peers.python.protocol import LIMIT

_LENGTH = struct.Struct("<I")

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Accept = Callable[[], Awaitable[Streams]]


class StreamLink:
    """One connection a stream; the receiving end listens."""

    def __init__(self, options: Options) -> None:
        self._options = options

    @asynccontextmanager
    async def echo(self) -> AsyncIterator[None]:
        async with self._listening() as accept:

            async def serve() -> None:
                streams = await accept()
                while True:
                    await _write(streams, await _read(streams))

            async with background(serve()):
                yield

    @asynccontextmanager
    async def dial(self) -> AsyncIterator[Call]:
        streams = await asyncio.open_unix_connection(sock=self._connected())

        async def call(request: bytes) -> bytes:
            await _write(streams, request)
            return await _read(streams)

        try:
            yield call
        finally:
            streams[1].close()

    @asynccontextmanager
    async def receive(self) -> AsyncIterator[Consume]:
        async with self._listening() as accept:

            async def consume(on_message: OnMessage) -> None:
                streams = await accept()
                while on_message(await _read(streams)):
                    pass

            yield consume

    @asynccontextmanager
    async def send(self) -> AsyncIterator[Send]:
        with self._connected() as connection:

            def send(messages: Sequence[Payload]) -> None:
                connection.sendall(b"".join(_LENGTH.pack(len(message)) + message for message in messages))

            yield send

    @asynccontextmanager
    async def hold(self, count: int) -> AsyncIterator[None]:
        async def drain(accept: Accept) -> None:
            streams = await accept()
            while True:
                await _read(streams)

        async with AsyncExitStack() as stack:
            accepts = [await stack.enter_async_context(self._listening(number)) for number in range(count)]
            async with background(*map(drain, accepts)):
                yield

    @asynccontextmanager
    async def visit(self, count: int) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for number in range(count):
                stack.enter_context(self._connected(number))
            yield

    @asynccontextmanager
    async def _listening(self, number: int = 0) -> AsyncIterator[Accept]:
        connections: asyncio.Queue[Streams] = asyncio.Queue()
        server = await asyncio.start_unix_server(
            lambda reader, writer: connections.put_nowait((reader, writer)), self._options.socket(number)
        )
        try:
            yield connections.get
        finally:
            server.close()

    def _connected(self, number: int = 0) -> socket.socket:
        deadline = time.monotonic() + LIMIT
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(self._options.socket(number))
            except (FileNotFoundError, ConnectionRefusedError):
                connection.close()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.005)
            else:
                return connection


async def _read(streams: Streams) -> bytes:
    (length,) = _LENGTH.unpack(await streams[0].readexactly(_LENGTH.size))
    return await streams[0].readexactly(length)


async def _write(streams: Streams, message: Payload) -> None:
    streams[1].write(_LENGTH.pack(len(message)) + message)
    await streams[1].drain()


@asynccontextmanager
async def open_link(options: Options) -> AsyncIterator[StreamLink]:
    """The link of a client that has nothing to open."""
    yield StreamLink(options)

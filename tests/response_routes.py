"""What tests of response channels share: channels there and back, and ends that do not use `aeron_async.rpc`."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import anyio

from aeron_async import Client, Image, Publication, Subscription
from tests.support import LIMIT, eventually


@dataclass(frozen=True)
class Route:
    """The channels and streams of requests and responses."""

    requests: str
    responses: str
    stream_id: int

    @property
    def response_stream_id(self) -> int:
        return self.stream_id + 1

    @property
    def is_udp(self) -> bool:
        return self.requests.startswith("aeron:udp")

    def answers_to(self, image: Image) -> str:
        """The channel of the publication that answers the publisher of an image."""
        return f"{self.responses}|response-correlation-id={image.correlation_id}"


def route_of(media: str, stream_id: int) -> Route:
    """A route that is what `rpc` makes of its requests' channel by default."""
    if media == "ipc":
        return Route("aeron:ipc", "aeron:ipc?control-mode=response", stream_id)
    port = free_udp_port_pair()
    return Route(
        f"aeron:udp?endpoint=127.0.0.1:{port}",
        f"aeron:udp?control-mode=response|control=127.0.0.1:{port + 1}",
        stream_id,
    )


def free_udp_port_pair() -> int:
    """A UDP port of the loopback interface that nobody uses now, and neither the next one."""
    while True:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as first,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as second,
        ):
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
            return port


async def echo(request: bytes) -> bytes:
    """A handler that returns what it gets."""
    return request


@dataclass
class PlainDialler:
    """A dialler of plain publications and subscriptions; it reads what it is told to."""

    requests: Publication
    responses: Subscription

    async def wait_connected(self) -> None:
        await self.requests.wait_connected(LIMIT)
        await self.responses.wait_connected(LIMIT)


@asynccontextmanager
async def plain_dialler(client: Client, route: Route, parameters: str = "") -> AsyncIterator[PlainDialler]:
    """A dialler on its way to be connected; `parameters` are more ones of its response channel."""
    async with AsyncExitStack() as stack:
        responses = await stack.enter_async_context(
            await client.add_subscription(route.responses + parameters, route.response_stream_id)
        )
        separator = "|" if "?" in route.requests else "?"
        requests = await stack.enter_async_context(
            await client.add_exclusive_publication(
                f"{route.requests}{separator}response-correlation-id={responses.registration_id}", route.stream_id
            )
        )
        yield PlainDialler(requests, responses)


@asynccontextmanager
async def plain_server(
    client: Client, route: Route, answer: Callable[[bytes, Publication], list[bytes]]
) -> AsyncIterator[None]:
    """A server of plain publications and subscriptions: publishes what `answer(request, publication)` returns."""
    publications: dict[int, Publication] = {}

    async def begin(image: Image) -> None:
        publications[image.session_id] = await client.add_publication(route.answers_to(image), route.response_stream_id)

    async def end(image: Image) -> None:
        await publications.pop(image.session_id).aclose()

    async with (
        await client.add_subscription(
            route.requests, route.stream_id, on_available_image=begin, on_unavailable_image=end
        ) as requests,
        anyio.create_task_group() as tasks,
    ):

        async def serve() -> None:
            async for message in requests:
                session_id = message.header.session_id
                # A request may be read before the publication for its image has been added.
                await eventually(lambda session_id=session_id: session_id in publications)
                publication = publications[session_id]
                for frame in answer(message.payload, publication):
                    await publication.publish(frame, timeout=LIMIT)

        tasks.start_soon(serve)
        yield
        tasks.cancel_scope.cancel()

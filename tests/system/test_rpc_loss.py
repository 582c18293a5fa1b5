"""Servers and diallers that go, with or without a word, and come again."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from aeron_async import (
    AeronError,
    Client,
    ClientClosedError,
    ClosedError,
    DriverShutdownError,
    Image,
    NotConnectedError,
    Publication,
    RemoteError,
    Subscription,
    connect,
    rpc,
)
from aeron_async.protocol.rpc_frames import FrameKind, encode_header
from tests.conftest import BACKENDS
from tests.response_routes import Route, echo, plain_dialler, route_of
from tests.support import LIMIT, RUNNERS, Program, eventually, holds_nothing, quick_config, run_program, running_driver

pytestmark = pytest.mark.anyio


class Stuck:
    """A handler that never returns."""

    def __init__(self) -> None:
        self.running = 0

    async def __call__(self, request: bytes) -> bytes:
        self.running += 1
        try:
            await anyio.sleep_forever()
        finally:
            self.running -= 1
        raise AssertionError


@asynccontextmanager
async def failing_calls(remote: rpc.Remote, error: type[AeronError], count: int = 3) -> AsyncIterator[None]:
    """Calls that are under way when the body begins, and have failed with `error` a moment after it."""

    async def call() -> None:
        with pytest.raises(error):
            await remote.call(b"", timeout=None)

    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as tasks:
            for _ in range(count):
                tasks.start_soon(call)
            await eventually(lambda: remote.pending_calls == count)
            yield


async def test_a_server_that_stops_fails_the_calls_and_is_found_again(
    client: Client, other_client: Client, route: Route
) -> None:
    stuck = Stuck()
    serving = rpc.serve(other_client, route.requests, route.stream_id, stuck)
    await serving.__aenter__()
    async with rpc.dial(client, route.requests, route.stream_id) as remote:
        for _ in range(3):
            async with failing_calls(remote, NotConnectedError):
                await eventually(lambda: stuck.running == 3)
                await serving.__aexit__(None, None, None)
            assert stuck.running == 0
            assert not remote.is_connected
            with pytest.raises(NotConnectedError, match="the server is gone"):
                await remote.call(b"", timeout=LIMIT)
            with pytest.raises(NotConnectedError):
                await remote.wait_connected(timeout=0.01)

            async with rpc.serve(other_client, route.requests, route.stream_id, echo):
                await remote.wait_connected(LIMIT)
                assert await remote.call(b"back", timeout=LIMIT) == b"back"

            serving = rpc.serve(other_client, route.requests, route.stream_id, stuck)
            await serving.__aenter__()
            await eventually(lambda: not remote.is_connected)
            await remote.wait_connected(LIMIT)
        await serving.__aexit__(None, None, None)
    await eventually(lambda: holds_nothing(client))


async def test_requests_are_not_carried_out_for_a_dialler_that_cannot_be_answered(
    client: Client, stream_id: int
) -> None:
    route = route_of("ipc", 2 * stream_id)
    requests: list[bytes] = []

    async def handler(request: bytes) -> bytes:
        requests.append(request)
        return request

    # A dialler whose server was replaced is bound to its answers still.
    async with (
        await client.add_subscription(route.requests, route.stream_id) as replaced,
        plain_dialler(client, route) as bound,
    ):
        await replaced.wait_connected(LIMIT)
        async with (
            await client.add_publication(route.answers_to(replaced.images[0]), route.response_stream_id),
            rpc.serve(client, route.requests, route.stream_id, handler),
            rpc.dial(client, route.requests, route.stream_id) as remote,
        ):
            await bound.requests.publish(encode_header(1, FrameKind.REQUEST) + b"bound", timeout=LIMIT)
            assert await remote.call(b"free", timeout=LIMIT) == b"free"
    assert requests == [b"free"]


@pytest.mark.parametrize("direction", ["requests", "responses"])
async def test_a_server_that_goes_in_one_direction_is_lost(client: Client, route: Route, direction: str) -> None:
    resources: dict[str, Publication | Subscription] = {}

    async def answer(image: Image) -> None:
        resources["responses"] = await client.add_publication(route.answers_to(image), route.response_stream_id)

    resources["requests"] = await client.add_subscription(route.requests, route.stream_id, on_available_image=answer)
    async with rpc.dial(client, route.requests, route.stream_id) as remote, failing_calls(remote, NotConnectedError):
        await resources[direction].aclose()


async def test_a_server_whose_client_is_closed_is_lost(client: Client, aeron_dir: Path, route: Route) -> None:
    async with (
        connect(aeron_dir) as other,
        rpc.serve(other, route.requests, route.stream_id, Stuck()),
        rpc.dial(client, route.requests, route.stream_id) as remote,
        failing_calls(remote, NotConnectedError),
    ):
        await other.aclose()


async def test_a_dialler_whose_client_is_closed_says_so(client: Client, aeron_dir: Path, route: Route) -> None:
    async with connect(aeron_dir) as other, rpc.serve(client, route.requests, route.stream_id, Stuck()) as server:
        async with rpc.dial(other, route.requests, route.stream_id) as remote:
            async with failing_calls(remote, ClosedError):
                await other.aclose()
            with pytest.raises(ClosedError):
                await remote.call(b"")
            with pytest.raises(ClosedError):
                await remote.wait_connected(LIMIT)
        await eventually(lambda: server.dialler_count == 0)


@pytest.mark.usefixtures("runtime_dir")
async def test_a_driver_that_dies_fails_the_calls_with_the_clients_reason(route: Route) -> None:
    async with (
        connect(driver=quick_config()) as client,
        rpc.serve(client, route.requests, route.stream_id, Stuck()),
        rpc.dial(client, route.requests, route.stream_id) as remote,
    ):
        assert client.driver is not None
        async with failing_calls(remote, DriverShutdownError):
            os.kill(client.driver.pid, signal.SIGKILL)
        with pytest.raises(ClientClosedError):
            await remote.call(b"")


SERVER = """
import anyio, sys
from aeron_async import connect, rpc

async def handler(request):
    if request == b"name":
        return sys.argv[4].encode()
    print("asked", flush=True)
    await anyio.sleep_forever()

async def main():
    async with connect(sys.argv[1], keepalive_interval=0.1) as client:
        async with rpc.serve(client, sys.argv[2], int(sys.argv[3]), handler):
            print("ready", flush=True)
            await anyio.sleep_forever()

anyio.run(main)
"""


async def test_a_server_that_is_killed_fails_the_calls_and_its_successor_is_found(route: Route) -> None:
    with running_driver(client_liveness_timeout=1.0) as driver:
        async with connect(driver.aeron_dir, keepalive_interval=0.1) as client:
            with Program(SERVER, driver.aeron_dir, route.requests, route.stream_id, "first") as first:
                assert first.line() == "ready"
                async with rpc.dial(client, route.requests, route.stream_id, timeout=LIMIT) as remote:
                    assert await remote.call(b"name", timeout=LIMIT) == b"first"
                    async with failing_calls(remote, NotConnectedError, count=1):
                        assert await anyio.to_thread.run_sync(first.line) == "asked"
                        first.signal(signal.SIGKILL)
                    with Program(SERVER, driver.aeron_dir, route.requests, route.stream_id, "second"):
                        await remote.wait_connected(LIMIT)
                        assert await remote.call(b"name", timeout=LIMIT) == b"second"


async def test_calls_that_wait_for_room_in_the_stream_fail_with_the_server(
    client: Client, other_client: Client, route: Route
) -> None:
    serving = rpc.serve(other_client, route.requests, route.stream_id, Stuck(), concurrency=1)
    await serving.__aenter__()
    async with rpc.dial(client, route.requests, route.stream_id) as remote:

        async def call() -> None:
            with pytest.raises(NotConnectedError):
                await remote.call(bytes(8000), timeout=None)

        with anyio.fail_after(LIMIT):
            async with anyio.create_task_group() as tasks:
                for _ in range(100):
                    tasks.start_soon(call)
                await eventually(lambda: remote.pending_calls == 100)
                await serving.__aexit__(None, None, None)
        assert remote.pending_calls == 0


async def test_a_subscriber_that_does_not_answer_keeps_nobody_from_finding_the_server(
    aeron_dir: Path, route: Route
) -> None:
    async with connect(aeron_dir, driver_timeout=1.0, keepalive_interval=0.1) as client:
        serving = rpc.serve(client, route.requests, route.stream_id, echo)
        await serving.__aenter__()
        async with rpc.dial(client, route.requests, route.stream_id) as remote:
            await serving.__aexit__(None, None, None)
            await eventually(lambda: not remote.is_connected)
            async with await client.add_subscription(route.requests, route.stream_id) as silent:
                # It was given up once, and dialled again.
                await silent.wait_connected(LIMIT)
                first = {image.session_id for image in silent.images}
                await eventually(lambda: {image.session_id for image in silent.images} - first)
                assert not remote.is_connected
            async with rpc.serve(client, route.requests, route.stream_id, echo):
                await remote.wait_connected(LIMIT)
                assert await remote.call(b"back", timeout=LIMIT) == b"back"


async def test_a_dialler_that_goes_during_its_calls_leaves_nothing_at_the_server(client: Client, route: Route) -> None:
    gate = anyio.Event()

    async def handler(request: bytes) -> bytes:
        await gate.wait()
        return request

    async with rpc.serve(client, route.requests, route.stream_id, handler) as server:
        dialling = rpc.dial(client, route.requests, route.stream_id)
        async with failing_calls(await dialling.__aenter__(), ClosedError, count=10):
            await dialling.__aexit__(None, None, None)
        await eventually(lambda: server.dialler_count == 0)
        gate.set()
        async with rpc.dial(client, route.requests, route.stream_id, timeout=LIMIT) as remote:
            assert await remote.call(b"next", timeout=LIMIT) == b"next"
            assert remote.ignored_frames == 0
    await eventually(lambda: holds_nothing(client))


async def test_dialling_that_is_cancelled_leaves_nothing(client: Client, route: Route) -> None:
    async with await client.add_subscription(route.requests, route.stream_id) as requests:
        for delay in (0, 0.001, 0.01, 0.1):
            with anyio.move_on_after(delay):
                async with rpc.dial(client, route.requests, route.stream_id, timeout=None):
                    raise AssertionError
        await eventually(lambda: requests.image_count == 0)
    await eventually(lambda: holds_nothing(client))


async def test_serving_that_is_cancelled_leaves_nothing(client: Client, route: Route) -> None:
    for delay in (0, 0.001, 0.01, 0.1):
        with anyio.move_on_after(delay):
            async with rpc.serve(client, route.requests, route.stream_id, echo):
                await anyio.sleep_forever()
    await eventually(lambda: holds_nothing(client))


# Trio cancels by scopes: there, no handler is cancelled on its own.
@pytest.mark.parametrize("anyio_backend", [BACKENDS["asyncio"], BACKENDS["uvloop"]])
async def test_a_handler_that_is_cancelled_on_its_own_is_an_error(client: Client, stream_id: int) -> None:
    async def handler(request: bytes) -> bytes:
        raise asyncio.CancelledError

    async with (
        rpc.serve(client, "aeron:ipc", 2 * stream_id, handler),
        rpc.dial(client, "aeron:ipc", 2 * stream_id) as remote,
    ):
        with pytest.raises(RemoteError, match="the handler was cancelled"):
            await remote.call(b"", timeout=LIMIT)


LEAVER = """
import anyio, sys
from aeron_async import connect, rpc

async def echo(request):
    return request

async def main():
    client = await connect(sys.argv[1])
    serving = rpc.serve(client, sys.argv[2], 1, echo)
    await serving.__aenter__()
    dialling = rpc.dial(client, sys.argv[2], 1)
    remote = await dialling.__aenter__()
    assert await remote.call(b"last words") == b"last words"
    kept.append((serving, dialling))

kept = []
"""


@pytest.mark.parametrize("loop", RUNNERS)
def test_a_program_that_ends_without_leaving_its_contexts_ends_quietly(
    aeron_dir: Path, route: Route, loop: str
) -> None:
    assert run_program(LEAVER + RUNNERS[loop], aeron_dir, route.requests) == ""

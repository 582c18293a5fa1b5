"""Calls over response channels between Java and us, over IPC and UDP; for UDP, Java's end is Aeron's own."""

from __future__ import annotations

import anyio
import pytest

import aeron_async
from aeron_async import rpc
from tests import java
from tests.interop.calls import exchange, reverse
from tests.interop.peers import HERE, PEER_TIMEOUT, running
from tests.response_routes import Route, route_of

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), pytest.mark.usefixtures("rpc_peer")]

JAVA_RPC = HERE / "java" / "RpcPeer.java"
STREAM_ID = 1001
JAVA_CALLS = 501


@pytest.fixture(scope="module")
def rpc_peer() -> None:
    """Compiled here so that no event loop waits for it."""
    java.compiled(JAVA_RPC)


@pytest.fixture(params=["ipc", "udp"])
def route(request: pytest.FixtureRequest) -> Route:
    return route_of(request.param, STREAM_ID)


def java_rpc(mode: str, client: aeron_async.Client, route: Route) -> list[str]:
    """The command line of a Java server or dialler."""
    streams = (route.requests, str(route.stream_id), route.responses, str(route.response_stream_id))
    return java.java_command(JAVA_RPC, mode, client.aeron_dir, *streams)


async def test_c9_our_diallers_call_a_java_server(client: aeron_async.Client, route: Route) -> None:
    async with (
        running(java_rpc("serve", client, route)) as server,
        rpc.dial(client, route.requests, route.stream_id, timeout=PEER_TIMEOUT) as one,
        rpc.dial(client, route.requests, route.stream_id, timeout=PEER_TIMEOUT) as two,
        anyio.create_task_group() as tasks,
    ):
        await server.read_until("serving")
        tasks.start_soon(exchange, one, 1)
        tasks.start_soon(exchange, two, 2)


async def test_c9_java_diallers_and_ours_call_our_server(client: aeron_async.Client, route: Route) -> None:
    async with (
        rpc.serve(client, route.requests, route.stream_id, reverse) as server,
        running(java_rpc("dial", client, route)) as java_one,
        running(java_rpc("dial", client, route)) as java_two,
        rpc.dial(client, route.requests, route.stream_id, timeout=PEER_TIMEOUT) as ours,
    ):
        await exchange(ours, 3)
        for dialler in (java_one, java_two):
            await dialler.finish()
            assert f"ok: {JAVA_CALLS} answers" in dialler.text
        assert server.ignored_frames == 0

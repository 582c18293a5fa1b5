"""Our client on Java's media driver."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import pytest

import aeron_async
from aeron_async import rpc
from aeron_async.protocol.error_codes import ErrorCode
from tests import java
from tests.interop.calls import exchange, reverse
from tests.interop.exchange import publish_to, receive_from
from tests.interop.peers import PEER_TIMEOUT, Peer, PeerCommand, running
from tests.interop.stream import messages
from tests.response_routes import route_of
from tests.support import scratch_folder

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), pytest.mark.usefixtures("java_peer")]

STREAM_ID = 1001


@pytest.fixture
def aeron_dir() -> Iterator[Path]:
    with scratch_folder() as folder:
        yield folder / "driver"


@pytest.fixture
async def java_driver(aeron_dir: Path) -> AsyncIterator[Peer]:
    """A Java media driver of the test's own."""
    properties = {
        "aeron.dir": aeron_dir,
        "aeron.threading.mode": "SHARED",
        "aeron.shared.idle.strategy": "org.agrona.concurrent.BackoffIdleStrategy",
        "aeron.term.buffer.sparse.file": "true",
    }
    async with running(java.java_command("io.aeron.driver.MediaDriver", properties=properties)) as driver:
        yield driver


@pytest.fixture
async def client(java_driver: Peer, aeron_dir: Path) -> AsyncIterator[aeron_async.Client]:
    async with aeron_async.connect(aeron_dir, driver="external", driver_timeout=30) as client:
        yield client


async def test_java_receives_what_we_publish(client: aeron_async.Client, channel: str, java_peer: PeerCommand) -> None:
    async with (
        await client.add_publication(channel, STREAM_ID) as publication,
        running(java_peer("subscribe", client.aeron_dir, channel, STREAM_ID)) as peer,
    ):
        await publish_to(peer, publication)


async def test_we_receive_what_java_publishes(client: aeron_async.Client, channel: str, java_peer: PeerCommand) -> None:
    async with (
        await client.add_subscription(channel, STREAM_ID) as subscription,
        running(java_peer("publish", client.aeron_dir, channel, STREAM_ID)) as peer,
    ):
        await receive_from(subscription, peer)


async def test_we_receive_what_we_publish(client: aeron_async.Client, channel: str) -> None:
    async with (
        await client.add_subscription(channel, STREAM_ID) as subscription,
        await client.add_exclusive_publication(channel, STREAM_ID) as publication,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(receive_from, subscription)
        for message in messages():
            await publication.publish(message, timeout=PEER_TIMEOUT)


async def test_its_errors_reach_us_with_code_and_text(client: aeron_async.Client) -> None:
    with pytest.raises(aeron_async.RegistrationError) as raised:
        await client.add_publication("aeron:udp?endpoint=nonsense", STREAM_ID)
    assert raised.value.code == ErrorCode.INVALID_CHANNEL
    assert "nonsense" in str(raised.value)
    async with await client.add_publication("aeron:ipc", STREAM_ID) as publication:
        assert publication.session_id


async def test_a_counter_is_there_for_its_life(client: aeron_async.Client) -> None:
    async with await client.add_counter(1001, b"key", "a counter of ours") as counter:
        counter.value = 42
        (info,) = client.counters.find(type_id=1001)
        assert (info.id, info.label, info.value) == (counter.id, "a counter of ours", 42)
        assert info.key.rstrip(b"\0") == b"key"
        assert info.owner_id == client.client_id
    assert client.counters.find(type_id=1001) == []


@pytest.mark.parametrize("media", ["ipc", "udp"])
async def test_calls_get_their_replies(client: aeron_async.Client, media: str) -> None:
    route = route_of(media, STREAM_ID)
    async with (
        rpc.serve(client, route.requests, route.stream_id, reverse),
        rpc.dial(client, route.requests, route.stream_id) as one,
        rpc.dial(client, route.requests, route.stream_id) as two,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(exchange, one, 1)
        tasks.start_soon(exchange, two, 2)


async def test_its_end_closes_the_client(client: aeron_async.Client, java_driver: tuple[Peer, Path]) -> None:
    async with await client.add_publication("aeron:ipc", STREAM_ID) as publication:
        await java_driver.stop()
        with anyio.fail_after(PEER_TIMEOUT):
            reason = await client.wait_closed()
        assert reason in (aeron_async.CloseReason.DRIVER_SHUTDOWN, aeron_async.CloseReason.DRIVER_TIMEOUT)
        assert publication.offer(b"late") == aeron_async.OfferResult.CLOSED

"""Aeron's own Java samples with us on the bundled driver."""

from __future__ import annotations

import re

import anyio
import pytest

import aeron_async
from tests.interop.peers import PEER_TIMEOUT, channel_of, running
from tests.interop.samples import STREAM_ID, sample
from tests.interop.stream import messages

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), pytest.mark.usefixtures("java_peer")]

PONG_STREAM_ID = 1002


@pytest.fixture(params=["ipc", "udp"])
def channel_pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Two channels of the same media, there and back."""
    return channel_of(request.param), channel_of(request.param)


async def test_basic_subscriber_prints_what_we_publish(client: aeron_async.Client, channel: str) -> None:
    published = [f"Hello World! {number}" for number in range(100)]
    published.insert(50, "fragmented " * 1000)
    published.append("the end")
    async with (
        await client.add_publication(channel, STREAM_ID) as publication,
        running(sample("BasicSubscriber", client.aeron_dir, channel=channel, streamId=STREAM_ID)) as subscriber,
    ):
        await publication.wait_connected(timeout=PEER_TIMEOUT)
        for text in published:
            await publication.publish(text.encode(), timeout=PEER_TIMEOUT)
        await subscriber.read_until("<<the end>>")
    printed = re.findall(
        rf"Message to stream {STREAM_ID} from session {publication.session_id} \(.*\) <<(.*)>>", subscriber.text
    )
    assert printed == published


async def test_we_receive_what_basic_publisher_sends(client: aeron_async.Client, channel: str) -> None:
    command = sample(
        "BasicPublisher", client.aeron_dir, channel=channel, streamId=STREAM_ID, messages=3, lingerTimeout=0
    )
    async with await client.add_subscription(channel, STREAM_ID) as subscription, running(command) as publisher:
        received = []
        with anyio.fail_after(PEER_TIMEOUT):
            async for payload in subscription.payloads():
                received.append(payload.decode())
                if payload == b"Hello World! 2":
                    break
        await publisher.finish()
    # What it offers before it is connected to us is lost, and it says so.
    sent = re.findall(r"Offering (\d)/3 - yay!", publisher.text)
    assert received == [f"Hello World! {number}" for number in sent]


@pytest.mark.parametrize("message_length", [32, 5000])
async def test_we_are_the_pong_of_ping(
    client: aeron_async.Client, channel_pair: tuple[str, str], message_length: int
) -> None:
    ping_channel, pong_channel = channel_pair
    command = sample(
        "Ping",
        client.aeron_dir,
        ping_channel=ping_channel,
        ping_streamId=STREAM_ID,
        pong_channel=pong_channel,
        pong_streamId=PONG_STREAM_ID,
        warmup_iterations=1,
        warmup_messages=100,
        messages=1000,
        messageLength=message_length,
    )
    async with (
        await client.add_subscription(ping_channel, STREAM_ID) as pings,
        await client.add_publication(pong_channel, PONG_STREAM_ID) as pongs,
        running(command, stdin=b"n\n") as ping,
    ):
        sent_at = []
        with anyio.fail_after(PEER_TIMEOUT):
            async for payload in pings.payloads():
                assert len(payload) == message_length
                sent_at.append(int.from_bytes(payload[:8], "little", signed=True))
                await pongs.publish(payload, timeout=PEER_TIMEOUT)
                if len(sent_at) == 1100:
                    break
        await ping.finish()
    assert sent_at == sorted(sent_at)
    assert re.search(r"Total count\s+=\s+1000\b", ping.text)


async def test_pong_returns_what_we_send(client: aeron_async.Client, channel_pair: tuple[str, str]) -> None:
    ping_channel, pong_channel = channel_pair
    command = sample(
        "Pong",
        client.aeron_dir,
        ping_channel=ping_channel,
        ping_streamId=STREAM_ID,
        pong_channel=pong_channel,
        pong_streamId=PONG_STREAM_ID,
    )
    async with (
        await client.add_subscription(pong_channel, PONG_STREAM_ID) as pongs,
        await client.add_exclusive_publication(ping_channel, STREAM_ID) as pings,
        running(command),
    ):
        await pings.wait_connected(timeout=PEER_TIMEOUT)
        await pongs.wait_connected(timeout=PEER_TIMEOUT)
        echoes = pongs.payloads()
        for message in messages():
            await pings.publish(message, timeout=PEER_TIMEOUT)
            with anyio.fail_after(PEER_TIMEOUT):
                assert await anext(echoes) == message

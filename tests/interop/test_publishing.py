"""Claims and multi-destination cast between Java, pyaeron and us: every byte, in order."""

from __future__ import annotations

import anyio
import pytest

import aeron_async
from tests.interop.exchange import receive_from
from tests.interop.peers import PEER_TIMEOUT, Peer, PeerCommand, java_stream, running
from tests.interop.stream import CHANNEL_PARAMETERS, messages
from tests.support import free_udp_port

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

STREAM_ID = 1001
# With fewer than three receivers nobody is connected: who is not there yet would miss the beginning of the stream.
CAST = f"aeron:udp?control-mode=manual|{CHANNEL_PARAMETERS}|fc=min,g:/3"


def endpoints(count: int) -> list[str]:
    return [f"aeron:udp?endpoint=127.0.0.1:{free_udp_port()}" for _ in range(count)]


async def claim_to(peer: Peer, publication: aeron_async.Publication) -> None:
    """Publish the stream by claims where a message fits, and give up one before each; the peer has to get all of it."""
    expected = messages()
    await publication.wait_connected(timeout=PEER_TIMEOUT)
    for message in expected:
        if len(message) > publication.max_payload_length:
            await publication.publish(message, timeout=PEER_TIMEOUT)
            continue
        (await publication.claim(len(message), timeout=PEER_TIMEOUT)).abort()
        with await publication.claim(len(message), timeout=PEER_TIMEOUT) as claim:
            claim.buffer[:] = message
    await peer.finish()
    assert f"ok: {len(expected)} messages" in peer.text


@pytest.mark.parametrize("kind", ["shared", "exclusive"])
async def test_b7_they_receive_what_we_claim(
    client: aeron_async.Client, channel: str, peer_command: PeerCommand, kind: str
) -> None:
    add = client.add_publication if kind == "shared" else client.add_exclusive_publication
    async with (
        await add(channel, STREAM_ID) as publication,
        running(peer_command("subscribe", client.aeron_dir, channel, STREAM_ID)) as peer,
    ):
        await claim_to(peer, publication)


async def test_b7_we_receive_what_they_claim(
    client: aeron_async.Client, channel: str, peer_command: PeerCommand
) -> None:
    async with (
        await client.add_subscription(channel, STREAM_ID) as subscription,
        running(peer_command("claim", client.aeron_dir, channel, STREAM_ID)) as peer,
    ):
        await receive_from(subscription, peer)


async def test_b9_our_cast_reaches_java_pyaeron_and_us(
    client: aeron_async.Client, java_peer: PeerCommand, pyaeron_peer: PeerCommand
) -> None:
    destinations = endpoints(3)
    expected = messages()
    async with (
        await client.add_subscription(destinations[0], STREAM_ID) as subscription,
        running(java_peer("subscribe", client.aeron_dir, destinations[1], STREAM_ID)) as java_receiver,
        running(pyaeron_peer("subscribe", client.aeron_dir, destinations[2], STREAM_ID)) as pyaeron_receiver,
        await client.add_publication(CAST, STREAM_ID) as publication,
        anyio.create_task_group() as tasks,
    ):
        for destination in destinations:
            await publication.add_destination(destination)
        tasks.start_soon(receive_from, subscription)
        await publication.publish_many(expected, timeout=PEER_TIMEOUT)
        for receiver in (java_receiver, pyaeron_receiver):
            await receiver.finish()
            assert f"ok: {len(expected)} messages" in receiver.text


@pytest.mark.usefixtures("java_peer")
async def test_b9_javas_cast_reaches_us(client: aeron_async.Client) -> None:
    destinations = endpoints(3)
    subscriptions = [await client.add_subscription(destination, STREAM_ID) for destination in destinations]
    command = java_stream("publish", client.aeron_dir, CAST, STREAM_ID, *destinations)
    async with running(command) as sender, anyio.create_task_group() as tasks:
        for subscription in subscriptions[1:]:
            tasks.start_soon(receive_from, subscription)
        await receive_from(subscriptions[0], sender)

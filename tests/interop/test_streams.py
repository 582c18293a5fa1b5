"""Java and pyaeron with us on the bundled driver, in both directions, over IPC and UDP: every byte, in order."""

from __future__ import annotations

import pytest

import aeron_async
from tests.interop.exchange import publish_to, receive_from
from tests.interop.peers import PeerCommand, running

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

STREAM_ID = 1001


async def test_they_receive_what_we_publish(
    client: aeron_async.Client, channel: str, peer_command: PeerCommand
) -> None:
    async with (
        await client.add_publication(channel, STREAM_ID) as publication,
        running(peer_command("subscribe", client.aeron_dir, channel, STREAM_ID)) as peer,
    ):
        await publish_to(peer, publication)


async def test_they_receive_what_we_publish_exclusively(
    client: aeron_async.Client, channel: str, peer_command: PeerCommand
) -> None:
    async with (
        await client.add_exclusive_publication(channel, STREAM_ID) as publication,
        running(peer_command("subscribe", client.aeron_dir, channel, STREAM_ID)) as peer,
    ):
        await publish_to(peer, publication)


async def test_we_receive_what_they_publish(
    client: aeron_async.Client, channel: str, peer_command: PeerCommand
) -> None:
    async with (
        await client.add_subscription(channel, STREAM_ID) as subscription,
        running(peer_command("publish", client.aeron_dir, channel, STREAM_ID)) as peer,
    ):
        await receive_from(subscription, peer)


async def test_java_pyaeron_and_we_receive_the_same_stream(
    client: aeron_async.Client, channel: str, java_peer: PeerCommand, pyaeron_peer: PeerCommand
) -> None:
    async with (
        running(java_peer("subscribe", client.aeron_dir, channel, STREAM_ID)) as java_receiver,
        running(pyaeron_peer("subscribe", client.aeron_dir, channel, STREAM_ID)) as pyaeron_receiver,
        await client.add_subscription(channel, STREAM_ID) as subscription,
    ):
        for receiver in (java_receiver, pyaeron_receiver):
            await receiver.read_until("subscribed")
        async with running(java_peer("publish", client.aeron_dir, channel, STREAM_ID)) as sender:
            await receive_from(subscription, sender)
        for receiver in (java_receiver, pyaeron_receiver):
            await receiver.finish()

"""Rows of the parity table that others take part in: every byte, in order, over the bundled driver."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence

import anyio
import pytest

import aeron_async
from tests import java
from tests.interop.exchange import publish_to, receive_from
from tests.interop.peers import JAVA_STREAM, PEER_TIMEOUT, Peer, PeerCommand, java_stream, running
from tests.interop.stream import MAX_PAYLOAD, MTU, messages
from tests.support import free_udp_port

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

STREAM_ID = 1001
HEADER_LENGTH = 32
TERM_LENGTH = 64 * 1024
SMALL_TERMS = f"term-length={TERM_LENGTH}|mtu={MTU}"

AROUND_THE_MTU = tuple(
    max(0, fragments * MAX_PAYLOAD + more) for fragments in range(6) for more in (-33, -32, -31, -1, 0, 1, 31, 32, 33)
)


def around_term_ends() -> Iterator[int]:
    """Yield lengths of messages that end a frame header before a term's end, there, and a byte over it.

    Those that end the terms have up to three fragments; the others fill them.
    """
    offset = 0
    for fragments, more in itertools.product(range(3), (-HEADER_LENGTH, 0, 1)):
        while TERM_LENGTH - offset > (fragments + 1) * MTU:
            yield MAX_PAYLOAD
            offset += MTU
        last_frame = TERM_LENGTH - offset - fragments * MTU
        yield fragments * MAX_PAYLOAD + last_frame - HEADER_LENGTH + more
        # What does not fit begins the next term.
        offset = fragments * MTU + last_frame + HEADER_LENGTH if more > 0 else 0


AROUND_TERM_ENDS = tuple(around_term_ends())
SWEEPS = pytest.mark.parametrize(
    "lengths", [pytest.param(AROUND_THE_MTU, id="mtu"), pytest.param(AROUND_TERM_ENDS, id="terms")]
)


def endpoint() -> str:
    return f"endpoint=127.0.0.1:{free_udp_port()}"


@pytest.fixture(params=["ipc", "udp"])
def channel(request: pytest.FixtureRequest) -> str:
    """A channel with the smallest terms."""
    return f"aeron:ipc?{SMALL_TERMS}" if request.param == "ipc" else f"aeron:udp?{endpoint()}|{SMALL_TERMS}"


@pytest.fixture(scope="session")
def older_java_peer() -> PeerCommand:
    """The Java end with an older Aeron."""
    java.compiled(JAVA_STREAM, java.OLDER_AERON_VERSION)
    return functools.partial(java_stream, version=java.OLDER_AERON_VERSION)


@pytest.fixture(params=["java_peer", "older_java_peer", "pyaeron_peer"])
def peer_command(request: pytest.FixtureRequest) -> PeerCommand:
    """Each of the others' ends."""
    command: PeerCommand = request.getfixturevalue(request.param)
    return command


async def receive_streams(subscription: aeron_async.Subscription, count: int, lengths: Sequence[int]) -> set[int]:
    """Receive the whole stream from so many publishers, and return their session ids."""
    expected = messages(lengths)
    received: defaultdict[int, list[bytes]] = defaultdict(list)
    with anyio.fail_after(PEER_TIMEOUT):
        incoming = aiter(subscription)
        for _ in range(count * len(expected)):
            message = await anext(incoming)
            received[message.header.session_id].append(message.payload)
    assert list(received.values()) == [expected] * count
    assert len(subscription.poll_batch()) == 0
    return set(received)


async def publish(publication: aeron_async.Publication, lengths: Sequence[int]) -> None:
    """Publish the stream one message at a time."""
    for message in messages(lengths):
        await publication.publish(message, timeout=PEER_TIMEOUT)


async def finish(peer: Peer, lengths: Sequence[int], streams: int = 1) -> None:
    """Wait until a peer has ended, which has to have sent or received all there is."""
    await peer.finish()
    assert f"ok: {streams * len(lengths)} messages" in peer.text


async def ended(image: aeron_async.Image) -> None:
    """Return when the image has reported the end of its stream."""
    with anyio.fail_after(PEER_TIMEOUT):
        while not image.is_end_of_stream:
            await anyio.sleep(0.01)


# --- B3: messages of several pieces -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["shared", "exclusive"])
async def test_b3_they_receive_what_we_publish_from_pieces(
    client: aeron_async.Client, channel: str, peer_command: PeerCommand, kind: str
) -> None:
    add = client.add_publication if kind == "shared" else client.add_exclusive_publication
    command = peer_command("subscribe", client.aeron_dir, channel, STREAM_ID, lengths=AROUND_THE_MTU)
    async with await add(channel, STREAM_ID) as publication, running(command) as peer:
        for message in messages(AROUND_THE_MTU):
            half = len(message) // 2
            pieces: list[bytes | bytearray | memoryview] = [
                message[:1],
                b"",
                bytearray(message[1:half]),
                memoryview(message)[max(1, half) :],
            ]
            await publication.publish_vectored(pieces, timeout=PEER_TIMEOUT)
        await finish(peer, AROUND_THE_MTU)


async def test_b3_we_receive_what_they_publish_from_pieces(
    client: aeron_async.Client, channel: str, peer_command: PeerCommand
) -> None:
    command = peer_command("vector", client.aeron_dir, channel, STREAM_ID, lengths=AROUND_THE_MTU)
    async with await client.add_subscription(channel, STREAM_ID) as subscription, running(command) as peer:
        await receive_from(subscription, peer, AROUND_THE_MTU)


# --- B6: messages around the edges of fragments and terms -------------------------------------------------------------


@SWEEPS
async def test_b6_they_receive_what_we_publish_around_edges(
    client: aeron_async.Client, channel: str, peer_command: PeerCommand, lengths: Sequence[int]
) -> None:
    command = peer_command("subscribe", client.aeron_dir, channel, STREAM_ID, lengths=lengths)
    async with await client.add_publication(channel, STREAM_ID) as publication, running(command) as peer:
        await publish_to(peer, publication, lengths)


@SWEEPS
async def test_b6_we_receive_what_they_publish_around_edges(
    client: aeron_async.Client, channel: str, peer_command: PeerCommand, lengths: Sequence[int]
) -> None:
    command = peer_command("publish", client.aeron_dir, channel, STREAM_ID, lengths=lengths)
    async with await client.add_subscription(channel, STREAM_ID) as subscription, running(command) as peer:
        await receive_from(subscription, peer, lengths)


async def test_b6_the_edges_are_those_of_the_terms(client: aeron_async.Client, channel: str) -> None:
    async with (
        await client.add_subscription(channel, STREAM_ID) as subscription,
        await client.add_publication(channel, STREAM_ID) as publication,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(receive_from, subscription, None, AROUND_TERM_ENDS)
        ends = [
            await publication.publish(message, timeout=PEER_TIMEOUT) % TERM_LENGTH
            for message in messages(AROUND_TERM_ENDS)
        ]
    assert (ends.count(TERM_LENGTH - HEADER_LENGTH), ends.count(0)) == (3, 3)
    over = [after for before, after in itertools.pairwise(ends) if 0 < after < before < TERM_LENGTH - HEADER_LENGTH]
    assert len(over) == 3


# --- B9: multi-destination cast ---------------------------------------------------------------------------------------


async def test_b9_our_dynamic_cast_reaches_java_pyaeron_and_us(
    client: aeron_async.Client, java_peer: PeerCommand, pyaeron_peer: PeerCommand
) -> None:
    control = f"control=127.0.0.1:{free_udp_port()}|control-mode=dynamic"
    # With fewer than three receivers nobody is connected: who is not there yet would miss the beginning of the stream.
    cast = f"aeron:udp?{control}|{SMALL_TERMS}|fc=min,g:/3"
    receivers = [f"aeron:udp?{endpoint()}|{control}" for _ in range(3)]

    def command(peer: PeerCommand, receiver: str) -> list[str]:
        return peer("subscribe", client.aeron_dir, receiver, STREAM_ID, lengths=AROUND_TERM_ENDS)

    async with (
        await client.add_publication(cast, STREAM_ID) as publication,
        await client.add_subscription(receivers[0], STREAM_ID) as subscription,
        running(command(java_peer, receivers[1])) as java_receiver,
        running(command(pyaeron_peer, receivers[2])) as pyaeron_receiver,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(receive_from, subscription, None, AROUND_TERM_ENDS)
        await publish(publication, AROUND_TERM_ENDS)
        await finish(java_receiver, AROUND_TERM_ENDS)
        await finish(pyaeron_receiver, AROUND_TERM_ENDS)


# --- B1: shared and exclusive publications of one stream --------------------------------------------------------------


@pytest.mark.parametrize("sharer", ["java", "us"])
async def test_b1_shared_and_exclusive_publications_of_java_and_us_are_one_stream(
    client: aeron_async.Client, channel: str, java_peer: PeerCommand, sharer: str
) -> None:
    def command(mode: str, *rest: str) -> list[str]:
        return java_peer(mode, client.aeron_dir, channel, STREAM_ID, *rest, lengths=AROUND_THE_MTU)

    async with (
        await client.add_subscription(channel, STREAM_ID) as subscription,
        running(command("subscribe", "3")) as receiver,
    ):
        await receiver.read_until("subscribed")
        async with (
            await client.add_publication(channel, STREAM_ID) as shared,
            await client.add_exclusive_publication(channel, STREAM_ID) as exclusive,
            contextlib.AsyncExitStack() as stack,
            anyio.create_task_group() as tasks,
        ):
            senders = [await stack.enter_async_context(running(command("exclusive")))]
            tasks.start_soon(publish, exclusive, AROUND_THE_MTU)
            if sharer == "java":
                senders.append(await stack.enter_async_context(running(command("publish"))))
            else:
                tasks.start_soon(publish, shared, AROUND_THE_MTU)
            # What Java publishes on its shared publication comes in the session of ours: they are one.
            assert {shared.session_id, exclusive.session_id} < await receive_streams(subscription, 3, AROUND_THE_MTU)
            await finish(receiver, AROUND_THE_MTU, 3)
            for sender in senders:
                await finish(sender, AROUND_THE_MTU)


# --- C5: end of stream ------------------------------------------------------------------------------------------------


async def test_c5_our_image_ends_where_their_publication_was_closed(
    client: aeron_async.Client, channel: str, peer_command: PeerCommand
) -> None:
    images: list[aeron_async.Image] = []
    command = peer_command("publish", client.aeron_dir, channel, STREAM_ID, lengths=AROUND_THE_MTU)
    async with (
        await client.add_subscription(channel, STREAM_ID, on_available_image=images.append) as subscription,
        running(command) as peer,
    ):
        await receive_from(subscription, peer, AROUND_THE_MTU)
        (image,) = images
        await ended(image)
        assert image.end_of_stream_position == image.position > sum(AROUND_THE_MTU)
        assert not image.is_publication_revoked


async def test_c5_javas_image_ends_where_our_publication_was_closed(
    client: aeron_async.Client, channel: str, java_peer: PeerCommand
) -> None:
    command = java_peer("follow", client.aeron_dir, channel, STREAM_ID, lengths=AROUND_THE_MTU)
    async with running(command) as peer:
        async with await client.add_publication(channel, STREAM_ID) as publication:
            await publish(publication, AROUND_THE_MTU)
            end = publication.position
        await finish(peer, AROUND_THE_MTU)
        assert f"end of stream at {end}\n" in peer.text


# --- C7: multi-destination subscriptions ------------------------------------------------------------------------------


async def test_c7_our_subscription_receives_from_java_pyaeron_and_us(
    client: aeron_async.Client, java_peer: PeerCommand, pyaeron_peer: PeerCommand
) -> None:
    destinations = [endpoint() for _ in range(3)]
    channels = [f"aeron:udp?{destination}|{SMALL_TERMS}" for destination in destinations]
    async with await client.add_subscription("aeron:udp?control-mode=manual", STREAM_ID) as subscription:
        for destination in destinations:
            await subscription.add_destination(f"aeron:udp?{destination}")
        async with (
            running(
                java_peer("publish", client.aeron_dir, channels[0], STREAM_ID, lengths=AROUND_TERM_ENDS)
            ) as java_sender,
            running(
                pyaeron_peer("publish", client.aeron_dir, channels[1], STREAM_ID, lengths=AROUND_TERM_ENDS)
            ) as pyaeron_sender,
            await client.add_publication(channels[2], STREAM_ID) as publication,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(publish, publication, AROUND_TERM_ENDS)
            assert publication.session_id in await receive_streams(subscription, 3, AROUND_TERM_ENDS)
            await finish(java_sender, AROUND_TERM_ENDS)
            await finish(pyaeron_sender, AROUND_TERM_ENDS)


# --- C8: spies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("receivers", ["java", "none"])
async def test_c8_our_spy_reads_what_they_publish(
    client: aeron_async.Client, java_peer: PeerCommand, peer_command: PeerCommand, receivers: str
) -> None:
    channel = f"aeron:udp?{endpoint()}|{SMALL_TERMS}"
    async with await client.add_subscription(f"aeron-spy:{channel}", STREAM_ID) as spy:
        if receivers == "none":
            command = peer_command(
                "publish", client.aeron_dir, f"{channel}|ssc=true", STREAM_ID, lengths=AROUND_TERM_ENDS
            )
            async with running(command) as sender:
                await receive_from(spy, sender, AROUND_TERM_ENDS)
            return
        command = java_peer("subscribe", client.aeron_dir, channel, STREAM_ID, lengths=AROUND_TERM_ENDS)
        async with running(command) as receiver:
            command = peer_command("publish", client.aeron_dir, channel, STREAM_ID, lengths=AROUND_TERM_ENDS)
            async with running(command) as sender:
                await receive_from(spy, sender, AROUND_TERM_ENDS)
                await finish(receiver, AROUND_TERM_ENDS)

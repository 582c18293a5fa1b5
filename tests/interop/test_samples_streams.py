"""Aeron's samples that publish and receive streams with us on the bundled driver: streaming, rates, fragments."""

from __future__ import annotations

import re

import anyio
import pytest

import aeron_async
from tests.interop.peers import PEER_TIMEOUT, channel_of, running
from tests.interop.samples import STREAM_ID, sample
from tests.interop.stream import MTU
from tests.support import free_udp_port

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), pytest.mark.usefixtures("java_peer")]

SIMPLE_CHANNEL = "aeron:udp?endpoint=localhost:40123"
SIMPLE_STREAM_ID = 10
"""The simple samples have no settings."""

FIRST_LENGTH, SECOND_LENGTH = 10_000, 9_000
"""What the samples with two fragmented streams send and expect on the first stream and the next."""


async def receive(subscription: aeron_async.Subscription, count: int) -> list[bytes]:
    """The next `count` messages."""
    received = []
    with anyio.fail_after(PEER_TIMEOUT):
        async for payload in subscription.payloads():
            received.append(payload)
            if len(received) == count:
                break
    return received


@pytest.mark.parametrize(("length", "is_random"), [(32, False), (5000, True)])
async def test_we_receive_what_streaming_publisher_streams(
    client: aeron_async.Client, channel: str, length: int, is_random: bool
) -> None:
    count = 10_000
    command = sample(
        "StreamingPublisher",
        client.aeron_dir,
        channel=channel,
        streamId=STREAM_ID,
        messages=count,
        messageLength=length,
        randomMessageLength=str(is_random).lower(),
    )
    async with (
        await client.add_subscription(channel, STREAM_ID) as subscription,
        running(command, stdin=b"n\n") as publisher,
    ):
        received = await receive(subscription, count)
        await publisher.finish()
        assert len(subscription.poll_batch()) == 0
    for number, payload in enumerate(received):
        assert payload == number.to_bytes(8, "little").ljust(len(payload), b"\0")
    lengths = {len(payload) for payload in received}
    if is_random:
        assert 8 <= min(lengths) < max(lengths) < length
    else:
        assert lengths == {length}
    assert "Done streaming." in publisher.text


async def test_we_receive_from_two_destinations_what_two_streaming_publishers_stream(
    client: aeron_async.Client,
) -> None:
    count = 2000
    channels = [f"aeron:udp?endpoint=127.0.0.1:{free_udp_port()}" for _ in range(2)]
    first, second = (
        sample("StreamingPublisher", client.aeron_dir, channel=channel, streamId=STREAM_ID, messages=count)
        for channel in channels
    )
    async with await client.add_subscription("aeron:udp?control-mode=manual", STREAM_ID) as subscription:
        for channel in channels:
            await subscription.add_destination(channel)
        numbers: dict[int, list[int]] = {}
        async with running(first, stdin=b"n\n") as one, running(second, stdin=b"n\n") as other:
            with anyio.fail_after(PEER_TIMEOUT):
                messages = aiter(subscription)
                for _ in range(2 * count):
                    message = await anext(messages)
                    numbers.setdefault(message.header.session_id, []).append(
                        int.from_bytes(message.payload[:8], "little")
                    )
            await one.finish()
            await other.finish()
    assert list(numbers.values()) == [list(range(count))] * 2


async def test_rate_subscriber_counts_what_we_stream(client: aeron_async.Client, channel: str) -> None:
    messages = [bytes(1000)] * 5000 + [bytes(10_000)] * 100
    megabytes = 2 * sum(map(len, messages)) >> 20
    command = sample("RateSubscriber", client.aeron_dir, channel=channel, streamId=STREAM_ID)
    async with (
        await client.add_publication(channel, STREAM_ID) as shared,
        await client.add_exclusive_publication(channel, STREAM_ID) as exclusive,
        running(command) as subscriber,
    ):
        for publication in (shared, exclusive):
            await publication.wait_connected(timeout=PEER_TIMEOUT)
            await publication.publish_many(messages, timeout=PEER_TIMEOUT)
        await subscriber.read_until(f"totals {2 * len(messages)} messages {megabytes} MB")
        for publication in (shared, exclusive):
            assert f"streamId={STREAM_ID} sessionId={publication.session_id} mtu={MTU} " in subscriber.text


async def test_simple_subscriber_prints_our_message(client: aeron_async.Client) -> None:
    async with (
        await client.add_publication(SIMPLE_CHANNEL, SIMPLE_STREAM_ID) as publication,
        running(sample("SimpleSubscriber", client.aeron_dir)) as subscriber,
    ):
        await publication.wait_connected(timeout=PEER_TIMEOUT)
        await publication.publish(b"Hello from us", timeout=PEER_TIMEOUT)
        await subscriber.finish()
        session = f"{publication.session_id & 0xFFFF_FFFF:x}"
        assert f"Received message (Hello from us) to stream {SIMPLE_STREAM_ID} from session {session} " in (
            subscriber.text
        )


async def test_we_receive_the_message_of_simple_publisher(client: aeron_async.Client) -> None:
    async with await client.add_subscription(SIMPLE_CHANNEL, SIMPLE_STREAM_ID) as subscription:
        # It makes one attempt as soon as it is connected, which may be before the driver lets it send anything.
        for _ in range(10):
            async with running(sample("SimplePublisher", client.aeron_dir)) as publisher:
                await publisher.finish()
            if "Offer failed due to back pressure" not in publisher.text:
                break
        assert " yay !!" in publisher.text
        assert await receive(subscription, 1) == [b"Hello World! "]


async def test_we_reassemble_both_streams_of_multiple_publishers(client: aeron_async.Client) -> None:
    count = 5000
    # It sends 95 MB.
    channel = channel_of("ipc")
    command = sample("MultiplePublishersWithFragmentation", client.aeron_dir, channel=channel, streamId=STREAM_ID)

    async def check(subscription: aeron_async.Subscription, length: int) -> None:
        assert set(await receive(subscription, count)) == {b"Hello World! 1".ljust(length, b"\0")}

    async with (
        await client.add_subscription(channel, STREAM_ID) as first,
        await client.add_subscription(channel, STREAM_ID + 1) as second,
        running(command) as publishers,
        anyio.create_task_group() as tasks,
    ):
        # It prints each attempt: somebody has to read that all along.
        tasks.start_soon(publishers.finish)
        tasks.start_soon(check, first, FIRST_LENGTH)
        tasks.start_soon(check, second, SECOND_LENGTH)
    assert f"stream id {STREAM_ID} = {count} and stream id {STREAM_ID + 1} = {count}" in publishers.text


async def test_multiple_subscribers_reassemble_both_of_our_streams(client: aeron_async.Client, channel: str) -> None:
    count = 100
    command = sample("MultipleSubscribersWithFragmentAssembly", client.aeron_dir, channel=channel, streamId=STREAM_ID)
    lengths = {STREAM_ID: FIRST_LENGTH, STREAM_ID + 1: SECOND_LENGTH}

    async with (
        await client.add_publication(channel, STREAM_ID) as first,
        await client.add_publication(channel, STREAM_ID + 1) as second,
        running(command) as subscribers,
    ):
        for publication in (first, second):
            await publication.wait_connected(timeout=PEER_TIMEOUT)
        for _ in range(count):
            for publication in (first, second):
                await publication.publish(bytes(lengths[publication.stream_id]), timeout=PEER_TIMEOUT)
        await subscribers.read_until("@", 2 * count)
        assert "not assembled properly" not in subscribers.text
    printed = re.findall(r"message to stream (\d+) from session .* \((\d+)@\d+\)", subscribers.text)
    expected = [(str(stream_id), str(length)) for stream_id, length in lengths.items() for _ in range(count)]
    assert sorted(printed) == sorted(expected)

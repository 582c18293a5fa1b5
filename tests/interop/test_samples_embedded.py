"""Aeron's throughput samples, each on its own Java driver: we join there and read a piece of the stream.

They stream for ever or for very long, and wait for the slowest receiver, which is us.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import AsyncIterator

import anyio
import pytest

import aeron_async
from tests.interop.peers import PEER_TIMEOUT, running
from tests.interop.samples import STREAM_ID, sample
from tests.support import free_udp_port, scratch_folder

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), pytest.mark.usefixtures("java_peer")]

COUNT = 20_000
MESSAGE_LENGTH = 48
BURST_LENGTH = 1_000_000
"""The samples over IPC count from zero to this again and again."""
MESSAGES = 1_000_000_000
"""The samples over UDP end after this many."""


@contextlib.asynccontextmanager
async def joined(name: str, channel: str, spy: str = "") -> AsyncIterator[aeron_async.Subscription]:
    """A subscription of ours at a sample that brings its driver."""
    with scratch_folder() as folder:
        aeron_dir = folder / "driver"
        command = sample(
            name, aeron_dir, channel=channel, streamId=STREAM_ID, messageLength=MESSAGE_LENGTH, messages=MESSAGES
        )
        async with (
            running(command),
            aeron_async.connect(aeron_dir, driver="external", driver_timeout=PEER_TIMEOUT) as client,
            await client.add_subscription(spy + channel, STREAM_ID) as subscription,
        ):
            yield subscription


async def read(subscription: aeron_async.Subscription, count: int) -> list[aeron_async.Message]:
    """The next messages."""
    messages = []
    with anyio.fail_after(PEER_TIMEOUT):
        async for message in subscription:
            messages.append(message)
            if len(messages) == count:
                break
    return messages


def udp_channel() -> str:
    return f"aeron:udp?endpoint=127.0.0.1:{free_udp_port()}"


async def check_numbers(subscription: aeron_async.Subscription, modulus: int) -> None:
    """Each message has the number after that of the one before."""
    payloads = [message.payload for message in await read(subscription, COUNT)]
    first = int.from_bytes(payloads[0][:8], "little")
    numbers = ((first + step) % modulus for step in range(COUNT))
    assert payloads == [number.to_bytes(8, "little").ljust(MESSAGE_LENGTH, b"\0") for number in numbers]


@pytest.mark.parametrize("name", ["EmbeddedBufferClaimIpcThroughput", "EmbeddedExclusiveBufferClaimIpcThroughput"])
async def test_we_read_what_they_claim_in_order(name: str) -> None:
    async with joined(name, "aeron:ipc") as subscription:
        await check_numbers(subscription, BURST_LENGTH)


@pytest.mark.parametrize(
    "name", ["EmbeddedIpcThroughput", "EmbeddedExclusiveIpcThroughput", "EmbeddedExclusiveVectoredIpcThroughput"]
)
async def test_we_read_what_they_offer_over_ipc(name: str) -> None:
    async with joined(name, "aeron:ipc") as subscription:
        messages = await read(subscription, COUNT)
    assert {message.payload for message in messages} == {bytes(MESSAGE_LENGTH)}
    start = messages[0].header.position
    frame = messages[0].header.frame_length
    assert frame == MESSAGE_LENGTH + 32
    positions = [message.header.position for message in messages]
    assert positions == sorted(set(positions))
    assert positions[-1] >= start + (COUNT - 1) * frame


@pytest.mark.parametrize("name", ["EmbeddedThroughput", "EmbeddedExclusiveThroughput"])
async def test_we_read_what_they_offer_over_udp_in_order(name: str) -> None:
    async with joined(name, udp_channel()) as subscription:
        await check_numbers(subscription, MESSAGES)


async def test_our_spy_reads_what_they_send_in_order() -> None:
    async with joined("EmbeddedExclusiveSpiedThroughput", udp_channel(), "aeron-spy:") as subscription:
        await check_numbers(subscription, MESSAGES)


async def test_we_read_both_of_their_casts_to_one_destination() -> None:
    async with joined("EmbeddedDualExclusiveThroughput", udp_channel()) as subscription:
        counts = Counter[int]()
        while len(counts) < 2 or min(counts.values()) < COUNT // 2:
            for message in await read(subscription, 100):
                assert message.payload == bytes(MESSAGE_LENGTH)
                counts[message.header.session_id] += 1
        assert set(counts) == {image.session_id for image in subscription.images}

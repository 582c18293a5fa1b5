"""Row D6 of the parity table on a real driver: what it and we write is what the codecs read, to the byte.

That the codecs are those of the Java classes is the golden vectors' to show (`tests/golden`).
"""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

import aeron_async
from aeron_async.protocol.cnc import (
    BROADCAST_TAIL_OFFSET,
    BROADCAST_TRAILER_LENGTH,
    CNC_FILE,
    CNC_VERSION,
    RECORD_ALIGNMENT,
    RECORD_HEADER_LENGTH,
    RING_BUFFER_HEAD_OFFSET,
    RING_BUFFER_TAIL_OFFSET,
    RING_BUFFER_TRAILER_LENGTH,
    read_cnc,
)
from aeron_async.protocol.commands import AddPublication, AddSubscription, ClientKeepalive, Command, decode_command
from aeron_async.protocol.frames import DATA_HEADER_LENGTH, DataHeader, FrameFlags, FrameType
from aeron_async.protocol.records import align
from aeron_async.protocol.responses import (
    AvailableImage,
    PublicationReady,
    Response,
    SubscriptionReady,
    decode_response,
)
from tests.support import LIMIT, eventually, running_driver

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """Bytes do not depend on the event loop."""
    return "asyncio"


@pytest.fixture
def aeron_dir() -> Iterator[Path]:
    """A driver of the test's own, which is stopped for a moment and whose broadcast has not wrapped."""
    with running_driver() as driver:
        yield driver.aeron_dir


def records(buffer: bytes, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """The types and contents of the records of a buffer that has not wrapped."""
    while start < end:
        length, type_id = struct.unpack_from("<ii", buffer, start)
        assert length >= RECORD_HEADER_LENGTH
        yield type_id, buffer[start + RECORD_HEADER_LENGTH : start + length]
        start += align(length, RECORD_ALIGNMENT)


def ring_buffer(aeron_dir: Path) -> tuple[bytes, int, int]:
    """The to-driver buffer, where its unread records start and where they end."""
    content = (aeron_dir / CNC_FILE).read_bytes()
    cnc = read_cnc(content)
    buffer = content[cnc.to_driver_buffer_offset : cnc.to_clients_buffer_offset]
    trailer = len(buffer) - RING_BUFFER_TRAILER_LENGTH
    (head,) = struct.unpack_from("<q", buffer, trailer + RING_BUFFER_HEAD_OFFSET)
    (tail,) = struct.unpack_from("<q", buffer, trailer + RING_BUFFER_TAIL_OFFSET)
    return buffer, head, tail


def is_drained(aeron_dir: Path) -> bool:
    """Whether the driver has taken all commands."""
    _, head, tail = ring_buffer(aeron_dir)
    return head == tail


def waiting_commands(aeron_dir: Path) -> list[Command]:
    """The commands, but for keepalives, that a stopped driver has not taken."""
    commands = []
    for type_id, encoded in records(*ring_buffer(aeron_dir)):
        command = decode_command(type_id, encoded)
        assert command is not None
        assert (command.TYPE_ID, command.encode()) == (type_id, encoded)
        if not isinstance(command, ClientKeepalive):
            commands.append(command)
    return commands


def broadcast_responses(aeron_dir: Path) -> list[Response]:
    """All responses of a driver."""
    content = (aeron_dir / CNC_FILE).read_bytes()
    cnc = read_cnc(content)
    buffer = content[cnc.to_clients_buffer_offset : cnc.counters_metadata_buffer_offset]
    (tail,) = struct.unpack_from("<q", buffer, len(buffer) - BROADCAST_TRAILER_LENGTH + BROADCAST_TAIL_OFFSET)
    responses = []
    for type_id, encoded in records(buffer, 0, tail):
        response = decode_response(type_id, encoded)
        assert response is not None
        assert (response.TYPE_ID, response.encode()) == (type_id, encoded)
        responses.append(response)
    return responses


async def test_d6_commands_responses_and_frames_are_what_the_codecs_say(aeron_dir: Path, stream_id: int) -> None:
    channel = "aeron:ipc?alias=ünï"
    cnc = read_cnc((aeron_dir / CNC_FILE).read_bytes())
    assert cnc.version == CNC_VERSION
    resources: dict[str, aeron_async.Publication | aeron_async.Subscription] = {}

    async with aeron_async.connect(aeron_dir) as client:

        async def subscribe() -> None:
            resources["subscription"] = await client.add_subscription(channel, stream_id, timeout=LIMIT)

        async def publish() -> None:
            resources["publication"] = await client.add_publication(channel, stream_id, timeout=LIMIT)

        await eventually(lambda: is_drained(aeron_dir))
        async with anyio.create_task_group() as tasks:
            os.kill(cnc.pid, signal.SIGSTOP)
            try:
                tasks.start_soon(subscribe)
                tasks.start_soon(publish)
                await eventually(lambda: len(waiting_commands(aeron_dir)) == 2)
                subscription_command, publication_command = waiting_commands(aeron_dir)
            finally:
                os.kill(cnc.pid, signal.SIGCONT)
        subscription, publication = resources["subscription"], resources["publication"]
        assert isinstance(subscription, aeron_async.Subscription)
        assert isinstance(publication, aeron_async.Publication)
        assert subscription_command == AddSubscription(
            client.client_id, subscription.registration_id, -1, stream_id, channel
        )
        assert publication_command == AddPublication(client.client_id, publication.registration_id, stream_id, channel)

        await subscription.wait_connected(LIMIT)
        responses = {type(response): response for response in broadcast_responses(aeron_dir)}
        ready, subscribed = responses[PublicationReady], responses[SubscriptionReady]
        assert isinstance(ready, PublicationReady)
        assert isinstance(subscribed, SubscriptionReady)
        assert (ready.correlation_id, ready.session_id) == (publication.registration_id, publication.session_id)
        assert subscribed.correlation_id == subscription.registration_id
        image = responses[AvailableImage]
        assert isinstance(image, AvailableImage)
        assert (image.subscription_registration_id, image.session_id) == (
            subscription.registration_id,
            publication.session_id,
        )

        await publication.publish(b"payload", reserved_value=-2, timeout=LIMIT)
        frames: list[bytes] = []
        with anyio.fail_after(LIMIT):
            while not frames:
                subscription.block_poll(lambda block, _session_id, _term_id: frames.append(bytes(block)), 1024)
                await anyio.sleep(0.001)
        header = DataHeader(
            frame_length=DATA_HEADER_LENGTH + len(b"payload"),
            version=0,
            flags=FrameFlags.UNFRAGMENTED,
            type=FrameType.DATA,
            term_offset=0,
            session_id=publication.session_id,
            stream_id=stream_id,
            term_id=publication.initial_term_id,
            reserved_value=-2,
        )
        assert frames == [(header.encode() + b"payload").ljust(64, b"\0")]

"""Aeron's samples that send and receive a file with us: its name and length in a message, then its bytes by claims."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import anyio
import pytest

import aeron_async
from tests.interop.peers import PEER_TIMEOUT, running
from tests.interop.samples import STREAM_ID, sample
from tests.support import eventually, scratch_folder

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), pytest.mark.usefixtures("java_peer")]

VERSION = 0
CREATE, CHUNK = 1, 2

HEADER = struct.Struct("<iiq")
"""Version, type and the id of the transfer: every message begins so."""
CREATE_REST = struct.Struct("<qi")
"""Length of the file and of its name, which follows."""
CHUNK_REST = struct.Struct("<qq")
"""Where in the file the bytes belong that follow, and how many they are."""

CONTENT = random.Random(4).randbytes(3_000_001)


async def send_file(publication: aeron_async.Publication, name: str, content: bytes) -> None:
    """Send a file as the sample does, each chunk written into the log in place."""
    transfer = publication.registration_id
    create = HEADER.pack(VERSION, CREATE, transfer) + CREATE_REST.pack(len(content), len(name)) + name.encode()
    await publication.publish(create, timeout=PEER_TIMEOUT)
    data_offset = HEADER.size + CHUNK_REST.size
    room = publication.max_payload_length - data_offset
    for offset in range(0, len(content), room):
        data = content[offset : offset + room]
        with await publication.claim(data_offset + len(data), timeout=PEER_TIMEOUT) as claim:
            HEADER.pack_into(claim.buffer, 0, VERSION, CHUNK, transfer)
            CHUNK_REST.pack_into(claim.buffer, HEADER.size, offset, len(data))
            claim.buffer[data_offset:] = data


async def receive_file(subscription: aeron_async.Subscription) -> tuple[str, bytes]:
    """Receive a file that the sample sends: its name and content."""
    payloads = subscription.payloads()
    created = await anext(payloads)
    version, kind, transfer = HEADER.unpack_from(created)
    assert (version, kind) == (VERSION, CREATE)
    length, name_length = CREATE_REST.unpack_from(created, HEADER.size)
    name = created[HEADER.size + CREATE_REST.size :]
    assert len(name) == name_length
    content = bytearray()
    while len(content) < length:
        chunk = await anext(payloads)
        assert HEADER.unpack_from(chunk) == (VERSION, CHUNK, transfer)
        data = chunk[HEADER.size + CHUNK_REST.size :]
        assert CHUNK_REST.unpack_from(chunk, HEADER.size) == (len(content), len(data))
        content += data
    return name.decode(), bytes(content)


async def test_we_receive_the_file_of_file_sender(client: aeron_async.Client, channel: str, tmp_path: Path) -> None:
    file = tmp_path / "sent by them"
    file.write_bytes(CONTENT)
    command = sample("FileSender", client.aeron_dir, file, channel=channel, streamId=STREAM_ID)
    async with await client.add_subscription(channel, STREAM_ID) as subscription, running(command) as sender:
        with anyio.fail_after(PEER_TIMEOUT):
            name, content = await receive_file(subscription)
        await sender.finish()
    assert name == file.name
    assert content == CONTENT


async def test_file_receiver_stores_the_file_that_we_send(channel: str, tmp_path: Path) -> None:
    # It starts the driver that we share with it, and heeds its first argument only where there are two.
    with scratch_folder() as folder:
        aeron_dir = folder / "driver"
        command = sample("FileReceiver", aeron_dir, tmp_path, "", channel=channel, streamId=STREAM_ID)
        async with (
            running(command) as receiver,
            aeron_async.connect(aeron_dir, driver="external", driver_timeout=PEER_TIMEOUT) as client,
            await client.add_exclusive_publication(channel, STREAM_ID) as publication,
        ):
            await publication.wait_connected(timeout=PEER_TIMEOUT)
            await send_file(publication, "sent by us", CONTENT)
            file = tmp_path / "sent by us"
            await eventually(lambda: file.exists() and file.read_bytes() == CONTENT)
            await receiver.read_until(f"on stream id {STREAM_ID}")

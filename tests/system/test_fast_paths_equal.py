"""The fast paths do what the plain ones do: the same frames in the log, the same messages out of it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import anyio
import anyio.lowlevel
import numpy as np
import pytest

from aeron_async import ChannelUri, Client, Header, Image, Publication, Subscription
from aeron_async.protocol.frames import DATA_HEADER_LENGTH, FRAME_ALIGNMENT, DataHeader, FrameType
from aeron_async.protocol.records import align
from tests.stream_machine import NO_LIMIT, Row, rows_of_batch, rows_of_block
from tests.support import LIMIT, open_pair, take

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]

# A session that begins 100 frames before the end of a term, and soon comes to the largest term id.
CHANNEL = str(
    ChannelUri.ipc(
        session_id=77,
        mtu=1408,
        term_length=64 << 10,
        initial_term_id=(1 << 31) - 2,
        term_id=(1 << 31) - 2,
        term_offset=(64 << 10) - 3200,
    )
)

LENGTHS = (0, 1, 31, 32, 33, 100, 1375, 1376, 1377, 2 * 1376, 2 * 1376 + 1, 8191, 8192)

# --- the same frames --------------------------------------------------------------------------------------------------

OfferSome = Callable[[Publication, list[bytes]], int]
"""Offers messages, which are all of one length; how many were appended, or an `OfferResult`."""


def by_offer_vectored(publication: Publication, messages: list[bytes]) -> int:
    message = messages[0]
    cut = len(message) // 3
    return min(1, publication.offer_vectored([message[:cut], b"", bytearray(message[cut:])]))


def by_claim(publication: Publication, messages: list[bytes]) -> int:
    if len(messages[0]) > publication.max_payload_length:
        return min(1, publication.offer(messages[0]))
    claim = publication.try_claim(len(messages[0]))
    if isinstance(claim, int):
        return claim
    with claim:
        claim.buffer[:] = messages[0]
    return 1


def by_offer_array(publication: Publication, messages: list[bytes]) -> int:
    if not messages[0]:
        return publication.offer_many(messages)
    return publication.offer_array(np.array(messages, dtype=f"V{len(messages[0])}"))


OFFERS: dict[str, OfferSome] = {
    "vectored": by_offer_vectored,
    "claim": by_claim,
    "many": lambda publication, messages: publication.offer_many(messages),
    "many of other buffers": lambda publication, messages: publication.offer_many(tuple(map(bytearray, messages))),
    "array": by_offer_array,
    "repeated": lambda publication, messages: publication.offer_repeated(
        messages[0], next((at for at, other in enumerate(messages) if other != messages[0]), len(messages))
    ),
}


class Frame(NamedTuple):
    """A frame as it lies in the log."""

    header: DataHeader
    payload: bytes


def frames_of(image: Image) -> Iterator[Frame]:
    """The frames that are there, as if they were of stream 0; what is behind a header of padding means nothing."""
    while True:
        with image.block(NO_LIMIT) as block:
            offset = 0
            while offset < len(block.buffer):
                header = DataHeader.decode(block.buffer[offset:])
                end = offset + (DATA_HEADER_LENGTH if header.type == FrameType.PAD else header.frame_length)
                yield Frame(replace(header, stream_id=0), bytes(block.buffer[offset + DATA_HEADER_LENGTH : end]))
                offset += align(header.frame_length, FRAME_ALIGNMENT)
            if not offset:
                return


@pytest.mark.parametrize("exclusive", [False, True], ids=["shared", "exclusive"])
@pytest.mark.parametrize("way", OFFERS)
async def test_every_way_to_offer_writes_the_frames_that_offer_writes(
    client: Client, stream_id: int, exclusive: bool, way: str
) -> None:
    plain, plain_subscription = await open_pair(client, CHANNEL, 2 * stream_id, exclusive=exclusive)
    fast, fast_subscription = await open_pair(client, CHANNEL, 2 * stream_id + 1, exclusive=exclusive)
    chance = random.Random(way)
    frames: list[Frame] = []
    plain_frames: list[Frame] = []
    with anyio.fail_after(LIMIT):
        for _ in range(40):
            length = chance.choice(LENGTHS)
            messages = [chance.randbytes(length)] * chance.randint(1, 3)
            messages += [chance.randbytes(length) for _ in range(chance.randint(0, min(150, 30_000 // (length + 32))))]
            while messages:
                appended = max(0, OFFERS[way](fast, messages))
                for message in messages[:appended]:
                    while plain.offer(message) < 0:
                        plain_frames += frames_of(plain_subscription.images[0])
                        await anyio.sleep(0.0005)
                messages = messages[appended:]
                frames += frames_of(fast_subscription.images[0])
                plain_frames += frames_of(plain_subscription.images[0])
                await anyio.sleep(0 if appended else 0.0005)
    assert frames == plain_frames
    assert fast.position == plain.position > 3 * fast.term_buffer_length


async def test_every_way_to_publish_writes_the_frames_that_publish_writes(client: Client, stream_id: int) -> None:
    chance = random.Random(5)
    records = [chance.randbytes(100) for _ in range(3000)]

    async def one_by_one(publication: Publication) -> int:
        return [await publication.publish(record, timeout=LIMIT) for record in records][-1]

    async def in_pieces(publication: Publication) -> int:
        return [await publication.publish_vectored([r[:9], r[9:]], timeout=LIMIT) for r in records][-1]

    async def by_claims(publication: Publication) -> int:
        for record in records:
            with await publication.claim(len(record), timeout=LIMIT) as claim:
                claim.buffer[:] = record
        return claim.position

    ways: list[Callable[[Publication], Awaitable[int]]] = [
        one_by_one,
        in_pieces,
        by_claims,
        lambda publication: publication.publish_many(iter(records), timeout=LIMIT),
        lambda publication: publication.publish_array(b"".join(records), itemsize=100, timeout=LIMIT),
    ]
    written: list[list[Frame]] = []
    for number, publish in enumerate(ways):
        publication, subscription = await open_pair(client, CHANNEL, len(ways) * stream_id + number)
        frames: list[Frame] = []

        async def run() -> None:
            assert await publish(publication) == publication.position  # noqa: B023

        with anyio.fail_after(LIMIT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                while sum(len(frame.payload) > 0 for frame in frames) < len(records):
                    frames += frames_of(subscription.images[0])
                    await anyio.sleep(0.001)
        written.append(frames)
        await publication.aclose()
        await subscription.aclose()
    assert [frame.payload for frame in written[0] if frame.payload] == records
    assert all(frames == written[0] for frames in written)


# --- the same messages ------------------------------------------------------------------------------------------------

Read = Callable[[Subscription, int], Awaitable[list[Row]]]


async def in_turns(read: Callable[[], object], rows: list[Row], count: int) -> list[Row]:
    """Reads again and again, with other tasks' turns in between."""
    while len(rows) < count:
        read()
        await anyio.lowlevel.checkpoint()
    return rows


def keeper(rows: list[Row]) -> Callable[[memoryview, Header], None]:
    return lambda payload, header: rows.append(Row(bytes(payload), header))


async def by_poll(subscription: Subscription, count: int) -> list[Row]:
    rows: list[Row] = []
    return await in_turns(lambda: subscription.poll(keeper(rows)), rows, count)


async def by_poll_of_one(subscription: Subscription, count: int) -> list[Row]:
    rows: list[Row] = []
    return await in_turns(lambda: subscription.images[0].poll(keeper(rows), 1), rows, count)


async def by_controlled_poll(subscription: Subscription, count: int) -> list[Row]:
    rows: list[Row] = []
    return await in_turns(lambda: subscription.controlled_poll(keeper(rows)), rows, count)


async def by_bounded_poll(subscription: Subscription, count: int) -> list[Row]:
    rows: list[Row] = []
    (image,) = subscription.images
    return await in_turns(lambda: image.bounded_poll(keeper(rows), image.position + 500, NO_LIMIT), rows, count)


async def by_poll_batch(subscription: Subscription, count: int) -> list[Row]:
    rows: list[Row] = []
    return await in_turns(lambda: rows.extend(rows_of_batch(subscription.poll_batch())), rows, count)


async def by_small_batches(subscription: Subscription, count: int) -> list[Row]:
    rows: list[Row] = []
    return await in_turns(lambda: rows.extend(rows_of_batch(subscription.poll_batch(3, max_bytes=99))), rows, count)


async def by_batches(subscription: Subscription, count: int) -> list[Row]:
    rows: list[Row] = []
    async for batch in subscription.batches(50):
        rows += rows_of_batch(batch)
        if len(rows) == count:
            break
    return rows


async def by_messages(subscription: Subscription, count: int) -> list[Row]:
    messages = await take(aiter(subscription), count)
    return [Row(bytes(message), message.header) for message in messages]


async def by_messages_of_batches(subscription: Subscription, count: int) -> list[Row]:
    rows: list[Row] = []
    async for batch in subscription.images[0].batches():
        rows += [Row(message.payload, message.header) for message in batch.messages()]
        if len(rows) == count:
            break
    return rows


async def by_block(subscription: Subscription, count: int) -> list[Row]:
    rows: list[Row] = []
    (image,) = subscription.images

    def read() -> None:
        with image.block(NO_LIMIT) as block:
            more, is_whole = rows_of_block(block, image, image.position)
        assert is_whole
        rows.extend(more)

    return await in_turns(read, rows, count)


async def by_payloads(subscription: Subscription, count: int) -> list[bytes]:
    return await take(subscription.payloads(), count)


READS: list[Read] = [
    by_poll_of_one,
    by_controlled_poll,
    by_bounded_poll,
    by_poll_batch,
    by_small_batches,
    by_batches,
    by_messages,
    by_messages_of_batches,
    by_block,
]


async def test_every_way_to_read_gives_the_messages_that_poll_gives(client: Client, stream_id: int) -> None:
    publication, subscription = await open_pair(client, CHANNEL, stream_id)
    others = [await client.add_subscription(CHANNEL, stream_id) for _ in (*READS, by_payloads)]
    for other in others:
        await other.wait_connected(LIMIT)
    chance = random.Random(6)
    sent = [(chance.randbytes(chance.choice(LENGTHS)), chance.getrandbits(63)) for _ in range(600)]
    rows: dict[str, list[Any]] = {}

    async def read(by: Callable[[Subscription, int], Any], source: Subscription) -> None:
        rows[by.__name__] = await by(source, len(sent))

    with anyio.fail_after(2 * LIMIT):
        async with anyio.create_task_group() as tasks:
            for by, source in zip((by_poll, *READS, by_payloads), (subscription, *others), strict=True):
                tasks.start_soon(read, by, source)
            for message, reserved_value in sent:
                await publication.publish(message, reserved_value=reserved_value, timeout=LIMIT)
    expected = rows.pop("by_poll")
    assert [(row.payload, row.header.reserved_value) for row in expected] == sent
    assert rows.pop("by_payloads") == [row.payload for row in expected]
    for name, found in rows.items():
        assert found == expected, name
    assert {source.images[0].position for source in (subscription, *others)} == {publication.position}


@pytest.mark.parametrize(
    "dtype",
    ["<i8", ">u2", "M8[ns]", "S5", "V33", "?", ("<f8", (3,)), [("time", "<i8"), ("price", "<f8"), ("name", "S3")]],
    ids=str,
)
async def test_arrays_are_the_records_that_were_sent(client: Client, stream_id: int, dtype: Any) -> None:
    publication, subscription = await open_pair(client, CHANNEL, stream_id)
    blocks, polls = [await client.add_subscription(CHANNEL, stream_id) for _ in range(2)]
    for other in (blocks, polls):
        await other.wait_connected(LIMIT)
    record = np.dtype(dtype)
    data = random.Random(8).randbytes(500 * record.itemsize)
    if record.kind == "b":
        data = bytes(byte & 1 for byte in data)
    # Compared as bytes: not every pattern is a number that is equal to itself.
    read = bytearray()
    in_place = bytearray()
    payloads: list[bytes] = []
    kept: list[tuple[np.ndarray[Any, Any], bytes]] = []

    async def read_all() -> None:
        while len(read) < len(data) or len(in_place) < len(data):
            array = subscription.poll_batch(chance.randint(1, 200)).as_array(dtype)
            read.extend(array.tobytes())
            kept.append((array, array.tobytes()))
            with blocks.images[0].block(chance.randint(2000, 30_000)) as block:
                in_place.extend(block.as_array(dtype).tobytes())
            polls.poll(lambda payload, _: payloads.append(bytes(payload)), NO_LIMIT)
            await anyio.lowlevel.checkpoint()

    chance = random.Random(9)
    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read_all)
            await publication.publish_array(np.frombuffer(data, dtype="u1"), itemsize=record.itemsize, timeout=LIMIT)
    assert read == in_place == b"".join(payloads) == data
    assert {len(payload) for payload in payloads} == {record.itemsize}
    await client.aclose()
    for array, content in kept:
        assert array.tobytes() == content

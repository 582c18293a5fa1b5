"""Receiving from a real driver: every way to read, and their changing over without a loss."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aeron_async import Client, Header, Image, MessageBatch, Subscription
from tests.support import LIMIT, eventually, open_pair, sealed, take, unseal

pytestmark = pytest.mark.anyio

Source = Subscription | Image
Read = Callable[[Source, int], Awaitable[list[bytes]]]


async def read_messages(source: Source, count: int) -> list[bytes]:
    return [message.payload for message in await take(aiter(source), count)]


async def read_payloads(source: Source, count: int) -> list[bytes]:
    return await take(source.payloads(), count)


async def read_batches(source: Source, count: int) -> list[bytes]:
    received: list[bytes] = []
    with anyio.fail_after(LIMIT):
        async for batch in source.batches(limit=7):
            received += batch
            if len(received) >= count:
                break
    return received


async def read_by_poll(source: Source, count: int) -> list[bytes]:
    received: list[bytes] = []

    def handle(payload: memoryview, header: Header) -> None:
        received.append(bytes(payload))

    with anyio.fail_after(LIMIT):
        while len(received) < count:
            if not source.poll(handle):
                await anyio.sleep(0.001)
    return received


async def read_by_poll_batch(source: Source, count: int) -> list[bytes]:
    received: list[bytes] = []
    with anyio.fail_after(LIMIT):
        while len(received) < count:
            batch = source.poll_batch(7)
            received += batch
            if not batch:
                await anyio.sleep(0.001)
    return received


READS = [read_messages, read_payloads, read_batches, read_by_poll, read_by_poll_batch]


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("by_image", [False, True], ids=["subscription", "image"])
async def test_every_way_to_read_gives_the_same_stream(
    client: Client, channel: str, stream_id: int, read: Read, by_image: bool
) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    lengths = random.Random(2)
    published = [sealed(0, number, lengths.choice((0, 10, 1500, 5000))) for number in range(100)]

    async def publish() -> None:
        for data in published:
            await publication.publish(data, timeout=LIMIT)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish)
        assert await read(subscription.images[0] if by_image else subscription, len(published)) == published
    assert subscription.images[0].position == publication.position


async def test_headers_tell_where_a_message_comes_from(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    long = bytes(publication.max_payload_length + 1)
    await publication.publish(b"short", reserved_value=7)
    await publication.publish(long)
    short_message, long_message = await take(aiter(subscription), 2)
    assert bytes(short_message) == b"short"
    assert len(short_message) == 5
    assert short_message.header == Header(
        session_id=publication.session_id,
        stream_id=stream_id,
        term_id=publication.initial_term_id,
        term_offset=0,
        initial_term_id=publication.initial_term_id,
        flags=0xC0,
        type=1,
        version=0,
        frame_length=37,
        reserved_value=7,
        position=64,
    )
    assert long_message.header.term_offset == 64
    assert long_message.header.frame_length == 32 + len(long)
    assert long_message.header.position == publication.position


async def test_a_poll_handler_gets_payloads_and_headers(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    received: list[tuple[bytes, int]] = []
    views: list[memoryview] = []

    def handle(payload: memoryview, header: Header) -> None:
        received.append((bytes(payload), header.position))
        views.append(payload)

    positions = [await publication.publish(data) for data in (b"a", bytes(3000), b"")]
    with anyio.fail_after(LIMIT):
        while len(received) < 3:
            subscription.poll(handle)
            await anyio.sleep(0.001)
    assert received == list(zip((b"a", bytes(3000), b""), positions, strict=True))
    with pytest.raises(ValueError, match="released"):
        views[0].tobytes()


async def test_poll_reads_no_more_fragments_than_it_may(client: Client, stream_id: int) -> None:
    publication, subscription = await open_pair(client, "aeron:ipc", stream_id)
    publication.offer_many([b"%d" % number for number in range(25)])
    received: list[bytes] = []
    counts = []
    while count := subscription.poll(lambda payload, header: received.append(bytes(payload))):
        counts.append(count)
    assert counts == [10, 10, 5]
    assert received == [b"%d" % number for number in range(25)]


async def test_a_poll_handler_that_raises_has_had_its_message(client: Client, stream_id: int) -> None:
    publication, subscription = await open_pair(client, "aeron:ipc", stream_id)
    publication.offer_many([b"0", b"1", b"2"])

    def handle(payload: memoryview, header: Header) -> None:
        if payload == b"1":
            raise KeyError("one")

    with pytest.raises(KeyError, match="one"):
        subscription.poll(handle)
    assert list(subscription.poll_batch()) == [b"2"]


async def test_batches_respect_their_limits_and_hold_at_least_one_message(client: Client, stream_id: int) -> None:
    publication, subscription = await open_pair(client, "aeron:ipc", stream_id)
    publication.offer_many([bytes(100)] * 20)
    assert len(subscription.poll_batch(3)) == 3
    assert len(subscription.poll_batch(max_bytes=450)) == 4
    assert len(subscription.poll_batch(max_bytes=1)) == 1
    await publication.publish(bytes(5000))
    assert len(subscription.poll_batch()) == 13
    assert len(subscription.poll_batch()) == 0


async def test_batches_own_their_memory_and_carry_columns(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    published = [b"first", b"", bytes(3000), b"last"]
    positions = [await publication.publish(data, reserved_value=number) for number, data in enumerate(published)]
    batches: list[MessageBatch] = []
    with anyio.fail_after(LIMIT):
        while sum(map(len, batches)) < 4:
            batches.append(subscription.poll_batch())
            await anyio.sleep(0.001)
    await subscription.aclose()
    await publication.aclose()
    assert [data for batch in batches for data in batch] == published
    assert [position for batch in batches for position in batch.stream_positions] == positions
    assert [value for batch in batches for value in batch.reserved_values] == [0, 1, 2, 3]
    assert {session for batch in batches for session in batch.session_ids} == {publication.session_id}
    assert [message.header.position for batch in batches for message in batch.messages()] == positions
    for batch in batches:
        assert [bytes(batch.buffer[a:b]) for a, b in zip(batch.offsets, batch.offsets[1:], strict=False)] == list(batch)


async def test_images_take_turns(client: Client, stream_id: int) -> None:
    subscription = await client.add_subscription("aeron:ipc", stream_id)
    publications = [await client.add_exclusive_publication("aeron:ipc", stream_id) for _ in range(3)]
    for publication in publications:
        await publication.publish(b"one to make sure of the connection", timeout=LIMIT)
    await eventually(lambda: subscription.image_count == 3)
    await take(subscription.payloads(), 3)
    for publication in publications:
        assert publication.offer_many([bytes(100)] * 60) == 60
    # One image alone could fill each of these batches.
    turns = [set(subscription.poll_batch(2).session_ids) for _ in range(30)]
    everybody = {publication.session_id for publication in publications}
    for first in range(0, 30, 3):
        assert set().union(*turns[first : first + 3]) == everybody


async def test_changing_the_way_of_reading_at_any_point_loses_and_repeats_nothing(
    client: Client, channel: str, stream_id: int
) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    chance = random.Random(3)
    total = 3000
    received: list[bytes] = []

    async def publish() -> None:
        for number in range(total):
            await publication.publish(sealed(0, number, chance.choice((0, 100, 100, 4000))), timeout=LIMIT)

    class LeftError(Exception):
        pass

    async def iterate(count: int, how: str) -> None:
        iteration = chance.choice([aiter(subscription), subscription.payloads()])
        with anyio.move_on_after(0.001 if how == "cancel" else LIMIT):
            async for item in iteration:
                received.append(bytes(item))
                count -= 1
                if count <= 0 and how == "break":
                    break
                if count <= 0 and how == "raise":
                    raise LeftError

    async def read_once() -> None:
        match chance.choice(["break", "cancel", "raise", "batches", "poll", "poll_batch"]):
            case "batches":
                async for batch in subscription.batches(chance.randint(1, 20)):
                    received.extend(batch)
                    break
            case "poll":
                subscription.poll(lambda payload, header: received.append(bytes(payload)), chance.randint(1, 5))
            case "poll_batch":
                received.extend(subscription.poll_batch(chance.randint(1, 20), max_bytes=chance.randint(1, 9000)))
            case how:
                with suppress(LeftError):
                    await iterate(chance.randint(1, 20), how)

    with anyio.fail_after(2 * LIMIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(publish)
            while len(received) < total:
                if total - len(received) > 25:
                    await read_once()
                else:
                    received += await take(subscription.payloads(), total - len(received))
                await anyio.lowlevel.checkpoint()
    assert [unseal(data) for data in received] == [(0, number) for number in range(total)]


async def test_only_one_may_read_at_a_time(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    received: list[bytes] = []

    async def read_first() -> None:
        received.extend(await take(subscription.payloads(), 1))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_first)
        await anyio.sleep(0.02)
        for read in (
            lambda: subscription.poll_batch(),
            lambda: subscription.poll(lambda payload, header: None),
            lambda: subscription.images[0].poll_batch(),
        ):
            with pytest.raises(RuntimeError):
                read()
        with pytest.raises(RuntimeError):
            await anext(aiter(subscription))
        with pytest.raises(RuntimeError):
            await anext(subscription.images[0].batches())
        await publication.publish(b"for the first reader")
    assert received == [b"for the first reader"]


async def test_a_poll_handler_may_not_read_itself(client: Client, stream_id: int) -> None:
    publication, subscription = await open_pair(client, "aeron:ipc", stream_id)
    publication.offer_many([b"0", b"1"])
    refused: list[Exception] = []

    def handle(payload: memoryview, header: Header) -> None:
        with pytest.raises(RuntimeError) as caught:
            subscription.poll_batch()
        refused.append(caught.value)

    assert subscription.poll(handle) == 2
    assert len(refused) == 2


@pytest.mark.parametrize("iteration", [aiter, Subscription.payloads, Subscription.batches])
async def test_closing_the_subscription_ends_an_iteration(
    client: Client, channel: str, stream_id: int, iteration: Callable[[Subscription], Any]
) -> None:
    _, subscription = await open_pair(client, channel, stream_id)
    ended = anyio.Event()

    async def read() -> None:
        async for _ in iteration(subscription):
            pass
        ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await anyio.sleep(0.02)
        await subscription.aclose()
        with anyio.fail_after(LIMIT):
            await ended.wait()
    assert [data async for data in subscription.payloads()] == []


async def test_closing_the_client_ends_an_iteration(client: Client, channel: str, stream_id: int) -> None:
    _, subscription = await open_pair(client, channel, stream_id)
    ended = anyio.Event()

    async def read() -> None:
        async for _ in subscription:
            pass
        ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await anyio.sleep(0.02)
        await client.aclose()
        with anyio.fail_after(LIMIT):
            await ended.wait()


async def test_a_closed_subscription_polls_nothing_and_keeps_its_last_values(
    client: Client, channel: str, stream_id: int
) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    await publication.publish(b"read")
    await take(subscription.payloads(), 1)
    await publication.publish(b"never read")
    (image,) = subscription.images
    await subscription.aclose()
    await subscription.aclose()
    assert subscription.is_closed
    assert not subscription.is_connected
    assert subscription.images == ()
    assert subscription.poll(lambda payload, header: None) == 0
    assert len(subscription.poll_batch()) == 0
    assert image.is_closed
    assert image.position == 64
    assert image.poll(lambda payload, header: None) == 0
    assert (subscription.channel, subscription.stream_id) == (channel, stream_id)


async def test_a_reader_that_waits_is_woken_by_each_message(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    payloads = subscription.payloads()
    for number in range(20):
        async with anyio.create_task_group() as tasks:

            async def read() -> None:
                assert await take(payloads, 1) == [b"%d" % number]  # noqa: B023

            tasks.start_soon(read)
            await anyio.sleep(0.005)
            await publication.publish(b"%d" % number)


async def test_a_reader_that_waits_sees_images_that_come_later(client: Client, channel: str, stream_id: int) -> None:
    subscription = await client.add_subscription(channel, stream_id)
    received: list[bytes] = []

    async def read() -> None:
        received.extend(await take(subscription.payloads(), 3))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        for number in range(3):
            await anyio.sleep(0.01)
            publication = await client.add_exclusive_publication(channel, stream_id)
            await publication.publish(b"%d" % number, timeout=LIMIT)
    assert sorted(received) == [b"0", b"1", b"2"]


async def test_a_late_joiner_gets_the_stream_from_where_it_is(client: Client, channel: str, stream_id: int) -> None:
    publication, early = await open_pair(client, channel, stream_id)
    limit = publication.position_limit
    for number in range(10):
        await publication.publish(sealed(0, number, 2000), timeout=LIMIT)
    await take(early.payloads(), 10)
    await eventually(lambda: publication.position_limit > limit)
    late = await client.add_subscription(channel, stream_id)
    await late.wait_connected(LIMIT)
    join_position = late.images[0].join_position
    for number in range(10, 20):
        await publication.publish(sealed(0, number, 2000), timeout=LIMIT)
    length = publication.position // 20
    # The driver lets it in at the position that it knows the others to be at.
    first = join_position // length
    assert 0 < first <= 10
    assert [unseal(data)[1] for data in await take(late.payloads(), 20 - first)] == list(range(first, 20))


async def test_waiting_readers_cost_little(client: Client, stream_id: int) -> None:
    _, subscription = await open_pair(client, "aeron:ipc", stream_id)
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            quiet = await client.add_subscription("aeron:ipc", stream_id + 100_000)
            tasks.start_soon(anext, aiter(quiet))
        tasks.start_soon(anext, aiter(subscription))
        await anyio.sleep(0.2)
        cpu, wall = time.process_time(), time.monotonic()
        await anyio.sleep(1)
        load = (time.process_time() - cpu) / (time.monotonic() - wall)
        tasks.cancel_scope.cancel()
    # A check against busy loops, which would take all of a core.
    assert load < 0.3

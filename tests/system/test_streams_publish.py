"""Publishing to a real driver: results, positions, fragmentation, rotation, and back-pressure."""

from __future__ import annotations

import array
import random
from pathlib import Path

import anyio
import pytest

from aeron_async import (
    BackPressuredError,
    Client,
    MaxPositionExceededError,
    MessageTooLongError,
    NotConnectedError,
    OfferResult,
    Publication,
    connect,
)
from tests.support import LIMIT, eventually, free_udp_port, open_pair, sealed, take, unseal

pytestmark = pytest.mark.anyio

TERM_LENGTH = 64 << 10
HEADER_LENGTH = 32
FRAME_ALIGNMENT = 32


@pytest.fixture(params=["shared", "exclusive"])
def exclusive(request: pytest.FixtureRequest) -> bool:
    return request.param == "exclusive"


async def fill(publication: Publication, message: bytes) -> int:
    """Offers `message` until the publication is back-pressured; how often it was taken."""
    count = 0
    while (result := publication.offer(message)) != OfferResult.BACK_PRESSURED:
        if result > 0:
            count += 1
        else:
            assert result == OfferResult.ADMIN_ACTION
    return count


async def test_a_publication_knows_its_stream(client: Client, channel: str, stream_id: int, exclusive: bool) -> None:
    publication, subscription = await open_pair(client, channel, stream_id, exclusive=exclusive)
    (image,) = subscription.images
    assert (publication.channel, publication.stream_id) == (channel, stream_id)
    assert publication.session_id == image.session_id
    assert publication.initial_term_id == image.initial_term_id
    assert publication.term_buffer_length == image.term_buffer_length == TERM_LENGTH
    assert publication.max_message_length == TERM_LENGTH // 8
    assert publication.max_payload_length == image.mtu_length - HEADER_LENGTH
    assert publication.is_exclusive is exclusive
    assert publication.is_connected
    assert not publication.is_closed
    await eventually(lambda: publication.channel_status == 1)


async def test_nobody_is_connected_until_somebody_subscribes(client: Client, channel: str, stream_id: int) -> None:
    publication = await client.add_publication(channel, stream_id)
    assert not publication.is_connected
    assert publication.offer(b"nobody hears it") is OfferResult.NOT_CONNECTED
    with pytest.raises(NotConnectedError):
        await publication.wait_connected(timeout=0.05)
    async with await client.add_subscription(channel, stream_id):
        await publication.wait_connected(LIMIT)
        assert publication.is_connected
    await eventually(lambda: not publication.is_connected)


async def test_publish_waits_for_a_subscriber(client: Client, channel: str, stream_id: int) -> None:
    publication = await client.add_publication(channel, stream_id)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publication.publish, b"early")
        await anyio.sleep(0.05)
        subscription = await client.add_subscription(channel, stream_id)
        assert await take(subscription.payloads(), 1) == [b"early"]


async def test_positions_advance_by_aligned_frames(
    client: Client, channel: str, stream_id: int, exclusive: bool
) -> None:
    publication, subscription = await open_pair(client, channel, stream_id, exclusive=exclusive)
    assert publication.position == 0
    assert publication.offer(b"x") == 64
    assert publication.offer(bytes(32)) == 128
    assert publication.offer(b"") == 160
    assert publication.position == 160
    assert publication.position_limit > 160
    messages = await take(aiter(subscription), 3)
    assert [message.header.position for message in messages] == [64, 128, 160]
    assert subscription.images[0].position == 160


async def test_the_limit_follows_the_subscriber(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    limit = publication.position_limit
    # The driver moves it in steps, not for every message.
    await publication.publish(bytes(8000))
    await take(subscription.payloads(), 1)
    await eventually(lambda: publication.position_limit > limit)


async def test_a_reserved_value_travels_with_the_message(
    client: Client, channel: str, stream_id: int, exclusive: bool
) -> None:
    publication, subscription = await open_pair(client, channel, stream_id, exclusive=exclusive)
    fragmented = bytes(3 * publication.max_payload_length)
    publication.offer(b"one", reserved_value=-(1 << 63))
    publication.offer_vectored([b"t", b"wo"], reserved_value=2)
    await publication.publish(fragmented, reserved_value=(1 << 63) - 1)
    await publication.publish_vectored([fragmented, b"four"], reserved_value=4)
    publication.offer(b"none")
    messages = await take(aiter(subscription), 5)
    assert [message.header.reserved_value for message in messages] == [-(1 << 63), 2, (1 << 63) - 1, 4, 0]
    assert [message.payload for message in messages] == [b"one", b"two", fragmented, fragmented + b"four", b"none"]


async def test_every_kind_of_buffer_is_published_as_its_bytes(client: Client, stream_id: int) -> None:
    publication, subscription = await open_pair(client, "aeron:ipc", stream_id)
    numbers = array.array("i", range(100))
    buffers = [b"bytes", bytearray(b"bytearray"), memoryview(b"--view--")[2:6], numbers]
    expected = [bytes(buffer) for buffer in buffers]
    for buffer in buffers:
        publication.offer(buffer)
    publication.offer_vectored(buffers)
    publication.offer_many(buffers)
    received = await take(subscription.payloads(), 9)
    assert received == [*expected, b"".join(expected), *expected]


async def test_what_is_no_buffer_is_refused_and_nothing_is_appended(client: Client, stream_id: int) -> None:
    publication, _ = await open_pair(client, "aeron:ipc", stream_id)
    for attempt in (
        lambda data: publication.offer(data),
        lambda data: publication.offer_vectored([b"", data]),
        lambda data: publication.offer_many([b"", data]),
    ):
        with pytest.raises(TypeError):
            attempt("text")
        with pytest.raises(BufferError):
            attempt(memoryview(b"strided")[::2])
    assert publication.position == 0


async def test_messages_of_every_length_around_the_boundaries_arrive_whole(
    client: Client, channel: str, stream_id: int, exclusive: bool
) -> None:
    publication, subscription = await open_pair(client, channel, stream_id, exclusive=exclusive)
    payload, message = publication.max_payload_length, publication.max_message_length
    lengths = [0, 1, payload - 1, payload, payload + 1, 2 * payload, 3 * payload + 17, message - 1, message]
    published = [random.Random(length).randbytes(length) for length in lengths]

    async def publish() -> None:
        for data in published:
            await publication.publish(data)
            await publication.publish_vectored([data[:5], b"", data[5:]])
        rest = published
        while rest:
            appended = publication.offer_many(rest)
            rest = rest[max(0, appended) :]
            await anyio.sleep(0.001)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish)
        received = await take(subscription.payloads(), 3 * len(lengths))
    assert received == [data for data in published for _ in range(2)] + published


async def test_a_message_that_is_too_long_is_refused_before_anything_is_appended(
    client: Client, channel: str, stream_id: int, exclusive: bool
) -> None:
    publication, _ = await open_pair(client, channel, stream_id, exclusive=exclusive)
    too_long = bytes(publication.max_message_length + 1)
    for attempt in (
        lambda: publication.offer(too_long),
        lambda: publication.offer_vectored([too_long[:-1], b"x"]),
        lambda: publication.offer_many([b"short", too_long]),
    ):
        with pytest.raises(MessageTooLongError) as caught:
            attempt()
        assert (caught.value.length, caught.value.limit) == (len(too_long), len(too_long) - 1)
    with pytest.raises(MessageTooLongError):
        await publication.publish(too_long)
    assert publication.position == 0


async def test_a_message_longer_than_the_receiver_window_arrives(client: Client, stream_id: int) -> None:
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_udp_port()}|term-length=8m"
    publication, subscription = await open_pair(client, channel, stream_id)
    published = [random.Random(seed).randbytes(1 << 20) for seed in range(3)]

    async def publish() -> None:
        for data in published:
            await publication.publish(data, timeout=LIMIT)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish)
        assert await take(subscription.payloads(), len(published)) == published


async def test_terms_rotate_under_load(client: Client, channel: str, stream_id: int, exclusive: bool) -> None:
    publication, subscription = await open_pair(client, channel, stream_id, exclusive=exclusive)
    lengths = random.Random(1)
    published = [sealed(0, number, lengths.randrange(4000)) for number in range(500)]

    async def publish() -> None:
        for data in published:
            await publication.publish(data, timeout=LIMIT)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish)
        received = await take(aiter(subscription), len(published))
    assert [message.payload for message in received] == published
    assert len({message.header.term_id for message in received}) > 8


async def test_offer_many_appends_what_there_is_room_for(
    client: Client, channel: str, stream_id: int, exclusive: bool
) -> None:
    publication, subscription = await open_pair(client, channel, stream_id, exclusive=exclusive)
    assert publication.offer_many([]) == 0
    published = [sealed(0, number, 500) for number in range(1000)]
    appended = publication.offer_many(published)
    assert 0 < appended < len(published)
    # The sender's limit may move once more on UDP.
    received = []
    with anyio.fail_after(LIMIT):
        while len(received) < len(published):
            received += subscription.poll_batch()
            if appended < len(published):
                appended += max(0, publication.offer_many(published[appended:]))
            await anyio.sleep(0.001)
    assert received == published


async def test_back_pressure_is_a_result_and_in_the_end_an_error(
    client: Client, channel: str, stream_id: int, exclusive: bool
) -> None:
    publication, subscription = await open_pair(client, channel, stream_id, exclusive=exclusive)
    count = await fill(publication, bytes(1000))
    with pytest.raises(BackPressuredError) as caught:
        while True:
            await publication.publish(bytes(1000), timeout=0.2)
            count += 1
    assert isinstance(caught.value, TimeoutError)
    assert len(await take(subscription.payloads(), count)) == count
    await publication.publish(b"there is room again", timeout=LIMIT)
    assert await take(subscription.payloads(), 1) == [b"there is room again"]


async def test_publish_goes_on_when_the_subscriber_does(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    count = await fill(publication, bytes(1000))
    async with anyio.create_task_group() as tasks:
        for _ in range(200):
            tasks.start_soon(publication.publish, bytes(1000))
        await anyio.sleep(0.05)
        assert len(await take(subscription.payloads(), count + 200)) == count + 200


async def test_the_end_of_a_stream_is_reached(client: Client, stream_id: int) -> None:
    last_term = f"aeron:ipc?term-length=64k|init-term-id=0|term-id={(1 << 31) - 1}|term-offset={TERM_LENGTH - 64}"
    subscription = await client.add_subscription("aeron:ipc", stream_id)
    publication = await client.add_exclusive_publication(last_term, stream_id)
    await publication.wait_connected(LIMIT)
    assert publication.position == (TERM_LENGTH << 31) - 64
    assert publication.offer(bytes(64)) is OfferResult.MAX_POSITION_EXCEEDED
    with pytest.raises(MaxPositionExceededError):
        await publication.publish(bytes(64))
    assert subscription.poll_batch().nbytes == 0


async def test_the_same_publication_twice_is_one_session_and_one_mapping(
    client: Client, channel: str, stream_id: int
) -> None:
    subscription = await client.add_subscription(channel, stream_id)
    first = await client.add_publication(channel, stream_id)
    second = await client.add_publication(channel, stream_id)
    assert first.session_id == second.session_id
    assert first.registration_id == first.original_registration_id == second.original_registration_id
    assert second.registration_id != first.registration_id
    log = f"{client.aeron_dir}/publications/{first.original_registration_id}.logbuffer"
    assert Path("/proc/self/maps").read_text().count(log) == 1
    await second.wait_connected(LIMIT)
    assert await first.publish(b"1") == second.position
    assert await second.publish(b"2") == first.position
    await first.aclose()
    assert first.offer(b"closed") is OfferResult.CLOSED
    await second.publish(b"3")
    assert await take(subscription.payloads(), 3) == [b"1", b"2", b"3"]
    await second.aclose()
    await eventually(lambda: not subscription.is_connected)


async def test_two_clients_share_a_publication(client: Client, aeron_dir: Path, channel: str, stream_id: int) -> None:
    subscription = await client.add_subscription(channel, stream_id)
    ours = await client.add_publication(channel, stream_id)
    async with connect(aeron_dir) as other:
        theirs = await other.add_publication(channel, stream_id)
        assert theirs.session_id == ours.session_id
        await theirs.publish(b"theirs")
        await ours.publish(b"ours")
    await ours.publish(b"ours again")
    assert await take(subscription.payloads(), 3) == [b"theirs", b"ours", b"ours again"]


async def test_exclusive_publications_have_sessions_of_their_own(client: Client, channel: str, stream_id: int) -> None:
    first, subscription = await open_pair(client, channel, stream_id, exclusive=True)
    second = await client.add_exclusive_publication(channel, stream_id)
    assert first.session_id != second.session_id
    await second.publish(b"second")
    await first.publish(b"first")
    assert set(await take(subscription.payloads(), 2)) == {b"first", b"second"}
    assert {image.session_id for image in subscription.images} == {first.session_id, second.session_id}


async def test_subscribers_read_on_to_the_end_of_a_closed_publication(
    client: Client, channel: str, stream_id: int
) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    published = [sealed(0, number, 100) for number in range(50)]
    async with publication:
        for data in published:
            await publication.publish(data)
        end = publication.position
    assert publication.is_closed
    assert not publication.is_connected
    assert publication.position == end
    received = await take(subscription.payloads(), 50)
    assert [unseal(data) for data in received] == [(0, number) for number in range(50)]

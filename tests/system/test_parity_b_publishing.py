"""Publishing on a real driver, row by row of the parity table's section B."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest

import aeron_async
from aeron_async import (
    BackPressuredError,
    BatchPublisher,
    BufferClaim,
    ChannelUri,
    Client,
    ExclusivePublication,
    Message,
    MessageTooLongError,
    NotConnectedError,
    OfferResult,
    Publication,
    PublicationClosedError,
    PublicationError,
    RegistrationError,
    Subscription,
)
from aeron_async.protocol.error_codes import ErrorCode
from aeron_async.protocol.frames import DATA_HEADER_LENGTH, DataHeader, FrameFlags, FrameType
from tests.support import LIMIT, eventually, free_udp_port, open_pair, take

pytestmark = pytest.mark.anyio

TICK = np.dtype([("id", "<i8"), ("price", "<f8")])


@pytest.fixture(params=["shared", "exclusive"])
def exclusive(request: pytest.FixtureRequest) -> bool:
    return request.param == "exclusive"


@pytest.fixture
async def pair(
    client: Client, channel: str, stream_id: int, exclusive: bool
) -> AsyncIterator[tuple[Publication, Subscription]]:
    """A publication of each kind on each medium, and its only subscription."""
    publication, subscription = await open_pair(client, channel, stream_id, exclusive=exclusive)
    async with publication, subscription:
        yield publication, subscription


async def received(subscription: Subscription, count: int) -> list[Message]:
    """The next messages, and that there is no other."""
    messages = await take(aiter(subscription), count)
    assert len(subscription.poll_batch()) == 0
    return messages


async def received_payloads(subscription: Subscription, count: int) -> list[bytes]:
    return [bytes(message) for message in await received(subscription, count)]


def claimed(publication: Publication, length: int) -> BufferClaim:
    while (claim := publication.try_claim(length)) is OfferResult.ADMIN_ACTION:
        pass
    assert isinstance(claim, BufferClaim)
    return claim


async def exclusive_pair(client: Client, channel: str, stream_id: int) -> tuple[ExclusivePublication, Subscription]:
    publication, subscription = await open_pair(client, channel, stream_id, exclusive=True)
    assert isinstance(publication, ExclusivePublication)
    return publication, subscription


# --- B1, B2, B3: offers -----------------------------------------------------------------------------------------------


async def test_b1_shared_publications_are_one_session_and_exclusive_ones_have_their_own(
    client: Client, channel: str, stream_id: int
) -> None:
    shared = [await client.add_publication(channel, stream_id) for _ in range(2)]
    exclusive = [await client.add_exclusive_publication(channel, stream_id) for _ in range(2)]
    assert len({publication.session_id for publication in (*shared, *exclusive)}) == 3
    assert shared[0].session_id == shared[1].session_id
    assert shared[1].original_registration_id == shared[0].registration_id


async def test_b2_an_offer_tries_once_and_publish_until_its_deadline(
    client: Client, channel: str, stream_id: int
) -> None:
    publication = await client.add_publication(channel, stream_id)
    assert publication.offer(b"nobody") is OfferResult.NOT_CONNECTED
    with pytest.raises(NotConnectedError):
        await publication.publish(b"nobody", timeout=0.05)
    subscription = await client.add_subscription(channel, stream_id)
    await publication.publish(b"somebody", timeout=LIMIT)
    assert await received_payloads(subscription, 1) == [b"somebody"]
    with pytest.raises(BackPressuredError):
        while True:
            await publication.publish(bytes(8000), timeout=0.05)


async def test_b3_a_message_of_several_pieces_of_any_buffer(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    pieces = [b"head ", bytearray(b"and "), memoryview(b"tail"), np.array([1], "<i2")]
    assert publication.offer_vectored(pieces) > 0
    await publication.publish_vectored([b"x" * 1000] * 5)
    assert await received_payloads(subscription, 2) == [b"head and tail\1\0", b"x" * 5000]


# --- B4: many messages in one native call -----------------------------------------------------------------------------


async def test_b4_a_list_a_repeated_message_and_the_records_of_an_array(
    pair: tuple[Publication, Subscription],
) -> None:
    publication, subscription = pair
    ticks = np.array([(1, 1.5), (2, 2.5), (3, 3.5)], dtype=TICK)
    assert publication.offer_many([b"one", bytearray(b"two")]) == 2
    assert publication.offer_repeated(b"again", 3) == 3
    assert publication.offer_array(ticks) == 3
    assert publication.offer_array(b"abcdef", itemsize=2) == 3
    expected = [b"one", b"two", *[b"again"] * 3, *(tick.tobytes() for tick in ticks), b"ab", b"cd", b"ef"]
    assert await received_payloads(subscription, len(expected)) == expected


async def test_b4_publish_many_and_publish_array_go_on_as_the_subscriber_reads(
    pair: tuple[Publication, Subscription],
) -> None:
    publication, subscription = pair
    messages = [bytes([number % 251]) * (number % 3000) for number in range(300)]
    array = np.arange(30_000, dtype="<i8").reshape(3000, 10)
    payloads: list[bytes] = []
    positions: list[int] = []

    async def publish() -> None:
        positions.append(await publication.publish_many(iter(messages), timeout=LIMIT))
        positions.append(await publication.publish_array(array, timeout=LIMIT))

    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(publish)
            async for payload in subscription.payloads():
                payloads.append(payload)
                if len(payloads) == 3300:
                    break
    assert payloads == messages + [row.tobytes() for row in array]
    assert positions == sorted(positions)
    assert positions[1] == publication.position


async def test_b4_an_error_part_way_says_how_many_are_appended(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    messages = [b"%04d" % number + bytes(1000) for number in range(1000)]
    with pytest.raises(BackPressuredError) as raised:
        await publication.publish_many(messages, timeout=0.05)
    appended = raised.value.appended
    assert 0 < appended < 1000
    assert await received_payloads(subscription, appended) == messages[:appended]


# --- B5: a publisher that never waits ---------------------------------------------------------------------------------


async def test_b5_a_batch_publisher_never_waits_and_drops_nothing(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    messages = [b"%d:" % number + bytes(number % 2000) for number in range(1000)]
    async with anyio.create_task_group() as tasks:

        async def publish() -> None:
            async with BatchPublisher(publication) as batch:
                for message in messages:
                    batch.publish(message)
                assert batch.pending == 1000
                await batch.flush(LIMIT)
                assert batch.pending == 0

        tasks.start_soon(publish)
        assert await received_payloads(subscription, 1000) == messages


async def test_b5_a_bounded_batch_publisher_refuses_what_is_too_much(client: Client, stream_id: int) -> None:
    publication, subscription = await open_pair(client, "aeron:ipc", stream_id)
    while publication.offer(bytes(8000)) > 0:
        pass
    batch = BatchPublisher(publication, max_pending=10)
    for number in range(10):
        batch.publish(b"%d" % number)
    with pytest.raises(BackPressuredError):
        batch.publish(b"too much")
    with pytest.raises(BackPressuredError) as raised:
        await batch.flush(timeout=0.05)
    assert raised.value.pending == 10
    payloads = subscription.payloads()
    with anyio.fail_after(LIMIT):
        while len(await anext(payloads)) > 1:
            pass
    assert await take(payloads, 9) == [b"%d" % number for number in range(1, 10)]
    await batch.aclose()


# --- B6: long messages ------------------------------------------------------------------------------------------------


async def test_b6_long_messages_are_fragmented_up_to_the_limit(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    lengths = [
        publication.max_payload_length,
        publication.max_payload_length + 1,
        2 * publication.max_payload_length,
        publication.max_message_length,
    ]
    for length in lengths:
        await publication.publish(bytes([length % 251]) * length)
    assert await received_payloads(subscription, 4) == [bytes([length % 251]) * length for length in lengths]
    with pytest.raises(MessageTooLongError):
        publication.offer(bytes(publication.max_message_length + 1))


# --- B7: claims -------------------------------------------------------------------------------------------------------


async def test_b7_try_claim_and_claim_write_a_message_in_place(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    with claimed(publication, 5) as claim:
        claim.buffer[:] = b"tried"
        claim.reserved_value = -7
        position = claim.position
    with await publication.claim(6) as claim:
        claim.buffer[:] = b"waited"
    with claimed(publication, publication.max_payload_length) as claim:
        np.frombuffer(claim.buffer, np.uint8)[:] = 5
    messages = await received(subscription, 3)
    assert [bytes(message) for message in messages] == [b"tried", b"waited", b"\5" * publication.max_payload_length]
    assert (messages[0].header.position, messages[0].header.reserved_value) == (position, -7)
    assert messages[0].header.flags == FrameFlags.UNFRAGMENTED


async def test_b7_claims_that_are_aborted_or_forgotten_are_passed_over(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    with pytest.raises(ZeroDivisionError), claimed(publication, 100) as claim:
        claim.buffer[:] = b"x" * 100
        raise ZeroDivisionError
    claimed(publication, 50).abort()
    forgotten = claimed(publication, 10)
    await publication.publish(b"behind")
    assert len(subscription.poll_batch()) == 0
    del forgotten, claim
    gc.collect()
    assert await received_payloads(subscription, 1) == [b"behind"]


async def test_b7_claims_rotate_terms_and_wait_for_room(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair

    async def publish() -> None:
        for number in range(500):
            with await publication.claim(1000, timeout=LIMIT) as claim:
                claim.buffer[:] = number.to_bytes(4) * 250

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish)
        assert await received_payloads(subscription, 500) == [number.to_bytes(4) * 250 for number in range(500)]


async def test_b7_claims_with_flags_make_a_fragmented_message(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    for flags, part in ((FrameFlags.BEGIN, b"begin "), (0, b"middle "), (FrameFlags.END, b"end")):
        with claimed(publication, len(part)) as claim:
            claim.flags = flags
            claim.buffer[:] = part
    assert await received_payloads(subscription, 1) == [b"begin middle end"]


async def test_b7_a_claim_outlives_its_publication(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    claim = claimed(publication, 7)
    await publication.aclose()
    claim.buffer[:] = b"in time"
    claim.commit()
    assert await received_payloads(subscription, 1) == [b"in time"]

    publication, _ = await open_pair(client, channel, stream_id)
    claim = claimed(publication, 4)
    view = claim.buffer[:]
    await client.aclose()
    view[:] = b"safe"
    claim.commit()
    assert bytes(view) == b"safe"
    assert publication.try_claim(4) is OfferResult.CLOSED
    with pytest.raises(PublicationClosedError):
        await publication.claim(4)


# --- B8: reserved values, padding, blocks, revoking, windows, addresses, errors ---------------------------------------


async def test_b8_reserved_values_travel(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    publication.offer(b"offer", reserved_value=1)
    publication.offer_vectored([b"vec", b"tored"], reserved_value=-(1 << 63))
    with claimed(publication, 0) as claim:
        claim.reserved_value = (1 << 63) - 1
    messages = await received(subscription, 3)
    assert [message.header.reserved_value for message in messages] == [1, -(1 << 63), (1 << 63) - 1]


async def test_b8_padding_is_passed_over(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await exclusive_pair(client, channel, stream_id)
    assert publication.append_padding(1000) == 1056
    assert publication.offer(b"message") == 1120
    (message,) = await received(subscription, 1)
    assert (bytes(message), message.header.position) == (b"message", 1120)
    assert subscription.images[0].position == 1120


async def test_b8_a_block_of_frames_is_appended_as_it_is(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await exclusive_pair(client, channel, stream_id)
    await publication.publish(b"before")
    payloads = [b"one", b"", bytes(500)]
    block = b""
    for payload in payloads:
        header = DataHeader(
            frame_length=DATA_HEADER_LENGTH + len(payload),
            version=0,
            flags=FrameFlags.UNFRAGMENTED,
            type=FrameType.DATA,
            term_offset=publication.position + len(block),
            session_id=publication.session_id,
            stream_id=stream_id,
            term_id=publication.initial_term_id,
            reserved_value=len(payload),
        )
        frame = header.encode() + payload
        block += frame.ljust(-(-len(frame) // 32) * 32, b"\0")
    assert publication.offer_block(block) == 64 + len(block)
    with pytest.raises(ValueError, match="block"):
        publication.offer_block(block)
    await publication.publish(b"behind")
    messages = await received(subscription, 5)
    assert [bytes(message) for message in messages] == [b"before", *payloads, b"behind"]
    assert [message.header.reserved_value for message in messages] == [0, 3, 0, 500, 0]


@pytest.mark.parametrize("way", ["revoke", "revoke_on_close", "client"])
async def test_b8_a_revoked_publication_is_gone_at_once(
    client: Client, channel: str, stream_id: int, aeron_dir: Path, way: str
) -> None:
    subscription = await client.add_subscription(channel, stream_id)
    async with aeron_async.connect(aeron_dir) as publisher:
        publication = await publisher.add_exclusive_publication(channel, stream_id)
        await publication.publish(b"never read")
        await subscription.wait_connected(LIMIT)
        (image,) = subscription.images
        assert not image.is_publication_revoked
        if way == "revoke":
            await publication.revoke()
            assert publication.is_closed
        else:
            publication.revoke_on_close = True
            await (publication if way == "revoke_on_close" else publisher).aclose()
        await eventually(lambda: image.is_closed)
    assert image.is_publication_revoked
    assert len(subscription.poll_batch()) == 0


async def test_b8_the_window_shrinks_by_what_is_appended_and_is_none_when_full(
    pair: tuple[Publication, Subscription],
) -> None:
    publication, _ = pair
    window = publication.available_window
    assert window == publication.position_limit - publication.position > 0
    publication.offer(bytes(32))
    assert publication.available_window in (window - 64, publication.position_limit - publication.position)
    while publication.offer(bytes(1000)) != OfferResult.BACK_PRESSURED:
        pass
    await publication.aclose()
    assert publication.available_window == 0


async def test_b8_status_and_local_addresses_of_a_channel(client: Client, stream_id: int) -> None:
    port = free_udp_port()
    channel = f"aeron:udp?endpoint=127.0.0.1:{port}|control=127.0.0.1:0|control-mode=dynamic"
    publication = await client.add_publication(channel, stream_id)
    await eventually(lambda: publication.channel_status == 1)
    (address,) = publication.local_socket_addresses
    assert address.startswith("127.0.0.1:")
    assert int(address.rpartition(":")[2]) > 0
    subscription = await client.add_subscription(f"aeron:udp?endpoint=127.0.0.1:{port}", stream_id)
    await eventually(lambda: subscription.channel_status == 1)
    assert subscription.local_socket_addresses == [f"127.0.0.1:{port}"]
    ipc = await client.add_publication("aeron:ipc", stream_id)
    assert (ipc.channel_status, ipc.local_socket_addresses) == (1, [])
    await publication.aclose()
    assert publication.local_socket_addresses == []


async def test_b8_a_rejected_publication_hears_of_it(channel: str, stream_id: int, aeron_dir: Path) -> None:
    errors: list[PublicationError] = []
    others: list[PublicationError] = []
    async with (
        aeron_async.connect(aeron_dir, on_publication_error=errors.append) as publisher,
        aeron_async.connect(aeron_dir, on_publication_error=others.append) as subscriber,
    ):
        subscription = await subscriber.add_subscription(channel, stream_id)
        publication = await publisher.add_publication(channel, stream_id)
        await publication.wait_connected(LIMIT)
        await subscription.wait_connected(LIMIT)
        await subscription.images[0].reject("not this one")
        await eventually(lambda: errors)
    error = errors[0]
    assert (error.registration_id, error.session_id, error.stream_id) == (
        publication.registration_id,
        publication.session_id,
        stream_id,
    )
    assert (error.code, error.message) == (ErrorCode.IMAGE_REJECTED, "not this one")
    if channel.startswith("aeron:udp"):
        assert error.source_address is not None
        assert error.source_address.startswith("127.0.0.1:")
    else:
        assert error.source_address is None
    assert others == []


# --- B9: multi-destination cast ---------------------------------------------------------------------------------------


def endpoint() -> ChannelUri:
    return ChannelUri.udp(endpoint=f"127.0.0.1:{free_udp_port()}")


async def receivers(client: Client, stream_id: int, uris: list[ChannelUri]) -> list[Subscription]:
    return [await client.add_subscription(uri, stream_id) for uri in uris]


async def test_b9_a_manual_cast_reaches_the_destinations_that_are_there(client: Client, stream_id: int) -> None:
    uris = [endpoint() for _ in range(3)]
    subscriptions = await receivers(client, stream_id, uris)
    publication = await client.add_publication("aeron:udp?control-mode=manual", stream_id)
    ids = [await publication.add_destination(uri) for uri in uris]
    assert len(set(ids)) == 3
    for subscription in subscriptions:
        await subscription.wait_connected(LIMIT)
    await publication.publish(b"to all", timeout=LIMIT)
    for subscription in subscriptions:
        assert await received_payloads(subscription, 1) == [b"to all"]

    await publication.remove_destination(str(uris[0]))
    await publication.remove_destination(ids[1])
    for subscription in subscriptions[:2]:
        await eventually(lambda subscription=subscription: not subscription.is_connected)  # type: ignore[misc]
    await publication.publish(b"to one", timeout=LIMIT)
    assert await received_payloads(subscriptions[2], 1) == [b"to one"]
    assert all(len(subscription.poll_batch()) == 0 for subscription in subscriptions[:2])

    await publication.add_destination(uris[0])
    await subscriptions[0].wait_connected(LIMIT)
    await publication.publish(b"to two", timeout=LIMIT)
    assert await received_payloads(subscriptions[0], 1) == [b"to two"]


async def test_b9_destinations_belong_to_all_who_share_the_publication(
    client: Client, stream_id: int, aeron_dir: Path
) -> None:
    uri = endpoint()
    (subscription,) = await receivers(client, stream_id, [uri])
    channel = f"aeron:udp?control-mode=manual|tags={stream_id}1,{stream_id}2"
    first = await client.add_publication(channel, stream_id)
    async with aeron_async.connect(aeron_dir) as other:
        second = await other.add_publication(channel, stream_id)
        assert second.original_registration_id == first.registration_id != second.registration_id
        destination = await second.add_destination(uri)
        await first.publish(b"by the first", timeout=LIMIT)
        await subscription.wait_connected(LIMIT)
        assert await received_payloads(subscription, 1) == [b"by the first"]
        await first.remove_destination(destination)
        await eventually(lambda: not subscription.is_connected)


async def test_b9_a_dynamic_cast_reaches_who_asks_for_it(client: Client, stream_id: int) -> None:
    control = f"127.0.0.1:{free_udp_port()}"
    publication = await client.add_publication(f"aeron:udp?control={control}|control-mode=dynamic", stream_id)
    channel = f"aeron:udp?control={control}|control-mode=dynamic|endpoint=127.0.0.1:0"
    subscriptions = [await client.add_subscription(channel, stream_id) for _ in range(2)]
    for subscription in subscriptions:
        await subscription.wait_connected(LIMIT)
    await publication.publish(b"to both", timeout=LIMIT)
    for subscription in subscriptions:
        assert await received_payloads(subscription, 1) == [b"to both"]
    with pytest.raises(RegistrationError, match="manual"):
        await publication.add_destination(endpoint())


@pytest.mark.parametrize("uri", ["aeron:ipc", "aeron-spy:aeron:udp?endpoint=127.0.0.1:1", "nonsense"])
async def test_b9_a_destination_that_cannot_be_is_refused(client: Client, stream_id: int, uri: str) -> None:
    publication = await client.add_publication("aeron:udp?control-mode=manual", stream_id)
    with pytest.raises(RegistrationError, match=r"destination|URI"):
        await publication.add_destination(uri)
    await publication.add_destination(endpoint())


async def test_b9_a_subscription_with_destinations_receives_from_all_of_them(client: Client, stream_id: int) -> None:
    uris: list[Any] = [endpoint(), endpoint()]
    subscription = await client.add_subscription("aeron:udp?control-mode=manual", stream_id)
    ids = [await subscription.add_destination(uri) for uri in uris]
    publications = [await client.add_exclusive_publication(uri, stream_id) for uri in uris]
    for publication in publications:
        await publication.publish(publication.channel.encode(), timeout=LIMIT)
    assert set(await received_payloads(subscription, 2)) == {str(uri).encode() for uri in uris}

    await subscription.remove_destination(ids[0])
    await eventually(lambda: not publications[0].is_connected)
    await subscription.remove_destination(uris[1])
    await eventually(lambda: not publications[1].is_connected)
    with pytest.raises(ValueError, match=str(ids[0])):
        await subscription.remove_destination(ids[0])

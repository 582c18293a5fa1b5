"""Receiving, row by row of what Aeron's own clients can do: polls, images, blocks."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import numpy as np
import pytest

from aeron_async import (
    Action,
    Client,
    Header,
    Image,
    MessageBatch,
    Publication,
    PublicationError,
    Subscription,
    connect,
)
from tests.support import LIMIT, eventually, open_pair, sealed, take, unseal

pytestmark = pytest.mark.anyio

NO_LIMIT = 1 << 30
LENGTHS = (0, 10, 100, 1376, 1377, 5000)


@pytest.fixture(params=["subscription", "image"])
def by(request: pytest.FixtureRequest) -> Callable[[Subscription], Subscription | Image]:
    """What is read of a subscription with one publisher: itself, or its only image."""
    return {"subscription": lambda subscription: subscription, "image": lambda subscription: subscription.images[0]}[
        request.param
    ]


async def publish_sealed(publication: Publication, count: int) -> None:
    chance = random.Random(count)
    for number in range(count):
        await publication.publish(sealed(0, number, chance.choice(LENGTHS)), timeout=LIMIT)


async def read_until(read: Callable[[], object], is_done: Callable[[], bool]) -> None:
    """Reads, with other tasks' turns in between, until it is done."""
    with anyio.fail_after(LIMIT):
        while not is_done():
            read()
            await anyio.lowlevel.checkpoint()


def numbers_of(received: list[bytes]) -> list[int]:
    return [unseal(data)[1] for data in received]


# --- C1 ---------------------------------------------------------------------------------------------------------------


async def test_c1_poll_hands_out_whole_messages_with_headers_within_its_fragment_limit(
    client: Client, channel: str, stream_id: int, by: Callable[[Subscription], Subscription | Image]
) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    source = by(subscription)
    received: list[bytes] = []
    headers: list[Header] = []
    fragments: list[int] = []

    def handler(payload: memoryview, header: Header) -> None:
        received.append(bytes(payload))
        headers.append(header)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish_sealed, publication, 200)
        await read_until(lambda: fragments.append(source.poll(handler, 3)), lambda: len(received) == 200)
    assert numbers_of(received) == list(range(200))
    assert max(fragments) <= 3
    assert [header.frame_length for header in headers] == [32 + len(data) for data in received]
    assert headers[-1].position == publication.position
    assert {(header.session_id, header.stream_id) for header in headers} == {(publication.session_id, stream_id)}


# --- C2 ---------------------------------------------------------------------------------------------------------------


async def test_c2_controlled_poll_with_any_actions_gives_every_message_once_but_the_aborted_again(
    client: Client, channel: str, stream_id: int, by: Callable[[Subscription], Subscription | Image]
) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    source = by(subscription)
    chance = random.Random(5)
    received: list[bytes] = []
    aborted: list[bytes] = []
    given_again: list[bool] = []

    def handler(payload: memoryview, header: Header) -> Action | None:
        if aborted:
            given_again.append(aborted.pop() == payload)
        action = chance.choice([None, *Action])
        (aborted if action is Action.ABORT else received).append(bytes(payload))
        return action

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish_sealed, publication, 400)
        await read_until(lambda: source.controlled_poll(handler, chance.randint(1, 20)), lambda: len(received) == 400)
    assert numbers_of(received) == list(range(400))
    assert len(given_again) > 20
    assert all(given_again)
    assert subscription.images[0].position == publication.position


async def test_c2_commit_moves_the_position_at_once_and_continue_when_the_poll_ends(
    client: Client, stream_id: int
) -> None:
    publication, subscription = await open_pair(client, "aeron:ipc", stream_id)
    (image,) = subscription.images
    publication.offer_many([b"%d" % number for number in range(4)])
    actions = iter([Action.CONTINUE, Action.COMMIT, Action.CONTINUE, Action.BREAK])
    positions = []

    def handler(payload: memoryview, header: Header) -> Action:
        positions.append(image.position)
        return next(actions)

    assert subscription.controlled_poll(handler) == 4
    assert positions == [0, 0, 128, 128]
    assert image.position == 256


async def test_c2_a_fragmented_message_that_is_aborted_comes_again_whole(
    client: Client, channel: str, stream_id: int
) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    message = sealed(0, 0, 5 * publication.max_payload_length)
    await publication.publish(message)
    await publication.publish(b"after")
    answers = [None, Action.ABORT, Action.ABORT]
    received: list[bytes] = []

    def handler(payload: memoryview, header: Header) -> Action | None:
        received.append(bytes(payload))
        return answers.pop() if answers else None

    await read_until(lambda: subscription.controlled_poll(handler, 2), lambda: len(received) == 4)
    assert received == [message] * 3 + [b"after"]


# --- C3 ---------------------------------------------------------------------------------------------------------------


async def test_c3_poll_batch_gives_columns_and_numpy_views(
    client: Client, channel: str, stream_id: int, by: Callable[[Subscription], Subscription | Image]
) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    source = by(subscription)
    ticks = np.zeros(5000, dtype=[("sequence", "i8"), ("price", "f8")])
    ticks["sequence"] = np.arange(len(ticks))
    ticks["price"] = np.linspace(-1, 1, len(ticks))
    batches: list[MessageBatch] = []

    async def publish() -> None:
        for tick in ticks:
            await publication.publish(tick.tobytes(), reserved_value=int(tick["sequence"]), timeout=LIMIT)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish)
        await read_until(lambda: batches.append(source.poll_batch(300)), lambda: sum(map(len, batches)) == len(ticks))
    assert max(map(len, batches)) <= 300
    arrays = [batch.as_array(ticks.dtype) for batch in batches]
    assert all(
        np.shares_memory(array, np.frombuffer(batch.buffer, "u1"))
        for array, batch in zip(arrays, batches, strict=True)
        if batch
    )
    assert (np.concatenate(arrays) == ticks).all()
    reserved = np.concatenate([np.asarray(batch.reserved_values) for batch in batches])
    assert (reserved == ticks["sequence"]).all()
    positions = np.concatenate([np.asarray(batch.stream_positions) for batch in batches])
    assert (positions == 64 * (1 + np.arange(len(ticks)))).all()
    sessions = np.concatenate([np.asarray(batch.session_ids) for batch in batches])
    assert set(sessions) == {publication.session_id}


# --- C4 ---------------------------------------------------------------------------------------------------------------


async def test_c4_iterations_that_are_cancelled_lose_and_repeat_nothing(
    client: Client, channel: str, stream_id: int, by: Callable[[Subscription], Subscription | Image]
) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    source = by(subscription)
    received: list[bytes] = []

    async def read(kind: int) -> None:
        match kind % 3:
            case 0:
                async for message in source:
                    received.append(message.payload)  # noqa: PERF401 (what was received before the cancellation counts)
            case 1:
                async for payload in source.payloads():
                    received.append(payload)  # noqa: PERF401
            case 2:
                async for batch in source.batches(5):
                    received.extend(batch)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish_sealed, publication, 500)
        kind = 0
        with anyio.fail_after(LIMIT):
            while len(received) < 500:
                kind += 1
                async with anyio.create_task_group() as readers:
                    readers.start_soon(read, kind)
                    for _ in range(kind % 7):
                        await anyio.lowlevel.checkpoint()
                    readers.cancel_scope.cancel()
    assert numbers_of(received) == list(range(500))


# --- C5 ---------------------------------------------------------------------------------------------------------------


async def test_c5_image_handlers_hear_of_late_joiners_and_leavers_and_can_look_images_up(
    client: Client, channel: str, stream_id: int
) -> None:
    subscriptions: list[Subscription] = []
    events: list[tuple[str, int, bool, int]] = []

    def seen(event: str) -> Callable[[Image], None]:
        def handler(image: Image) -> None:
            found = subscriptions[0].image_by_session_id(image.session_id) if subscriptions else None
            count = subscriptions[0].image_count if subscriptions else -1
            events.append((event, image.session_id, found is image, count))

        return handler

    subscriptions.append(
        await client.add_subscription(
            channel, stream_id, on_available_image=seen("came"), on_unavailable_image=seen("went")
        )
    )
    first = await client.add_exclusive_publication(channel, stream_id)
    await eventually(lambda: len(events) == 1)
    second = await client.add_exclusive_publication(channel, stream_id)
    await eventually(lambda: len(events) == 2)
    await first.aclose()
    await eventually(lambda: len(events) == 3)
    await second.aclose()
    await eventually(lambda: len(events) == 4)
    assert events == [
        ("came", first.session_id, True, 1),
        ("came", second.session_id, True, 2),
        ("went", first.session_id, False, 1),
        ("went", second.session_id, False, 0),
    ]


async def test_c5_images_are_there_for_the_handler_of_a_subscription_that_joins_late(
    client: Client, channel: str, stream_id: int
) -> None:
    early = await client.add_subscription(channel, stream_id)
    publications = [await client.add_exclusive_publication(channel, stream_id) for _ in range(3)]
    await eventually(lambda: early.image_count == 3)
    came: list[int] = []
    late = await client.add_subscription(
        channel, stream_id, on_available_image=lambda image: came.append(image.session_id)
    )
    await eventually(lambda: len(came) == 3)
    assert sorted(came) == sorted(publication.session_id for publication in publications)
    assert {image.correlation_id for image in late.images} == {image.correlation_id for image in early.images}


async def test_c5_each_image_is_read_by_itself_to_the_end_of_its_stream(
    client: Client, channel: str, stream_id: int
) -> None:
    subscription = await client.add_subscription(channel, stream_id)
    publications = [await client.add_exclusive_publication(channel, stream_id) for _ in range(3)]
    for number, publication in enumerate(publications):
        for index in range(number + 1):
            await publication.publish(sealed(number, index, 3000), timeout=LIMIT)
    await eventually(lambda: subscription.image_count == 3)
    for number, publication in reversed(list(enumerate(publications))):
        image = subscription.image_by_session_id(publication.session_id)
        assert image is not None
        if channel != "aeron:ipc":
            await eventually(lambda image=image: image.active_transport_count == 1)
        assert [unseal(data) for data in await take(image.payloads(), number + 1)] == [
            (number, index) for index in range(number + 1)
        ]
        assert image.position == publication.position
        assert not image.is_end_of_stream
        await publication.aclose()
        await eventually(lambda image=image: image.is_end_of_stream)
        assert image.end_of_stream_position == image.position
        assert not image.is_publication_revoked


async def test_c5_a_publisher_hears_why_its_image_was_rejected(
    aeron_dir: Path, client: Client, channel: str, stream_id: int
) -> None:
    errors: list[PublicationError] = []
    async with connect(aeron_dir, on_publication_error=errors.append) as publisher:
        gone: list[Image] = []
        subscription = await client.add_subscription(channel, stream_id, on_unavailable_image=gone.append)
        publication = await publisher.add_publication(channel, stream_id)
        await publication.publish(b"unwanted", timeout=LIMIT)
        await take(subscription.payloads(), 1)
        (image,) = subscription.images
        await image.reject("not today: grüße")
        await eventually(lambda: bool(errors and gone))
        assert gone == [image]
        assert image.is_closed
        assert (errors[0].registration_id, errors[0].session_id) == (publication.registration_id, image.session_id)
        assert errors[0].message == "not today: grüße"
        # The driver joins the two again after its image liveness timeout, where it knows the stream to be.
        await subscription.wait_connected(LIMIT)
        assert subscription.images[0] is not image
        await publication.publish(b"again", timeout=LIMIT)
        join_position = subscription.images[0].join_position
        expected = [b"unwanted", b"again"][join_position // 64 :]
        assert await take(subscription.payloads(), len(expected)) == expected


async def test_c5_an_image_knows_that_its_publication_was_revoked(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id, exclusive=True)
    (image,) = subscription.images
    assert not image.is_publication_revoked
    await publication.publish(b"never to be read")
    await publication.revoke()
    await eventually(lambda: image.is_closed)
    assert image.is_publication_revoked


async def test_c5_images_may_come_and_go_while_they_are_polled(
    aeron_dir: Path, client: Client, channel: str, stream_id: int
) -> None:
    subscription = await client.add_subscription(channel, stream_id)
    received: dict[int, list[int]] = defaultdict(list)
    publishers, messages = 12, 30

    def handler(payload: memoryview, header: Header) -> None:
        publisher, number = unseal(bytes(payload))
        received[publisher].append(number)

    async def publish(publisher: int) -> None:
        async with (
            connect(aeron_dir) as other,
            await other.add_exclusive_publication(channel, stream_id) as publication,
        ):
            for number in range(messages):
                await publication.publish(sealed(publisher, number, 2000), timeout=LIMIT)

    async def publish_some(first: int) -> None:
        for publisher in range(first, publishers, 3):
            await publish(publisher)

    turn = 0

    def read() -> None:
        nonlocal turn
        turn += 1
        match turn % 3:
            case 0:
                subscription.poll(handler, 5)
            case 1:
                subscription.controlled_poll(handler, 5)
            case 2:
                for image in subscription.images:
                    image.poll(handler, 2)

    async with anyio.create_task_group() as tasks:
        for first in range(3):
            tasks.start_soon(publish_some, first)
        await read_until(read, lambda: sum(map(len, received.values())) == publishers * messages)
    assert received == {publisher: list(range(messages)) for publisher in range(publishers)}
    await eventually(lambda: subscription.image_count == 0)


async def test_c5_a_poll_that_pauses_past_the_linger_of_an_image_finds_it_gone_and_reads_on(
    aeron_dir: Path, channel: str, stream_id: int
) -> None:
    async with connect(aeron_dir, resource_linger=0.01, keepalive_interval=0.05) as client:
        publication, subscription = await open_pair(client, channel, stream_id, exclusive=True)
        (image,) = subscription.images
        for number in range(20):
            await publication.publish(sealed(0, number, 100))
        iteration = image.payloads()
        assert unseal((await take(iteration, 1))[0]) == (0, 0)
        with image.block(NO_LIMIT) as block:
            frames = block.buffer
            await publication.revoke()
            await eventually(lambda: image.is_closed)
            await anyio.sleep(0.2)
            payloads = [bytes(payload) for payload in block.payloads()]
        assert all(unseal(payload)[0] == 0 for payload in payloads)
        position = image.position
        assert image.poll(lambda payload, header: None) == 0
        assert image.controlled_poll(lambda payload, header: None) == 0
        assert len(image.poll_batch()) == 0
        assert [len(payload) async for payload in image.payloads()] == []
        assert image.position == position
        assert len(bytes(frames)) == len(frames)

        other = await client.add_exclusive_publication(channel, stream_id)
        await other.publish(b"from another", timeout=LIMIT)
        assert await take(subscription.payloads(), 1) == [b"from another"]


async def test_c5_what_is_left_of_a_stream_is_there_after_a_pause(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id, exclusive=True)
    for number in range(20):
        await publication.publish(sealed(0, number, 1000), timeout=LIMIT)
    received = await take(subscription.payloads(), 1)
    await publication.aclose()
    # Longer than the driver's liveness timeout of images and linger of publications.
    await anyio.sleep(1)
    received += await take(subscription.payloads(), 19)
    assert numbers_of(received) == list(range(20))


async def test_c5_a_subscription_finds_the_port_that_it_was_given(client: Client, stream_id: int) -> None:
    subscription = await client.add_subscription("aeron:udp?endpoint=127.0.0.1:0|alias=any", stream_id)
    await eventually(lambda: subscription.resolved_endpoint is not None)
    assert subscription.local_socket_addresses == [subscription.resolved_endpoint]
    resolved = subscription.try_resolve_channel_endpoint_port()
    assert resolved == f"aeron:udp?endpoint={subscription.resolved_endpoint}|alias=any"
    publication = await client.add_publication(resolved, stream_id)
    await publication.publish(b"found", timeout=LIMIT)
    assert await take(subscription.payloads(), 1) == [b"found"]
    ipc = await client.add_subscription("aeron:ipc", stream_id)
    assert (ipc.resolved_endpoint, ipc.local_socket_addresses) == (None, [])
    assert ipc.try_resolve_channel_endpoint_port() == "aeron:ipc"


# --- C6 ---------------------------------------------------------------------------------------------------------------


async def test_c6_bounded_polls_stop_where_they_must(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    (image,) = subscription.images
    ends = [await publication.publish(sealed(0, number, 4000), timeout=LIMIT) for number in range(6)]
    received: list[bytes] = []

    def handler(payload: memoryview, header: Header) -> None:
        received.append(bytes(payload))

    for number, end in enumerate(ends):
        poll = image.bounded_poll if number % 2 else image.bounded_controlled_poll
        await read_until(lambda poll=poll, end=end: poll(handler, end, 2), lambda end=end: image.position >= end)
        assert len(received) == number + 1
        assert poll(handler, end) == 0
        assert image.position == end
    assert numbers_of(received) == list(range(6))


async def test_c6_block_poll_hands_out_every_frame_in_place(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    (image,) = subscription.images
    copy = bytearray()
    terms: list[int] = []

    def handler(block: memoryview, session_id: int, term_id: int) -> None:
        assert session_id == publication.session_id
        copy.extend(block)
        terms.append(term_id - publication.initial_term_id)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish_sealed, publication, 200)
        await read_until(lambda: image.block_poll(handler, 8192), lambda: _messages(bytes(copy))[-1:] == [199])
    assert _messages(bytes(copy)) == list(range(200))
    assert len(copy) == image.position == publication.position
    assert terms == sorted(terms)
    assert terms[-1] > 0


def _messages(frames: bytes) -> list[int]:
    """The numbers of the sealed messages in a copy of a stream."""
    numbers = []
    message = b""
    offset = 0
    while offset < len(frames):
        length = int.from_bytes(frames[offset : offset + 4], "little")
        flags, is_data = frames[offset + 5], frames[offset + 6] == 1
        if is_data:
            payload = frames[offset + 32 : offset + length]
            message = payload if flags & 0x80 else message + payload
            if flags & 0x40:
                numbers.append(unseal(message)[1])
        offset += (length + 31) & ~31
    return numbers


async def test_c6_a_block_becomes_an_array_over_the_log(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    (image,) = subscription.images
    ticks = np.zeros(3000, dtype=[("sequence", "i8"), ("price", "f8")])
    ticks["sequence"] = np.arange(len(ticks))
    arrays: list[np.ndarray] = []

    async def publish() -> None:
        for tick in ticks:
            await publication.publish(tick.tobytes(), timeout=LIMIT)

    def read() -> None:
        with image.block(NO_LIMIT) as block:
            arrays.append(block.as_array(ticks.dtype).copy())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish)
        await read_until(read, lambda: sum(map(len, arrays)) == len(ticks))
    assert (np.concatenate(arrays) == ticks).all()


async def test_c6_blocks_of_one_stream_make_another(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id, exclusive=True)
    (image,) = subscription.images
    relay = await client.add_exclusive_publication(
        f"aeron:ipc?init-term-id={image.initial_term_id}|term-id={image.initial_term_id}|term-offset=0"
        f"|term-length={image.term_buffer_length}|mtu={image.mtu_length}|session-id={image.session_id}",
        stream_id + 100_000,
    )
    far = await client.add_subscription("aeron:ipc", stream_id + 100_000)
    await relay.wait_connected(LIMIT)
    received: list[bytes] = []

    async def read() -> None:
        received.extend(await take(far.payloads(), 200))

    async def forward() -> None:
        while len(received) < 200:
            with image.block(4096) as block:
                frames = _with_stream_id(bytes(block.buffer), relay.stream_id)
                is_padding = not list(block.payloads())
            # A block of padding is no message's, and made anew.
            append = (
                partial(relay.append_padding, len(frames) - 32) if is_padding else partial(relay.offer_block, frames)
            )
            while frames and append() < 0:
                await anyio.sleep(0.001)
            await anyio.lowlevel.checkpoint()

    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(publish_sealed, publication, 200)
            tasks.start_soon(read)
            tasks.start_soon(forward)
    assert numbers_of(received) == list(range(200))


def _with_stream_id(frames: bytes, stream_id: int) -> bytes:
    changed = bytearray(frames)
    offset = 0
    while offset < len(frames):
        changed[offset + 16 : offset + 20] = stream_id.to_bytes(4, "little")
        offset += (int.from_bytes(frames[offset : offset + 4], "little") + 31) & ~31
    return bytes(changed)

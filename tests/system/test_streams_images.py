"""Images that come and go with the publishers, and the handlers that hear of it."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from aeron_async import Client, Image, NotConnectedError, connect
from tests.support import LIMIT, eventually, open_pair, take

pytestmark = pytest.mark.anyio


async def test_images_come_and_go_with_publishers(client: Client, channel: str, stream_id: int) -> None:
    events: list[tuple[str, int]] = []
    subscription = await client.add_subscription(
        channel,
        stream_id,
        on_available_image=lambda image: events.append(("available", image.session_id)),
        on_unavailable_image=lambda image: events.append(("unavailable", image.session_id)),
    )
    assert not subscription.is_connected
    assert subscription.images == ()
    with pytest.raises(NotConnectedError):
        await subscription.wait_connected(timeout=0.05)

    first = await client.add_exclusive_publication(channel, stream_id)
    await subscription.wait_connected(LIMIT)
    second = await client.add_exclusive_publication(channel, stream_id)
    await eventually(lambda: subscription.image_count == 2)
    image = subscription.image_by_session_id(second.session_id)
    assert image is not None
    assert subscription.image_by_session_id(0x7FFFFFFF) is None

    await second.aclose()
    await eventually(lambda: subscription.image_count == 1)
    assert image.is_closed
    assert subscription.is_connected
    await first.aclose()
    await eventually(lambda: not subscription.is_connected)
    assert events == [
        ("available", first.session_id),
        ("available", second.session_id),
        ("unavailable", second.session_id),
        ("unavailable", first.session_id),
    ]


async def test_an_image_knows_its_source(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    (image,) = subscription.images
    assert image.session_id == publication.session_id
    assert image.subscription_registration_id == subscription.registration_id
    assert image.initial_term_id == publication.initial_term_id
    assert image.join_position == image.position == 0
    assert not image.is_end_of_stream
    assert not image.is_publication_revoked
    if channel == "aeron:ipc":
        assert image.source_identity == "aeron:ipc"
        assert image.correlation_id == publication.registration_id
        assert image.active_transport_count == 0
    else:
        assert image.source_identity.startswith("127.0.0.1:")
        await eventually(lambda: image.active_transport_count == 1)


async def test_an_image_ends_where_its_publisher_ended(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    (image,) = subscription.images
    await publication.publish(b"last")
    end = publication.position
    await publication.aclose()
    await eventually(lambda: image.end_of_stream_position == end)
    assert not image.is_end_of_stream
    assert await take(image.payloads(), 1) == [b"last"]
    assert image.is_end_of_stream
    await eventually(lambda: image.is_closed)
    assert image.position == end
    assert image.is_end_of_stream


async def test_an_iteration_over_an_image_ends_with_its_publisher(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    (image,) = subscription.images
    received: list[bytes] = []

    async def read() -> None:
        received.extend([data async for data in image.payloads()])

    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await publication.publish(b"one")
            await publication.publish(b"two")
            await publication.aclose()
    assert received == [b"one", b"two"]


async def test_an_image_is_there_before_its_handler_hears_of_it(client: Client, channel: str, stream_id: int) -> None:
    seen: list[bool] = []
    subscription = await client.add_subscription(
        channel, stream_id, on_available_image=lambda image: seen.append(not image.is_closed and image.position == 0)
    )
    await client.add_publication(channel, stream_id)
    await subscription.wait_connected(LIMIT)
    assert seen == [True]


async def test_async_handlers_run_in_order_and_may_add_resources(client: Client, channel: str, stream_id: int) -> None:
    steps: list[tuple[str, int]] = []
    answers = await client.add_subscription(channel, stream_id + 50_000)

    async def answer(image: Image) -> None:
        steps.append(("start", image.session_id))
        publication = await client.add_publication(channel, stream_id + 50_000)
        await publication.publish(b"hello, %d" % image.session_id, timeout=LIMIT)
        steps.append(("end", image.session_id))

    async def gone(image: Image) -> None:
        steps.append(("gone", image.session_id))

    await client.add_subscription(channel, stream_id, on_available_image=answer, on_unavailable_image=gone)
    first = await client.add_exclusive_publication(channel, stream_id)
    second = await client.add_exclusive_publication(channel, stream_id)
    received = await take(answers.payloads(), 2)
    assert set(received) == {b"hello, %d" % first.session_id, b"hello, %d" % second.session_id}
    await first.aclose()
    await eventually(lambda: len(steps) == 5)
    assert [step for step, _ in steps] == ["start", "end", "start", "end", "gone"]
    assert steps[4] == ("gone", first.session_id)


async def test_a_handler_that_raises_harms_nobody_and_is_reported(aeron_dir: Path, stream_id: int) -> None:
    errors: list[Exception] = []

    def available(image: Image) -> None:
        raise KeyError("plain")

    async def unavailable(image: Image) -> None:
        raise KeyError("async")

    async with connect(aeron_dir, on_error=errors.append) as client:
        subscription = await client.add_subscription(
            "aeron:ipc", stream_id, on_available_image=available, on_unavailable_image=unavailable
        )
        publication = await client.add_publication("aeron:ipc", stream_id)
        await publication.publish(b"all is well", timeout=LIMIT)
        assert await take(subscription.payloads(), 1) == [b"all is well"]
        await publication.aclose()
        await eventually(lambda: len(errors) == 2)
    assert [str(error) for error in errors] == ["'plain'", "'async'"]


async def test_closing_a_subscription_tells_its_handler_of_every_image(
    client: Client, channel: str, stream_id: int
) -> None:
    gone: list[Image] = []
    subscription = await client.add_subscription(channel, stream_id, on_unavailable_image=gone.append)
    for _ in range(2):
        await client.add_exclusive_publication(channel, stream_id)
    await eventually(lambda: subscription.image_count == 2)
    images = subscription.images
    await subscription.aclose()
    assert gone == list(images)
    assert all(image.is_closed for image in images)


async def test_every_subscription_gets_the_whole_stream(
    client: Client, aeron_dir: Path, channel: str, stream_id: int
) -> None:
    async with connect(aeron_dir) as other:
        subscriptions = [await owner.add_subscription(channel, stream_id) for owner in (client, client, other)]
        publication = await client.add_publication(channel, stream_id)
        for subscription in subscriptions:
            await subscription.wait_connected(LIMIT)
        await publication.wait_connected(LIMIT)
        published = [b"%d" % number for number in range(100)]
        for data in published:
            await publication.publish(data)
        for subscription in subscriptions:
            assert await take(subscription.payloads(), 100) == published


async def test_publishers_that_come_and_go_are_all_heard_in_full(client: Client, channel: str, stream_id: int) -> None:
    subscription = await client.add_subscription(channel, stream_id)
    received: list[bytes] = []

    async def read() -> None:
        received.extend(await take(subscription.payloads(), 40))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        for generation in range(4):
            async with await client.add_exclusive_publication(channel, stream_id) as publication:
                for number in range(10):
                    await publication.publish(b"%d" % (10 * generation + number), timeout=LIMIT)
    assert sorted(map(int, received)) == list(range(40))
    await eventually(lambda: subscription.image_count == 0)

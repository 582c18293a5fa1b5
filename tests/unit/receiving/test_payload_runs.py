"""Payloads that come faster than the loop turns: whatever happens in the middle, none is lost or repeated."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest

from aeron_async._native import lib
from aeron_async.errors import AeronError
from aeron_async.subscription import Subscription
from tests.unit.rig import Bench, ImageStream, turns_of_another_task

pytestmark = pytest.mark.anyio

COUNT = 600
MESSAGES = [number.to_bytes(8, "little") for number in range(COUNT)]
FRAME = 64


@pytest.fixture
def subscription(bench: Bench) -> Subscription:
    return bench.add_subscription()


@pytest.fixture
def stream(bench: Bench, subscription: Subscription) -> ImageStream:
    """The only image of `subscription`, with all messages."""
    stream = bench.add_image(subscription)
    for message in MESSAGES:
        stream.log.append(message)
    return stream


async def take(payloads: AsyncIterator[bytes], count: int) -> list[bytes]:
    return [await anext(payloads) for _ in range(count)]


def native_position(stream: ImageStream) -> int:
    """What other processes see."""
    return int(lib.aa_image_position(stream.image._handle))


async def test_the_position_is_behind_each_message(subscription: Subscription, stream: ImageStream) -> None:
    payloads = subscription.payloads()
    for number, message in enumerate(MESSAGES):
        assert await anext(payloads) == message
        if number % 50 in (0, 30, 31):
            assert stream.image.position == FRAME * (number + 1)


@pytest.mark.parametrize("count", [1, 2, 9, 100, 256, 257, 300])
async def test_others_see_the_position_once_the_loop_has_had_its_turn(
    subscription: Subscription, stream: ImageStream, count: int
) -> None:
    await take(subscription.payloads(), count)
    await anyio.lowlevel.checkpoint()
    await anyio.sleep(0.001)
    assert native_position(stream) == FRAME * count


async def by_poll(subscription: Subscription) -> list[bytes]:
    received: list[bytes] = []
    subscription.poll(lambda payload, _: received.append(bytes(payload)), 3)
    return received


async def by_batch(subscription: Subscription) -> list[bytes]:
    return list(subscription.poll_batch(5))


async def by_image(subscription: Subscription) -> list[bytes]:
    return list(subscription.images[0].poll_batch(2))


async def by_block(subscription: Subscription) -> list[bytes]:
    with subscription.images[0].block(4 * FRAME) as block:
        return [bytes(payload) for payload in block.payloads()]


async def by_messages(subscription: Subscription) -> list[bytes]:
    return [(await anext(aiter(subscription))).payload]


async def by_other_payloads(subscription: Subscription) -> list[bytes]:
    return await take(subscription.payloads(), 20)


async def by_another_thread(subscription: Subscription) -> list[bytes]:
    received: list[bytes] = []
    thread = threading.Thread(target=lambda: received.extend(subscription.poll_batch(7)))
    thread.start()
    thread.join()
    return received


async def after_a_turn(subscription: Subscription) -> list[bytes]:
    await anyio.lowlevel.checkpoint()
    return []


WAYS = [by_poll, by_batch, by_image, by_block, by_messages, by_other_payloads, by_another_thread, after_a_turn]


@pytest.mark.parametrize("between", WAYS)
@pytest.mark.parametrize("stretch", [1, 3, 40])
async def test_every_way_to_read_goes_on_where_it_was_left(
    subscription: Subscription,
    stream: ImageStream,
    between: Callable[[Subscription], Awaitable[list[bytes]]],
    stretch: int,
) -> None:
    payloads = subscription.payloads()
    received: list[bytes] = []
    while len(received) < COUNT - 100:
        received += await take(payloads, stretch)
        received += await between(subscription)
    assert received == MESSAGES[: len(received)]
    assert stream.image.position == FRAME * len(received)


async def test_two_iterations_share_what_there_is(subscription: Subscription, stream: ImageStream) -> None:
    first, second = subscription.payloads(), subscription.payloads()
    received: list[bytes] = []
    while len(received) < COUNT:
        received += await take(first, 20)
        received += await take(second, 10)
    assert received == MESSAGES


async def test_an_iteration_that_is_dropped_loses_nothing(subscription: Subscription, stream: ImageStream) -> None:
    received: list[bytes] = []
    while len(received) < COUNT:
        received += await take(subscription.payloads(), 12)
    assert received == MESSAGES


async def test_an_image_that_goes_keeps_the_position(
    subscription: Subscription, stream: ImageStream, bench: Bench
) -> None:
    payloads = subscription.payloads()
    await take(payloads, 30)
    bench.remove_image(stream.image)
    assert stream.image.position == FRAME * 30


async def test_a_forked_child_delivers_nothing_and_moves_no_position(
    subscription: Subscription, stream: ImageStream, bench: Bench
) -> None:
    payloads = subscription.payloads()
    await take(payloads, 30)
    before = native_position(stream)
    bench.conductor.close_handles()
    assert native_position(stream) == before
    with pytest.raises((StopAsyncIteration, AeronError)):
        await anext(payloads)


async def test_another_thread_may_ask_for_the_position_all_along(
    subscription: Subscription, stream: ImageStream
) -> None:
    positions: list[int] = []
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            positions.append(stream.image.position)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        received = await take(subscription.payloads(), COUNT)
    finally:
        is_over.set()
        thread.join()
    assert received == MESSAGES
    assert positions == sorted(positions)


async def test_other_tasks_have_their_turn(subscription: Subscription, stream: ImageStream) -> None:
    async with turns_of_another_task() as turns:
        await take(subscription.payloads(), COUNT)
        assert turns() > 0

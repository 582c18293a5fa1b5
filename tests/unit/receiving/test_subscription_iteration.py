"""Reading by iteration: waiting, leaving, and who may read at a time."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any, Self

import anyio
import anyio.lowlevel
import pytest

from aeron_async.errors import (
    CorruptFileError,
    DriverShutdownError,
    NotConnectedError,
    SubscriptionClosedError,
)
from aeron_async.protocol import commands
from aeron_async.protocol.frames import FrameFlags
from aeron_async.subscription import Image, Message, Subscription
from tests.unit.rig import Bench, ImageStream, turns_of_another_task, until

pytestmark = pytest.mark.anyio

Source = Subscription | Image


@pytest.fixture
def subscription(bench: Bench) -> Subscription:
    return bench.add_subscription()


@pytest.fixture
def stream(bench: Bench, subscription: Subscription) -> ImageStream:
    """The only image of `subscription`."""
    return bench.add_image(subscription)


class Payloads:
    """An iteration of the library, whatever it delivers, as one over payloads."""

    def __init__(self, iteration: AsyncIterator[Any], payload_of: Callable[[Any], bytes]) -> None:
        self._iteration = iteration
        self._payload_of = payload_of

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        return self._payload_of(await anext(self._iteration))


Iterate = Callable[[Source], AsyncIterator[bytes]]

ITERATIONS: dict[str, Iterate] = {
    "messages": lambda source: Payloads(aiter(source), bytes),
    "payloads": lambda source: Payloads(source.payloads(), bytes),
    "batches": lambda source: Payloads(source.batches(1), lambda batch: batch[0]),
}


@pytest.fixture(params=ITERATIONS)
def iterate(request: pytest.FixtureRequest) -> Iterate:
    """Each kind of iteration, as one over payloads."""
    return ITERATIONS[request.param]


async def collect(iteration: Any, received: list[bytes]) -> None:
    async for payload in iteration:
        received.append(payload)  # noqa: PERF401 (others look at it meanwhile)


# --- what comes -------------------------------------------------------------------------------------------------------


async def test_messages_come_in_order(source: Source, stream: ImageStream, iterate: Iterate) -> None:
    sent = [b"%d" % number * (number % 50) for number in range(400)]
    for message in sent:
        stream.log.append(message)
    received = []
    async for payload in iterate(source):
        received.append(payload)
        if len(received) == len(sent):
            break
    assert received == sent
    assert stream.image.position == stream.log.position


async def test_an_iteration_goes_on_behind_what_a_block_has_taken(
    source: Source, stream: ImageStream, iterate: Iterate
) -> None:
    for number in range(4):
        stream.log.append(b"%d" % number)
    received = [await anext(iterate(source))]
    with stream.image.block(2 * 64) as block:
        received += map(bytes, block.payloads())
    received.append(await anext(iterate(source)))
    assert received == [b"0", b"1", b"2", b"3"]


async def test_a_message_has_the_header_that_it_came_with(source: Source, stream: ImageStream) -> None:
    stream.log.append(b"one", reserved_value=1)
    stream.log.append(b"two" * 1000, reserved_value=2)
    messages: list[Message] = []
    async for message in source:
        messages.append(message)
        if len(messages) == 2:
            break
    assert [message.payload for message in messages] == [b"one", b"two" * 1000]
    assert [message.header.reserved_value for message in messages] == [1, 2]
    assert [message.header.position for message in messages] == [64, stream.log.position]


async def test_batches_are_never_empty_and_keep_their_limits(source: Source, stream: ImageStream) -> None:
    for _ in range(5):
        stream.log.append(bytes(100))
    sizes = []
    async for batch in source.batches(2):
        sizes.append(len(batch))
        if sum(sizes) == 5:
            break
    assert sizes == [2, 2, 1]
    for _ in range(3):
        stream.log.append(bytes(100))
    async for batch in source.batches(max_bytes=250):
        sizes.append(len(batch))
        if sum(sizes) == 8:
            break
    assert sizes[3:] == [2, 1]


async def test_a_frame_that_cannot_be_true_is_an_error_after_what_was_before_it(
    source: Source, stream: ImageStream, iterate: Iterate
) -> None:
    stream.log.append(b"good")
    at = stream.log.position
    stream.log.append(b"bad")
    stream.log.put_frame_length(at, 7)
    received: list[bytes] = []
    with pytest.raises(CorruptFileError, match=f"position {at}"):
        await collect(iterate(source), received)
    assert received == [b"good"]


# --- waiting ----------------------------------------------------------------------------------------------------------


async def test_a_reader_that_waits_gets_messages_as_they_come(
    source: Source, stream: ImageStream, iterate: Iterate
) -> None:
    received: list[bytes] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect, iterate(source), received)
        for number in range(20):
            stream.log.append(b"%d" % number)
            await until(lambda count=number + 1: len(received) == count)
        tasks.cancel_scope.cancel()
    assert received == [b"%d" % number for number in range(20)]


async def test_a_reader_that_waits_for_the_last_fragment_gets_the_message(
    source: Source, stream: ImageStream, iterate: Iterate
) -> None:
    received: list[bytes] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect, iterate(source), received)
        begin = stream.log.append_frame(b"a" * 100, FrameFlags.BEGIN)
        await until(lambda: stream.image.position == begin)
        stream.log.append_frame(b"b", FrameFlags.END)
        await until(lambda: len(received) == 1)
        tasks.cancel_scope.cancel()
    assert received == [b"a" * 100 + b"b"]


async def test_a_reader_without_images_waits_for_one(
    bench: Bench, subscription: Subscription, iterate: Iterate
) -> None:
    received: list[bytes] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect, iterate(subscription), received)
        await anyio.sleep(0.01)
        log = bench.add_image(subscription).log
        log.append(b"one")
        await until(lambda: received == [b"one"])
        tasks.cancel_scope.cancel()


async def test_a_reader_that_waits_notices_an_image_that_comes_later(
    bench: Bench, subscription: Subscription, stream: ImageStream, iterate: Iterate
) -> None:
    received: list[bytes] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect, iterate(subscription), received)
        await anyio.sleep(0.01)
        later = bench.add_image(subscription, correlation_id=2).log
        await anyio.sleep(0.01)
        later.append(b"later")
        await until(lambda: received == [b"later"])
        stream.log.append(b"first")
        await until(lambda: received == [b"later", b"first"])
        tasks.cancel_scope.cancel()


# --- leaving ----------------------------------------------------------------------------------------------------------


async def test_leaving_by_break_loses_and_repeats_nothing(
    source: Source, stream: ImageStream, iterate: Iterate
) -> None:
    sent = [b"%d" % number for number in range(30)]
    for message in sent:
        stream.log.append(message)
    received = []
    while len(received) < len(sent):
        begin = len(received)
        async for payload in iterate(source):
            received.append(payload)
            if len(received) in (begin + 7, len(sent)):
                break
        assert stream.image.position == 64 * len(received)
    assert received == sent


async def test_leaving_by_an_exception_loses_and_repeats_nothing(
    source: Source, stream: ImageStream, iterate: Iterate
) -> None:
    for message in (b"one", b"two", b"three"):
        stream.log.append(message)
    received = []
    with pytest.raises(ZeroDivisionError):
        async for payload in iterate(source):
            received.append(payload)
            if len(received) == 2:
                raise ZeroDivisionError
    assert received + list(source.poll_batch()) == [b"one", b"two", b"three"]


async def test_leaving_by_cancellation_loses_and_repeats_nothing(
    source: Source, stream: ImageStream, iterate: Iterate
) -> None:
    sent: list[bytes] = []
    received: list[bytes] = []
    for turns in range(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect, iterate(source), received)
            for _ in range(turns):
                sent.append(b"%d" % len(sent))
                stream.log.append(sent[-1])
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    received += source.poll_batch()
    assert received == sent


async def test_one_iteration_follows_another_of_another_kind(subscription: Subscription, stream: ImageStream) -> None:
    sent = [b"%d" % number for number in range(24)]
    for message in sent:
        stream.log.append(message)
    received = []
    for iterate in itertools.cycle(ITERATIONS.values()):
        for source in (subscription, stream.image):
            async for payload in iterate(source):
                received.append(payload)
                if len(received) % 4 == 3:
                    break
            received += subscription.poll_batch(1)
        if len(received) == len(sent):
            break
    assert received == sent


async def test_an_iteration_that_was_left_goes_on_where_others_stopped(
    subscription: Subscription, stream: ImageStream
) -> None:
    for number in range(6):
        stream.log.append(b"%d" % number)
    iteration = subscription.payloads()
    received = [await anext(iteration)]
    received += subscription.poll_batch(2)
    received += [await anext(iteration)]
    received += [bytes(await anext(aiter(stream.image)))]
    received += [await anext(iteration)]
    assert received == [b"%d" % number for number in range(6)]


# --- one reader at a time ---------------------------------------------------------------------------------------------


async def test_while_a_reader_waits_nobody_else_may_read(
    subscription: Subscription, stream: ImageStream, source: Source, iterate: Iterate
) -> None:
    received: list[bytes] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect, iterate(source), received)
        await anyio.sleep(0.01)
        for other in (subscription, stream.image):
            for read in (other.poll_batch, lambda other=other: other.poll(lambda payload, header: None)):
                with pytest.raises(RuntimeError, match="only one may read"):
                    read()
            with pytest.raises(RuntimeError, match="only one may read"):
                await anext(iterate(other))
        stream.log.append(b"message")
        await until(lambda: received == [b"message"])
        tasks.cancel_scope.cancel()


async def test_between_two_messages_of_an_iteration_others_may_read(source: Source, stream: ImageStream) -> None:
    for number in range(4):
        stream.log.append(b"%d" % number)
    received = []
    async for payload in source.payloads():
        received += [payload, *source.poll_batch(1)]
        if len(received) == 4:
            break
    assert received == [b"0", b"1", b"2", b"3"]


async def test_after_a_cancelled_wait_the_next_may_read(source: Source, stream: ImageStream, iterate: Iterate) -> None:
    with anyio.move_on_after(0.01):
        await anext(iterate(source))
    stream.log.append(b"message")
    assert await anext(iterate(source)) == b"message"


# --- the end ----------------------------------------------------------------------------------------------------------


async def test_closing_ends_the_iteration(
    bench: Bench, subscription: Subscription, source: Source, iterate: Iterate
) -> None:
    received: list[bytes] = []
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect, iterate(source), received)
            await anyio.sleep(0.01)
            bench.conductor.close_resource(subscription.registration_id)
    await collect(iterate(source), received)
    assert received == []


async def test_the_iteration_of_an_image_ends_with_the_image(
    bench: Bench, subscription: Subscription, stream: ImageStream, iterate: Iterate
) -> None:
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect, iterate(stream.image), [])
            await anyio.sleep(0.01)
            bench.remove_image(stream.image)
    assert not subscription.is_closed


async def test_the_iteration_of_a_subscription_goes_on_when_an_image_leaves(
    bench: Bench, subscription: Subscription, stream: ImageStream, iterate: Iterate
) -> None:
    received: list[bytes] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect, iterate(subscription), received)
        await anyio.sleep(0.01)
        bench.remove_image(stream.image)
        log = bench.add_image(subscription, correlation_id=2).log
        log.append(b"next")
        await until(lambda: received == [b"next"])
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("waits", [True, False], ids=["while it waits", "before"])
async def test_the_reason_that_closed_the_client_comes_out_of_the_iteration(
    bench: Bench, source: Source, iterate: Iterate, waits: bool
) -> None:
    async def read() -> None:
        with pytest.raises(DriverShutdownError):
            await anext(iterate(source))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            if waits:
                tasks.start_soon(read)
                await anyio.sleep(0.01)
            bench.conductor.driver_exited()
            if not waits:
                tasks.start_soon(read)


# --- fairness ---------------------------------------------------------------------------------------------------------


async def test_a_busy_iteration_lets_other_tasks_run(source: Source, stream: ImageStream, iterate: Iterate) -> None:
    async with turns_of_another_task() as turns:
        stream.log.append(b"message")
        with anyio.fail_after(30):
            async for _ in iterate(source):
                if turns() >= 2:
                    break
                stream.log.append(b"message")


# --- wait_connected and closing --------------------------------------------------------------------------------------


async def test_wait_connected_returns_when_an_image_is_there(bench: Bench, subscription: Subscription) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(subscription.wait_connected, None)
        await anyio.sleep(0.01)
        bench.add_image(subscription)
    await subscription.wait_connected(timeout=0)


@pytest.mark.parametrize("timeout", [0, 0.01])
async def test_wait_connected_that_runs_out_of_time_says_so(subscription: Subscription, timeout: float) -> None:
    with pytest.raises(NotConnectedError, match="stream_id=10") as raised:
        await subscription.wait_connected(timeout=timeout)
    assert isinstance(raised.value, TimeoutError)


async def test_wait_connected_ends_when_the_subscription_is_closed(bench: Bench, subscription: Subscription) -> None:
    async def wait() -> None:
        with pytest.raises(SubscriptionClosedError):
            await subscription.wait_connected(timeout=None)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.sleep(0.01)
            bench.conductor.close_resource(subscription.registration_id)
    await wait()


async def test_wait_connected_ends_with_the_reason_that_closed_the_client(
    bench: Bench, subscription: Subscription
) -> None:
    async def wait() -> None:
        with pytest.raises(DriverShutdownError):
            await subscription.wait_connected(timeout=None)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.sleep(0.01)
            bench.conductor.driver_exited()


async def test_leaving_the_block_closes_the_subscription(bench: Bench, subscription: Subscription) -> None:
    async def use() -> None:
        async with subscription:
            pass

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(use)
        command = await bench.answer_removal(commands.RemoveSubscription)
    assert command.registration_id == subscription.registration_id
    assert subscription.is_closed
    await subscription.aclose()
    assert bench.driver.receive() == []


async def test_long_messages_give_other_tasks_their_turns_sooner(
    source: Source, stream: ImageStream, iterate: Iterate
) -> None:
    """Two hundred messages of 4 KiB are several turns, though as many short ones are not one."""
    message = bytes(4 << 10)
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    stream.log.append(message)
    received = 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take_turns)
        async for _ in iterate(source):
            # Always one more to come: an iteration that never waits.
            stream.log.append(message)
            received += 1
            if received == 200:
                break
        tasks.cancel_scope.cancel()
    assert turns > 0


@pytest.mark.parametrize("limit", [0, -1])
def test_batches_of_nothing_are_refused(source: Source, limit: int) -> None:
    with pytest.raises(ValueError, match="would never come"):
        source.batches(limit)

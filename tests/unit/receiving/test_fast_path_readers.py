"""One reader at a time, and no harm done: reading within a read, closing within one, awaitables half used or not."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, NamedTuple

import anyio
import anyio.lowlevel
import pytest

from aeron_async.errors import DriverShutdownError
from aeron_async.subscription import Header, Image, Subscription
from tests.conftest import BACKENDS
from tests.unit.rig import Bench, ImageStream, until

pytestmark = pytest.mark.anyio

Source = Subscription | Image

on_asyncio = pytest.mark.parametrize(
    "anyio_backend", [BACKENDS["asyncio"], BACKENDS["uvloop"]], ids=["asyncio", "uvloop"]
)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """The two kinds of event loop; what needs asyncio itself runs on uvloop, too."""
    return BACKENDS[request.param]


@pytest.fixture
def subscription(bench: Bench) -> Subscription:
    return bench.add_subscription()


@pytest.fixture
def stream(bench: Bench, subscription: Subscription) -> ImageStream:
    """The only image of `subscription`."""
    return bench.add_image(subscription)


def ignore(*arguments: object) -> None:
    pass


def enter_block(image: Image) -> None:
    with image.block(1000):
        pass


# Every call that reads at once; each would find something.
READS: dict[str, Callable[[Subscription, Image], object]] = {
    "poll": lambda subscription, image: subscription.poll(ignore),
    "controlled_poll": lambda subscription, image: subscription.controlled_poll(ignore),
    "poll_batch": lambda subscription, image: subscription.poll_batch(),
    "block_poll": lambda subscription, image: subscription.block_poll(ignore, 1000),
    "poll of an image": lambda subscription, image: image.poll(ignore),
    "controlled_poll of an image": lambda subscription, image: image.controlled_poll(ignore),
    "bounded_poll": lambda subscription, image: image.bounded_poll(ignore, 1 << 40),
    "bounded_controlled_poll": lambda subscription, image: image.bounded_controlled_poll(ignore, 1 << 40),
    "poll_batch of an image": lambda subscription, image: image.poll_batch(),
    "block_poll of an image": lambda subscription, image: image.block_poll(ignore, 1000),
    "block": lambda subscription, image: enter_block(image),
}

# Every call that reads by a handler.
POLLS: dict[str, Callable[[Subscription, Image, Callable[..., Any]], object]] = {
    "poll": lambda subscription, image, handler: subscription.poll(handler),
    "controlled_poll": lambda subscription, image, handler: subscription.controlled_poll(handler),
    "poll of an image": lambda subscription, image, handler: image.poll(handler),
    "bounded_poll": lambda subscription, image, handler: image.bounded_poll(handler, 1 << 40),
    "bounded_controlled_poll": lambda subscription, image, handler: image.bounded_controlled_poll(handler, 1 << 40),
}


class Way(NamedTuple):
    """A way to iterate."""

    source: Source
    begin: Callable[[], Any]


WAYS: dict[str, Callable[[Subscription, Image], Way]] = {
    "messages of a subscription": lambda subscription, image: Way(subscription, lambda: aiter(subscription)),
    "payloads of an image": lambda subscription, image: Way(image, image.payloads),
    "batches of a subscription": lambda subscription, image: Way(subscription, lambda: subscription.batches(1)),
}


@pytest.fixture(params=POLLS)
def poll(request: pytest.FixtureRequest) -> Callable[[Subscription, Image, Callable[..., Any]], object]:
    return POLLS[request.param]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, subscription: Subscription, stream: ImageStream) -> Way:
    return WAYS[request.param](subscription, stream.image)


def payload_of(item: Any) -> bytes:
    """The payload of what an iteration gives; of a batch that of its only message."""
    return item[0] if isinstance(item, list | tuple) or hasattr(item, "nbytes") else bytes(item)


def append(stream: ImageStream, *numbers: int) -> None:
    for number in numbers:
        stream.log.append(b"%d" % number)


def rest(source: Source) -> list[int]:
    """The messages that are still there."""
    return [int(payload) for payload in source.poll_batch()]


def check_that_nobody_else_may_read(subscription: Subscription, image: Image) -> None:
    for read in READS.values():
        with pytest.raises(RuntimeError, match="only one may read"):
            read(subscription, image)
    for way_to in WAYS.values():
        asked: Any = way_to(subscription, image).begin().__anext__()
        with pytest.raises(RuntimeError, match="only one may read"):
            asked.send(None)


# --- one reader at a time ---------------------------------------------------------------------------------------------


async def test_while_an_iteration_waits_nobody_else_may_read(
    subscription: Subscription, stream: ImageStream, way: Way
) -> None:
    received: list[bytes] = []

    async def read() -> None:
        received.append(payload_of(await anext(way.begin())))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await anyio.sleep(0.01)
        check_that_nobody_else_may_read(subscription, stream.image)
        append(stream, 1)
        await until(lambda: received == [b"1"])
    assert stream.image.position == stream.log.position


async def test_within_a_handler_nobody_else_may_read(
    subscription: Subscription, stream: ImageStream, poll: Callable[..., object]
) -> None:
    append(stream, 1, 2, 3)
    received: list[bytes] = []

    def handle(payload: memoryview, header: Header) -> None:
        check_that_nobody_else_may_read(subscription, stream.image)
        received.append(bytes(payload))

    assert poll(subscription, stream.image, handle) == 3
    assert received == [b"1", b"2", b"3"]
    assert stream.image.position == stream.log.position


async def test_within_a_block_nobody_else_may_read(subscription: Subscription, stream: ImageStream) -> None:
    append(stream, 1, 2)
    with stream.image.block(64) as block:
        check_that_nobody_else_may_read(subscription, stream.image)
        assert list(map(bytes, block.payloads())) == [b"1"]
    assert rest(subscription) == [2]


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit, GeneratorExit])
async def test_after_a_handler_that_raises_anything_the_rest_is_read_next(
    subscription: Subscription, stream: ImageStream, poll: Callable[..., object], error: type[BaseException]
) -> None:
    append(stream, 1, 2, 3)

    def handle(payload: memoryview, header: Header) -> None:
        if bytes(payload) == b"2":
            raise error

    with pytest.raises(error):
        poll(subscription, stream.image, handle)
    assert rest(subscription) == [3]


# --- closing meanwhile ------------------------------------------------------------------------------------------------

CLOSES: dict[str, Callable[[Bench, Subscription, Image], object]] = {
    "the subscription": lambda bench, subscription, _: bench.conductor.close_resource(subscription.registration_id),
    "the image": lambda bench, _, image: bench.remove_image(image),
    "the client": lambda bench, *_: bench.conductor.driver_exited(),
}


@pytest.fixture(params=CLOSES)
def close(request: pytest.FixtureRequest, bench: Bench, subscription: Subscription) -> Callable[[Image], object]:
    """Closes an image in one of the ways in which that happens."""
    return lambda image: CLOSES[request.param](bench, subscription, image)


async def test_closing_within_a_handler_is_safe(
    subscription: Subscription, stream: ImageStream, poll: Callable[..., object], close: Callable[[Image], object]
) -> None:
    image = stream.image
    append(stream, *range(5))
    received: list[int] = []

    def handle(payload: memoryview, header: Header) -> None:
        received.append(int(bytes(payload)))
        if len(received) == 2:
            close(image)
            gc.collect()

    poll(subscription, image, handle)
    assert received == list(range(len(received)))
    assert len(received) >= 2
    position = image.position
    assert image.is_closed
    assert poll(subscription, image, handle) == 0
    assert (rest(subscription), rest(image), image.position) == ([], [], position)


async def test_closing_within_a_block_is_safe(
    subscription: Subscription, stream: ImageStream, close: Callable[[Image], object]
) -> None:
    append(stream, 1, 2)
    with stream.image.block(1000) as block:
        close(stream.image)
        gc.collect()
        assert bytes(block.buffer[32:33]) == b"1"
    assert stream.image.is_closed
    assert (rest(subscription), rest(stream.image)) == ([], [])


async def test_closing_within_an_iteration_ends_it_after_what_it_has_read(
    stream: ImageStream, way: Way, close: Callable[[Image], object]
) -> None:
    append(stream, *range(5))
    iteration = way.begin()
    received = [int(payload_of(await anext(iteration)))]
    close(stream.image)
    gc.collect()
    with anyio.move_on_after(0.05) as scope, suppress(DriverShutdownError):
        async for item in iteration:
            received.append(int(payload_of(item)))  # noqa: PERF401 - what came before the error counts
    assert received == list(range(len(received)))
    assert scope.cancelled_caught != way.source.is_closed
    if way.source.is_closed:
        for _ in range(2):
            with pytest.raises((StopAsyncIteration, DriverShutdownError)):
                await anext(iteration)


async def test_an_iteration_that_is_over_gives_the_default(
    bench: Bench, subscription: Subscription, stream: ImageStream, way: Way
) -> None:
    append(stream, 1)
    iteration = way.begin()
    assert payload_of(await anext(iteration, "the default")) == b"1"
    bench.conductor.close_resource(subscription.registration_id)
    assert await anext(iteration, "the default") == "the default"


# --- what an iteration gives to be awaited ----------------------------------------------------------------------------


async def test_asking_does_nothing_before_it_is_awaited(stream: ImageStream, way: Way) -> None:
    append(stream, 1, 2)
    iteration = way.begin()
    assert aiter(iteration) is iteration
    first, second = iteration.__anext__(), iteration.__anext__()
    assert stream.image.position == 0
    assert rest(way.source) == [1, 2]
    append(stream, 3, 4)
    assert payload_of(await second) == b"3"
    assert payload_of(await first) == b"4"


async def test_what_was_awaited_cannot_be_awaited_again(stream: ImageStream, way: Way) -> None:
    append(stream, 1, 2, 3)
    iteration = way.begin()
    asked = iteration.__anext__()
    assert payload_of(await asked) == b"1"
    again = iteration.__anext__()
    assert again is not asked
    with pytest.raises(RuntimeError):
        await asked
    assert payload_of(await again) == b"2"
    with pytest.raises(RuntimeError):
        await again
    assert rest(way.source) == [3]


async def test_what_is_given_to_be_awaited_is_a_coroutine(stream: ImageStream, way: Way) -> None:
    append(stream, 1, 2)
    iteration = way.begin()
    asked: Any = iteration.__anext__()
    assert isinstance(asked, Coroutine)
    with pytest.raises(TypeError):
        asked.send("not yet begun")
    with pytest.raises(StopIteration) as stopped:
        asked.send(None)
    assert payload_of(stopped.value.value) == b"1"

    thrown: Any = iteration.__anext__()
    with pytest.raises(ZeroDivisionError):
        thrown.throw(ZeroDivisionError)
    with pytest.raises(RuntimeError):
        await thrown

    closed: Any = iteration.__anext__()
    closed.close()
    closed.close()
    with pytest.raises(RuntimeError):
        await closed
    assert rest(way.source) == [2]


@on_asyncio
@pytest.mark.parametrize("end", ["close", "throw", "collect"])
async def test_a_wait_that_is_given_up_half_way_leaves_the_reader_free(stream: ImageStream, way: Way, end: str) -> None:
    iteration = way.begin()
    asked: Any = iteration.__anext__()
    asked.send(None)
    with pytest.raises(RuntimeError, match="only one may read"):
        way.source.poll_batch()
    append(stream, 1)
    match end:
        case "close":
            asked.close()
        case "throw":
            with pytest.raises(ZeroDivisionError):
                asked.throw(ZeroDivisionError)
        case _:
            del asked
            gc.collect()
    assert rest(way.source) == [1]
    append(stream, 2)
    assert payload_of(await anext(iteration)) == b"2"


async def test_an_iteration_that_is_collected_half_used_leaves_the_rest(stream: ImageStream, way: Way) -> None:
    append(stream, *range(5))
    for number in range(3):
        iteration = way.begin()
        assert payload_of(await anext(iteration)) == b"%d" % number
        del iteration
        gc.collect()
    assert rest(way.source) == [3, 4]


@on_asyncio
async def test_asking_in_a_task_gives_the_next_message(stream: ImageStream, way: Way) -> None:
    iteration = way.begin()
    waiting = asyncio.create_task(anext(iteration))
    await asyncio.sleep(0.005)
    append(stream, 1, 2, 3)
    assert payload_of(await waiting) == b"1"
    assert payload_of(await asyncio.create_task(anext(iteration))) == b"2"
    assert payload_of(await asyncio.ensure_future(anext(iteration))) == b"3"
    assert stream.image.position == stream.log.position


@on_asyncio
async def test_asking_with_a_time_limit_loses_nothing(stream: ImageStream, way: Way) -> None:
    iteration = way.begin()
    received = []
    for number in range(20):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(iteration), 0.001)
        append(stream, number)
        received.append(int(payload_of(await asyncio.wait_for(anext(iteration), 30))))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(iteration), 0)
    assert received == list(range(20))


@on_asyncio
async def test_cancelling_at_the_moment_of_the_message_loses_nothing(stream: ImageStream, way: Way) -> None:
    iteration = way.begin()
    received: list[int] = []
    for number in range(40):
        waiting = asyncio.create_task(anext(iteration))
        for _ in range(number % 4):
            await asyncio.sleep(0)
        append(stream, number)
        # The watcher's wake-up may be on its way, or come, when the cancellation does.
        await asyncio.sleep(0.0005 * (number % 5))
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            received.append(int(payload_of(await waiting)))
    received += rest(way.source)
    assert received == list(range(40))


@on_asyncio
async def test_a_wait_that_is_shielded_goes_on_when_its_caller_is_cancelled(stream: ImageStream, way: Way) -> None:
    waiting = asyncio.create_task(anext(way.begin()))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(waiting), 0.005)
    with pytest.raises(RuntimeError, match="only one may read"):
        way.source.poll_batch()
    append(stream, 1)
    assert payload_of(await waiting) == b"1"


@on_asyncio
async def test_many_subscriptions_are_read_at_once(bench: Bench) -> None:
    streams: list[ImageStream] = []
    iterations = []
    for number, way_to in enumerate([*WAYS.values()] * 2):
        subscription = bench.add_subscription()
        log = bench.driver.create_log(session_id=number)
        streams.append(bench.add_image(subscription, log, correlation_id=number))
        iterations.append(way_to(subscription, streams[-1].image).begin())
    for turn in range(3):
        waiting = [asyncio.create_task(anext(iteration)) for iteration in iterations]
        await asyncio.sleep(0.002)
        for number in (3, 0, 5, 4, 1, 2):
            append(streams[number], 10 * turn + number)
        items = await asyncio.gather(*waiting)
        assert [int(payload_of(item)) for item in items] == [10 * turn + number for number in range(6)]


async def test_two_tasks_may_take_turns_with_one_iteration(stream: ImageStream, way: Way) -> None:
    append(stream, *range(100))
    iteration = way.begin()
    received: list[tuple[str, int]] = []

    async def read(name: str) -> None:
        for _ in range(50):
            received.append((name, int(payload_of(await anext(iteration)))))
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, "first")
        tasks.start_soon(read, "second")
    assert [number for _, number in received] == list(range(100))

"""What `__anext__` returns: a coroutine that may be awaited, wrapped, thrown into, closed or forgotten."""

from __future__ import annotations

import asyncio
import gc
import inspect
import sys
from collections.abc import Coroutine
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest

from aeron_async.subscription import Subscription
from tests.unit.rig import Bench, ImageStream, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def subscription(bench: Bench) -> Subscription:
    return bench.add_subscription()


@pytest.fixture
def stream(bench: Bench, subscription: Subscription) -> ImageStream:
    """The only image of `subscription`."""
    return bench.add_image(subscription)


def step(iteration: Any) -> Coroutine[Any, Any, Any]:
    """What the iteration's `__anext__` returns."""
    return cast(Coroutine[Any, Any, Any], iteration.__anext__())


async def test_it_is_a_coroutine(subscription: Subscription, stream: ImageStream) -> None:
    coroutine = step(subscription.payloads())
    assert isinstance(coroutine, Coroutine)
    assert inspect.iscoroutine(coroutine)
    assert inspect.isawaitable(coroutine)
    coroutine.close()


async def test_it_reads_when_it_is_awaited(subscription: Subscription, stream: ImageStream) -> None:
    coroutine = step(subscription.payloads())
    stream.log.append(b"message")
    assert stream.image.position == 0
    assert await coroutine == b"message"
    assert stream.image.position == 64


async def test_where_a_message_is_there_it_is_done_at_once(subscription: Subscription, stream: ImageStream) -> None:
    stream.log.append(b"one")
    stream.log.append(b"two")
    iteration = subscription.payloads()
    with pytest.raises(StopIteration) as done:
        step(iteration).send(None)
    assert done.value.value == b"one"
    stop = done.value
    assert await anext(iteration) == b"two"
    assert stop.value == b"one"


async def test_a_value_of_any_kind_comes_out_whole(subscription: Subscription, stream: ImageStream) -> None:
    stream.log.append(b"one")
    iteration = subscription.batches()
    coroutine = step(iteration)
    with pytest.raises(StopIteration) as done:
        coroutine.send(None)
    assert list(done.value.value) == [b"one"]


async def test_it_can_be_awaited_only_once(subscription: Subscription, stream: ImageStream) -> None:
    stream.log.append(b"one")
    stream.log.append(b"two")
    iteration = subscription.payloads()
    coroutine = step(iteration)
    assert await coroutine == b"one"
    with pytest.raises(RuntimeError, match="already awaited"):
        await coroutine
    assert await anext(iteration) == b"two"


async def test_two_at_once_wait_for_each_other(subscription: Subscription, stream: ImageStream) -> None:
    stream.log.append(b"one")
    stream.log.append(b"two")
    iteration = subscription.payloads()
    first, second = step(iteration), step(iteration)
    assert first is not second
    assert await second == b"one"
    assert await first == b"two"


async def test_while_one_is_parked_another_is_refused(subscription: Subscription, stream: ImageStream) -> None:
    iteration = subscription.payloads()
    received: list[bytes] = []

    async def wait() -> None:
        received.append(await anext(iteration))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.sleep(0.01)
        with pytest.raises(RuntimeError, match="only one may read"):
            await anext(iteration)
        stream.log.append(b"message")
    assert received == [b"message"]


async def test_one_that_is_never_awaited_reads_nothing_and_says_so(
    subscription: Subscription, stream: ImageStream
) -> None:
    stream.log.append(b"message")
    iteration = subscription.payloads()
    with pytest.warns(RuntimeWarning, match="was never awaited"):
        step(iteration)
    assert await anext(iteration) == b"message"


async def test_one_that_is_closed_before_it_is_awaited_reads_nothing(
    subscription: Subscription, stream: ImageStream
) -> None:
    stream.log.append(b"message")
    iteration = subscription.payloads()
    coroutine = step(iteration)
    coroutine.close()
    with pytest.raises(RuntimeError, match="already awaited"):
        await coroutine
    assert await anext(iteration) == b"message"


async def test_what_is_thrown_in_first_comes_out(subscription: Subscription, stream: ImageStream) -> None:
    stream.log.append(b"message")
    iteration = subscription.payloads()
    coroutine = step(iteration)
    with pytest.raises(ZeroDivisionError):
        coroutine.throw(ZeroDivisionError())
    with pytest.raises(RuntimeError, match="already awaited"):
        await coroutine
    assert await anext(iteration) == b"message"


async def test_a_value_cannot_be_sent_before_it_has_begun(subscription: Subscription, stream: ImageStream) -> None:
    stream.log.append(b"message")
    coroutine = step(subscription.payloads())
    with pytest.raises(TypeError, match="just-started"):
        coroutine.send(5)
    assert await coroutine == b"message"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("end", ["close", "throw", "forget"])
async def test_one_that_waits_and_is_ended_lets_others_read(
    subscription: Subscription, stream: ImageStream, anyio_backend: Any, end: str
) -> None:
    iteration = subscription.payloads()
    coroutine = step(iteration)
    coroutine.send(None)
    with pytest.raises(RuntimeError, match="only one may read"):
        subscription.poll_batch()
    match end:
        case "close":
            coroutine.close()
        case "throw":
            with pytest.raises(ZeroDivisionError):
                coroutine.throw(ZeroDivisionError())
        case "forget":
            del coroutine
            gc.collect()
    stream.log.append(b"message")
    assert await anext(iteration) == b"message"


async def test_a_cancelled_wait_loses_nothing(subscription: Subscription, stream: ImageStream) -> None:
    iteration = subscription.payloads()
    for number in range(20):
        with anyio.move_on_after(0.001):
            await anext(iteration)
        stream.log.append(b"%d" % number)
        assert await anext(iteration) == b"%d" % number


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_it_may_become_a_task(subscription: Subscription, stream: ImageStream, anyio_backend: Any) -> None:
    iteration = subscription.payloads()
    stream.log.append(b"at once")
    assert await asyncio.create_task(step(iteration)) == b"at once"
    waiting = asyncio.create_task(step(iteration))
    await asyncio.sleep(0.01)
    assert "__anext__" in repr(waiting)
    stream.log.append(b"later")
    assert await asyncio.wait_for(waiting, 30) == b"later"
    cancelled = asyncio.create_task(step(iteration))
    await asyncio.sleep(0.01)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    stream.log.append(b"after")
    assert list(subscription.poll_batch()) == [b"after"]


async def test_anext_with_a_default_waits_as_without(
    bench: Bench, subscription: Subscription, stream: ImageStream
) -> None:
    iteration = subscription.payloads()
    received: list[bytes | None] = []

    async def read() -> None:
        for _ in range(3):
            received.append(await anext(iteration, None))  # noqa: PERF401 (one after the other)

    stream.log.append(b"one")
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await until(lambda: len(received) == 1)
            stream.log.append(b"two")
            await until(lambda: len(received) == 2)
            bench.conductor.close_resource(subscription.registration_id)
    assert received == [b"one", b"two", None]


async def test_an_iteration_keeps_nothing_of_what_it_delivered(subscription: Subscription, stream: ImageStream) -> None:
    iteration = subscription.payloads()
    payloads = []
    for _ in range(10):
        stream.log.append(b"x" * 1000)
        payloads.append(await anext(iteration))
    others = [bytes([number]) * 1000 for number in range(10)]
    counts, ordinary = ({sys.getrefcount(payload) for payload in some[:-1]} for some in (payloads, others))
    assert counts == ordinary
    before = sys.getrefcount(subscription)
    del iteration
    assert sys.getrefcount(subscription) < before

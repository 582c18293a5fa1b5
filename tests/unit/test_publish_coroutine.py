"""What publish() returns: a coroutine, whichever face has made it."""

from __future__ import annotations

import asyncio
import gc
import inspect
import weakref
from collections.abc import Callable, Coroutine, Generator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aeron_async.errors import BackPressuredError
from tests.unit.rig import Bench, PublicationStream, Rig, until

Add = Callable[..., PublicationStream]


@pytest.fixture
def stream(rig: Rig) -> PublicationStream:
    return rig.add_publication()


def outcome(coroutine: Any) -> Any:
    """What a coroutine that need not wait returns."""
    with pytest.raises(StopIteration) as done:
        coroutine.send(None)
    return done.value.value


# --- without a loop ---------------------------------------------------------------------------------------------------


def test_it_counts_as_a_coroutine(stream: PublicationStream) -> None:
    coroutine = stream.publication.publish(b"message")
    assert isinstance(coroutine, Coroutine)
    assert asyncio.iscoroutine(coroutine)
    assert inspect.iscoroutine(coroutine)
    assert (coroutine.__name__, coroutine.__qualname__) == ("publish", "PublicationPath.publish")  # type: ignore[attr-defined]
    coroutine.close()


def test_frameworks_that_ask_before_they_call_are_told_the_truth(stream: PublicationStream) -> None:
    assert asyncio.iscoroutinefunction(stream.publication.publish)
    assert asyncio.iscoroutinefunction(type(stream.publication).publish)
    assert not asyncio.iscoroutinefunction(stream.publication.offer)


def test_it_does_its_work_when_it_is_awaited(stream: PublicationStream) -> None:
    publication, log, _ = stream
    data = bytearray(b"before")
    coroutine = publication.publish(data, reserved_value=7)
    assert log.messages() == []
    data[:] = b"after!"
    assert outcome(coroutine) == 64
    ((header, payload),) = log.frames()
    assert (header.reserved_value, payload) == (7, b"after!")


def test_it_is_awaited_once(stream: PublicationStream) -> None:
    coroutine = stream.publication.publish(b"message")
    outcome(coroutine)
    for again in (lambda: coroutine.send(None), lambda: coroutine.throw(ValueError())):
        with pytest.raises(RuntimeError, match="already awaited"):
            again()
    coroutine.close()
    assert stream.log.messages() == [b"message"]


def test_one_that_nobody_awaits_warns_and_publishes_nothing(stream: PublicationStream) -> None:
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match=r"'PublicationPath.publish' was never awaited"):
            stream.publication.publish(b"message")
    outcome(stream.publication.publish(b"another"))
    assert stream.log.messages() == [b"another"]


def test_one_that_is_closed_or_thrown_into_publishes_nothing(stream: PublicationStream) -> None:
    coroutine = stream.publication.publish(b"message")
    coroutine.close()
    coroutine.close()
    with pytest.raises(RuntimeError):
        coroutine.send(None)
    with pytest.raises(KeyError):
        stream.publication.publish(b"message").throw(KeyError())
    assert stream.log.messages() == []


def test_it_begins_with_none(stream: PublicationStream) -> None:
    coroutine = stream.publication.publish(b"message")
    with pytest.raises(TypeError, match="just-started"):
        coroutine.send(5)
    assert outcome(coroutine) == 64


def test_what_is_no_message_is_found_when_it_is_awaited(stream: PublicationStream) -> None:
    coroutines = [
        stream.publication.publish("text"),  # type: ignore[arg-type]
        stream.publication.publish(b"", reserved_value="7"),  # type: ignore[arg-type]
    ]
    for coroutine in coroutines:
        with pytest.raises(TypeError):
            coroutine.send(None)
    with pytest.raises(OverflowError):
        stream.publication.publish(b"", reserved_value=1 << 63).send(None)
    assert stream.log.messages() == []


@pytest.mark.parametrize("call", ["publish", "offer"])
def test_arguments_are_named_as_they_are_documented(stream: PublicationStream, call: str) -> None:
    method = getattr(stream.publication, call)
    signature = inspect.signature(method)
    assert list(signature.parameters) == ["data", "reserved_value", "timeout"][: len(signature.parameters)]
    for arguments, options in (((), {}), ((b"", 1), {}), ((b"",), {"data": b""}), ((b"",), {"unknown": 1})):
        with pytest.raises(TypeError):
            method(*arguments, **options)
    result = method(data=b"message", reserved_value=7)
    assert (outcome(result) if call == "publish" else result) == 64


def test_a_stop_iteration_that_was_kept_stays_what_it_was(stream: PublicationStream) -> None:
    kept = []
    for _ in range(3):
        iterator: Generator[Any, Any, int] = stream.publication.publish(b"").__await__()
        with pytest.raises(StopIteration) as done:
            next(iterator)
        kept.append(done.value)
    assert [stop.value for stop in kept] == [32, 64, 96]


def test_the_message_is_let_go_of(stream: PublicationStream) -> None:
    class Message(bytearray):
        pass

    for end in (outcome, lambda coroutine: coroutine.close()):
        data = Message(b"message")
        gone = weakref.ref(data)
        coroutine = stream.publication.publish(data)
        end(coroutine)
        del data, coroutine
        gc.collect()
        assert gone() is None


# --- in a loop --------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_it_may_be_a_task(bench: Bench, anyio_backend_name: str) -> None:
    publication, log, limit = bench.add_publication(limit=0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publication.publish, b"1")
        await anyio.lowlevel.checkpoint()
        limit.value = 1 << 20
    assert log.messages() == [b"1"]
    if anyio_backend_name == "asyncio":
        assert await asyncio.create_task(publication.publish(b"2")) == 128
        assert await asyncio.gather(publication.publish(b"3"), publication.publish(b"4")) == [192, 256]
        assert await asyncio.wait_for(publication.publish(b"5"), 10) == 320
        async with asyncio.TaskGroup() as group:
            group.create_task(publication.publish(b"6"))
        assert log.messages() == [b"1", b"2", b"3", b"4", b"5", b"6"]


@pytest.mark.anyio
async def test_one_that_waits_can_be_cancelled_and_publishes_nothing(bench: Bench) -> None:
    publication, log, limit = bench.add_publication(limit=0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publication.publish, b"message")
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    limit.value = 1 << 20
    assert log.messages() == []


@pytest.mark.anyio
async def test_it_shows_what_it_waits_for(bench: Bench) -> None:
    publication, _, limit = bench.add_publication(limit=0)
    coroutines: list[Any] = []

    async def publish() -> None:
        coroutines.append(publication.publish(b"message", timeout=None))
        await coroutines[0]

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(publish)
            await until(lambda: len(coroutines) == 1)
            (coroutine,) = coroutines
            await anyio.lowlevel.checkpoint()
            assert inspect.getcoroutinestate(coroutine) == inspect.CORO_SUSPENDED
            assert coroutine.cr_await is not None
            limit.value = 1 << 20
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED
    assert coroutine.cr_await is None


@pytest.mark.anyio
async def test_a_second_await_beside_the_first_is_refused_and_does_not_disturb_it(bench: Bench) -> None:
    publication, log, limit = bench.add_publication(limit=0)
    coroutine: Any = publication.publish(b"message", timeout=None)

    async def first() -> None:
        await coroutine

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first)
            await until(lambda: coroutine.cr_await is not None)
            with pytest.raises(RuntimeError, match="being awaited already"):
                await coroutine
            limit.value = 1 << 20
    assert log.messages() == [b"message"]


@pytest.mark.anyio
async def test_an_error_of_its_wait_is_raised_where_it_is_awaited(bench: Bench) -> None:
    publication, _, _ = bench.add_publication(limit=0)
    coroutine = publication.publish(b"message", timeout=0.01)
    with pytest.raises(BackPressuredError):
        await coroutine
    with pytest.raises(RuntimeError, match="already awaited"):
        await coroutine


# trio's waits do not bear that somebody else steps them.
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_one_that_is_closed_while_it_waits_publishes_nothing(bench: Bench) -> None:
    publication, log, limit = bench.add_publication(limit=0)
    coroutine = publication.publish(b"message", timeout=None)
    coroutine.send(None)
    coroutine.close()
    limit.value = 1 << 20
    with pytest.raises(RuntimeError, match="already awaited"):
        coroutine.send(None)
    assert log.messages() == []

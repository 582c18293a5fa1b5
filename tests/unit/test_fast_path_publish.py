"""What a publish gives to be awaited: when the message goes out, and what becomes of it if it is not awaited."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from aeron_async.errors import MessageTooLongError, PublicationClosedError
from aeron_async.publication import Publication
from tests.conftest import BACKENDS
from tests.unit.rig import Bench, PublicationStream, until

pytestmark = pytest.mark.anyio

on_asyncio = pytest.mark.parametrize(
    "anyio_backend", [BACKENDS["asyncio"], BACKENDS["uvloop"]], ids=["asyncio", "uvloop"]
)

# Each publishes one message, and returns the position after it.
PUBLISHES: dict[str, Callable[..., Coroutine[Any, Any, int]]] = {
    "publish": lambda publication, data, **options: publication.publish(data, **options),
    "publish_vectored": lambda publication, data, **options: publication.publish_vectored([data], **options),
    "publish_many": lambda publication, data, **options: publication.publish_many([data], **options),
    "publish_array": lambda publication, data, **options: publication.publish_array(
        data, itemsize=len(data), **options
    ),
}


@pytest.fixture(params=PUBLISHES)
def publish(request: pytest.FixtureRequest) -> Callable[..., Coroutine[Any, Any, int]]:
    return PUBLISHES[request.param]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """The two kinds of event loop; what needs asyncio itself runs on uvloop, too."""
    return BACKENDS[request.param]


@pytest.fixture
def stream(bench: Bench) -> PublicationStream:
    return bench.add_publication()


@pytest.fixture
def publication(stream: PublicationStream) -> Publication:
    return stream.publication


async def test_nothing_is_appended_before_it_is_awaited(
    stream: PublicationStream, publication: Publication, publish: Callable[..., Coroutine[Any, Any, int]]
) -> None:
    first, second = publish(publication, b"first"), publish(publication, b"second")
    assert isinstance(first, Coroutine)
    assert publication.position == 0
    assert await second == 64
    assert await first == 128
    assert stream.log.messages() == [b"second", b"first"]


async def test_what_is_never_awaited_warns_and_appends_nothing(
    publication: Publication, publish: Callable[..., Coroutine[Any, Any, int]]
) -> None:
    def forget() -> None:
        asked = publish(publication, b"lost")
        del asked
        gc.collect()

    with pytest.warns(RuntimeWarning, match="never awaited"):
        forget()
    assert publication.position == 0


async def test_what_is_closed_unawaited_says_nothing_and_appends_nothing(
    publication: Publication, publish: Callable[..., Coroutine[Any, Any, int]]
) -> None:
    asked = publish(publication, b"lost")
    asked.close()
    asked.close()
    with pytest.raises(RuntimeError):
        await asked
    thrown = publish(publication, b"lost")
    with pytest.raises(ZeroDivisionError):
        thrown.throw(ZeroDivisionError)
    del thrown
    gc.collect()
    assert publication.position == 0


async def test_a_message_is_appended_once_however_often_it_is_awaited(
    publication: Publication, publish: Callable[..., Coroutine[Any, Any, int]]
) -> None:
    asked = publish(publication, b"once")
    assert await asked == 64
    for _ in range(2):
        with pytest.raises(RuntimeError):
            await asked
    other = publish(publication, b"other")
    with pytest.raises(RuntimeError):
        await asked
    assert await other == 128


async def test_it_is_driven_as_a_coroutine_is(
    publication: Publication, publish: Callable[..., Coroutine[Any, Any, int]]
) -> None:
    asked = publish(publication, b"driven")
    with pytest.raises(TypeError):
        asked.send("not yet begun")
    with pytest.raises(StopIteration) as stopped:
        asked.send(None)
    assert stopped.value.value == publication.position == 64


async def test_errors_come_out_where_it_is_awaited(stream: PublicationStream, publication: Publication) -> None:
    wrong: list[tuple[Any, type[Exception]]] = [
        ("text", TypeError),
        (5, TypeError),
        (memoryview(b"1234")[::2], BufferError),
        (bytes(publication.max_message_length + 1), MessageTooLongError),
    ]
    for data, error in wrong:
        asked = publication.publish(data)
        with pytest.raises(error):
            await asked
    for options in ({"reserved_value": 1 << 63}, {"reserved_value": "1"}):
        asked = publication.publish(b"x", **options)
        with pytest.raises((OverflowError, TypeError)):
            await asked
    call: Any = publication.publish
    for arguments, names in (((), {}), ((b"x", 1), {}), ((b"x",), {"other": 1}), ((b"x",), {"data": b"x"})):
        with pytest.raises(TypeError):
            call(*arguments, **names)
    assert stream.log.messages() == []


async def test_what_closes_before_it_is_awaited_is_closed(
    bench: Bench, publication: Publication, publish: Callable[..., Coroutine[Any, Any, int]]
) -> None:
    asked = publish(publication, b"late")
    bench.conductor.close_resource(publication.registration_id)
    with pytest.raises(PublicationClosedError):
        await asked


@on_asyncio
@pytest.mark.parametrize("end", ["close", "throw", "collect"])
async def test_a_wait_that_is_given_up_half_way_appends_nothing(
    stream: PublicationStream, publication: Publication, publish: Callable[..., Coroutine[Any, Any, int]], end: str
) -> None:
    stream.limit.value = 0
    asked = publish(publication, b"lost", timeout=None)
    asked.send(None)
    stream.limit.value = 1 << 20
    match end:
        case "close":
            asked.close()
        case "throw":
            with pytest.raises(ZeroDivisionError):
                asked.throw(ZeroDivisionError)
        case _:
            del asked
            gc.collect()
    await asyncio.sleep(0.005)
    assert publication.position == 0
    assert await publish(publication, b"next") == 64


@on_asyncio
async def test_tasks_publish_in_the_order_in_which_they_were_made(
    stream: PublicationStream, publication: Publication, publish: Callable[..., Coroutine[Any, Any, int]]
) -> None:
    messages = [b"%d" % number for number in range(50)]
    positions = await asyncio.gather(*[asyncio.create_task(publish(publication, message)) for message in messages])
    assert positions == [64 * (number + 1) for number in range(50)]
    assert stream.log.messages() == messages


@on_asyncio
async def test_a_task_that_is_cancelled_before_it_runs_appends_nothing(
    publication: Publication, publish: Callable[..., Coroutine[Any, Any, int]]
) -> None:
    task = asyncio.create_task(publish(publication, b"lost"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert publication.position == 0


@on_asyncio
async def test_a_time_limit_of_the_callers_appends_nothing_when_it_runs_out(
    stream: PublicationStream, publication: Publication, publish: Callable[..., Coroutine[Any, Any, int]]
) -> None:
    stream.limit.value = 0
    for seconds in (0, 0.002):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(publish(publication, b"lost", timeout=None), seconds)
    stream.limit.value = 1 << 20
    assert await asyncio.wait_for(publish(publication, b"kept"), 30) == 64
    assert stream.log.messages() == [b"kept"]


@on_asyncio
async def test_everybody_who_waits_gets_through_when_there_is_room(
    stream: PublicationStream, publication: Publication, publish: Callable[..., Coroutine[Any, Any, int]]
) -> None:
    stream.limit.value = 0
    messages = [b"%d" % number for number in range(20)]
    tasks = [asyncio.create_task(publish(publication, message, timeout=None)) for message in messages]
    await asyncio.sleep(0.005)
    tasks[7].cancel()
    for room in range(1, 20):
        stream.limit.value = 64 * room
        await until(lambda room=room: publication.position == 64 * room)  # type: ignore[misc]
    await asyncio.wait(tasks, timeout=30)
    assert tasks[7].cancelled()
    assert sorted(stream.log.messages()) == sorted(messages[:7] + messages[8:])
    positions = sorted(task.result() for task in tasks if task is not tasks[7])
    assert positions == [64 * (number + 1) for number in range(19)]

"""Background tasks and descriptor watches, on every event loop."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import structlog.testing

from aeron_async._tasks import call_soon, on_trio, spawn, watch_readable
from tests.unit.rig import until

pytestmark = pytest.mark.anyio


async def test_the_loop_is_told_apart(anyio_backend: Any) -> None:
    assert on_trio() == (anyio_backend[0] == "trio")


async def test_a_task_runs_beside_the_one_that_started_it() -> None:
    ran = anyio.Event()

    async def run() -> None:
        ran.set()

    task = spawn(run, "a task")
    assert not task.done
    await ran.wait()
    await task.wait()
    assert task.done


async def test_a_task_outlives_the_scope_and_the_task_that_started_it() -> None:
    go_on, finished = anyio.Event(), anyio.Event()

    async def run() -> None:
        await go_on.wait()
        finished.set()

    async def start() -> None:
        with anyio.CancelScope() as scope:
            spawn(run, "a task")
            scope.cancel()
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start)
    go_on.set()
    await finished.wait()


async def test_a_task_that_is_cancelled_stops_at_its_next_wait() -> None:
    started, stopped = anyio.Event(), anyio.Event()

    async def run() -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()

    task = spawn(run, "a task")
    await started.wait()
    task.cancel()
    assert not task.done
    await task.wait()
    assert stopped.is_set()
    assert task.done
    task.cancel()


async def test_a_task_that_is_cancelled_before_its_first_step_never_gets_past_its_first_wait() -> None:
    past_the_wait = False

    async def run() -> None:
        nonlocal past_the_wait
        await anyio.lowlevel.checkpoint()
        past_the_wait = True

    task = spawn(run, "a task")
    task.cancel()
    await task.wait()
    assert task.done
    assert not past_the_wait


async def test_an_error_that_escapes_is_logged_and_ends_the_task_alone() -> None:
    async def run() -> None:
        raise ZeroDivisionError("in the background")

    with structlog.testing.capture_logs() as logs:
        task = spawn(run, "a task that fails")
        await task.wait()
    assert task.done
    assert [(entry["event"], entry["task"]) for entry in logs] == [("background_task_failed", "a task that fails")]


async def test_cancelling_the_wait_leaves_the_task_alone() -> None:
    go_on = anyio.Event()
    task = spawn(go_on.wait, "a task")
    with anyio.move_on_after(0.01):
        await task.wait()
    assert not task.done
    go_on.set()
    await task.wait()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    yield ends
    for end in ends:
        os.close(end)


async def test_a_callback_is_called_each_time_that_its_descriptor_is_readable(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    received: list[bytes] = []
    unwatch = watch_readable(reader, lambda: received.append(os.read(reader, 100)))
    await anyio.sleep(0.01)
    assert received == []
    for content in (b"one", b"two", b"three"):
        os.write(writer, content)
        await until(lambda content=content: received[-1:] == [content])
    unwatch()
    await anyio.sleep(0.01)
    os.write(writer, b"unheard")
    await anyio.sleep(0.01)
    assert received == [b"one", b"two", b"three"]
    unwatch()


async def test_a_watch_may_be_ended_by_its_own_callback(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    calls = 0

    def callback() -> None:
        nonlocal calls
        calls += 1
        unwatch()

    unwatch = watch_readable(reader, callback)
    os.write(writer, b"never read")
    await until(lambda: calls > 0)
    await anyio.sleep(0.01)
    assert calls == 1


async def test_a_callback_that_is_to_be_called_soon_is_called_after_this_turn() -> None:
    called = anyio.Event()
    call_soon(called.set)
    assert not called.is_set()
    await called.wait()

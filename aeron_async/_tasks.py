"""Background tasks and descriptor watches of the running loop: asyncio, uvloop and trio.

Tasks here belong to the loop, not to a scope around user code, so that a client may be entered in one task and left in
another.
"""

from __future__ import annotations

import asyncio
import os
import sys
import types
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any, Protocol

import anyio

from aeron_async._log import log


def on_trio() -> bool:
    """Whether the running loop is trio's."""
    trio = sys.modules.get("trio")
    return trio is not None and bool(trio.lowlevel.in_trio_run())


class BackgroundTask:
    """A task of the running loop that nothing awaits by default."""

    def __init__(self, function: Callable[[], Awaitable[None]], name: str) -> None:
        self._function = function
        self._name = name
        self._finished = anyio.Event()
        self._cancel: Callable[[], Any] | None = None
        self._cancelled = False

    @property
    def done(self) -> bool:
        """Whether the task has finished, in whatever way."""
        return self._finished.is_set()

    def cancel(self) -> None:
        """Asks the task to stop at its next wait."""
        self._cancelled = True
        if self._cancel is not None and not self.done:
            self._cancel()

    async def wait(self) -> None:
        """Returns when the task has finished. Cancelling the wait leaves the task alone."""
        await self._finished.wait()

    async def _run(self) -> None:
        try:
            await self._function()
        except Exception:
            log.exception("background_task_failed", task=self._name)
        finally:
            self._finished.set()

    async def _run_in_scope(self) -> None:
        with anyio.CancelScope() as scope:
            self._cancel = scope.cancel
            if self._cancelled:
                scope.cancel()
            await self._run()


# asyncio keeps only weak references to its tasks.
_running: set[asyncio.Task[None]] = set()


def spawn(function: Callable[[], Awaitable[None]], name: str) -> BackgroundTask:
    """Starts `function` as a task of the running loop; an exception that escapes from it is logged."""
    task = BackgroundTask(function, name)
    if on_trio():
        import trio

        trio.lowlevel.spawn_system_task(task._run_in_scope, name=name)
    else:
        # Not by the loop's factory: an eager one would run the task before this function has returned.
        running = asyncio.Task(task._run(), loop=asyncio.get_running_loop(), name=name)
        _running.add(running)
        running.add_done_callback(_running.discard)
        # A task that is cancelled before its first step never reaches its own `finally`.
        running.add_done_callback(lambda _: task._finished.set())
        task._cancel = running.cancel
    return task


def watch_readable(fd: int, callback: Callable[[], None]) -> Callable[[], None]:
    """Calls `callback` in the running loop whenever `fd` is readable, until the returned function is called.

    uvloop makes the descriptor non-blocking.
    """
    if on_trio():
        return _watch_readable_on_trio(fd, callback)
    loop = asyncio.get_running_loop()
    loop.add_reader(fd, callback)
    process = os.getpid()

    def unwatch() -> None:
        # A forked child shares what the kernel watches for its parent's loop.
        if not loop.is_closed() and os.getpid() == process:
            loop.remove_reader(fd)

    return unwatch


def _watch_readable_on_trio(fd: int, callback: Callable[[], None]) -> Callable[[], None]:
    import trio

    async def watch() -> None:
        with suppress(trio.ClosedResourceError):
            while True:
                # The callback may have ended the watch and closed the descriptor.
                await trio.lowlevel.checkpoint_if_cancelled()
                await trio.lowlevel.wait_readable(fd)
                callback()

    task = spawn(watch, f"aeron_async: watch descriptor {fd}")

    def unwatch() -> None:
        if not on_trio():
            return
        task.cancel()
        # The descriptor may be closed before the task sees that.
        trio.lowlevel.notify_closing(fd)

    return unwatch


@types.coroutine
def _bare_yield() -> Generator[None, None, None]:
    yield


async def turn() -> None:
    """Lets the loop's other ready tasks run; as cheap as the loop can do that."""
    if on_trio():
        import trio

        await trio.lowlevel.checkpoint()
    else:
        await _bare_yield()


def soon(function: Callable[[], object]) -> bool:
    """Calls `function` once the running task has given up its turn; whether there is a loop that does."""
    if on_trio():
        import trio

        trio.lowlevel.current_trio_token().run_sync_soon(function)
        return True
    loop = asyncio._get_running_loop()
    if loop is not None:
        loop.call_soon(function)
    return loop is not None


class Pause(Protocol):
    """Where one task at a time waits until it is called."""

    def wait(self) -> Awaitable[None]:
        """What returns after `end`; to be awaited at once."""

    async def wait_at_most(self, seconds: float) -> None:
        """Returns after `end`, or when the time is over."""

    def end(self) -> None:
        """Ends the wait that is under way, if any."""


class _AsyncioPause:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] | None = None

    def wait(self) -> Awaitable[None]:
        self._future = self._loop.create_future()
        return self._future

    async def wait_at_most(self, seconds: float) -> None:
        timer = self._loop.call_later(seconds, self.end)
        try:
            await self.wait()
        finally:
            timer.cancel()

    def end(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)


class _TrioPause:
    def __init__(self) -> None:
        self._task: Any = None

    async def wait(self) -> None:
        import trio

        def abort(_: Any) -> Any:
            self._task = None
            return trio.lowlevel.Abort.SUCCEEDED

        self._task = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(abort)

    async def wait_at_most(self, seconds: float) -> None:
        import trio

        with trio.move_on_after(seconds):
            await self.wait()

    def end(self) -> None:
        if self._task is not None:
            import trio

            task, self._task = self._task, None
            trio.lowlevel.reschedule(task)


def make_pause() -> Pause:
    """A pause of the running loop."""
    return _TrioPause() if on_trio() else _AsyncioPause()


def call_soon(callback: Callable[[], None]) -> None:
    """Calls `callback` in the running loop, after what is ready now."""
    if on_trio():
        import trio

        trio.lowlevel.current_trio_token().run_sync_soon(callback)
    else:
        asyncio.get_running_loop().call_soon(callback)

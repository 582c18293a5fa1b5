"""Calling users' handlers: plain ones at once, async ones as tasks in order; none of them can harm the client."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from aeron_async._log import log
from aeron_async._tasks import on_trio, spawn

# The order of async `on_error` handlers, apart from all registration ids.
_ON_ERROR = -1


class HandlerRunner:
    """Calls handlers of one client.

    A plain function runs in the caller's turn. What an async one returns runs as a task, after those before it with
    the same `order`. An exception is logged and handed to `on_error`.
    """

    def __init__(self, on_error: Callable[[Exception], Any] | None) -> None:
        self._on_error = on_error
        self._queues: dict[int, deque[Awaitable[None]]] = {}
        self._loop_ends = False

    def call(self, handler: Callable[..., Any], *arguments: Any, order: int) -> None:
        try:
            result = handler(*arguments)
        except Exception as error:
            self.failed(error)
            return
        except asyncio.CancelledError as error:
            self.failed(_cancelled(error))
            return
        if inspect.isawaitable(result):
            self._run_as_task(result, order)

    def stop(self) -> None:
        """The event loop is about to end: nothing is run as a task any more."""
        self._loop_ends = True

    def failed(self, error: Exception) -> None:
        """Reports an error that has no caller to go to."""
        log.error("handler_failed", exc_info=error)
        if self._on_error is None:
            return
        try:
            result = self._on_error(error)
        except Exception:
            log.exception("on_error_failed")
            return
        if inspect.isawaitable(result):
            self._run_as_task(_logged(result), _ON_ERROR)

    def _run_as_task(self, awaitable: Awaitable[None], order: int) -> None:
        if self._loop_ends:
            _discard(awaitable)
            return
        queue = self._queues.get(order)
        if queue is not None:
            queue.append(awaitable)
            return
        self._queues[order] = deque([awaitable])
        spawn(lambda: self._drain(order), f"aeron_async: handlers of {order}")

    async def _drain(self, order: int) -> None:
        queue = self._queues[order]
        try:
            while queue:
                try:
                    await queue.popleft()
                except Exception as error:
                    self.failed(error)
                except asyncio.CancelledError as error:
                    if _is_cancelled():
                        raise
                    self.failed(_cancelled(error))
        finally:
            del self._queues[order]
            for awaitable in queue:
                _discard(awaitable)


def _cancelled(error: asyncio.CancelledError) -> Exception:
    """What a handler lets out that has waited for something that was cancelled."""
    failure = RuntimeError("the handler waited for something that was cancelled")
    failure.__cause__ = error
    return failure


def _is_cancelled() -> bool:
    """Whether the running task itself is being cancelled."""
    if on_trio():
        return True
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _logged(awaitable: Awaitable[None]) -> None:
    try:
        await awaitable
    except Exception:
        log.exception("on_error_failed")


def _discard(awaitable: Awaitable[None]) -> None:
    if inspect.iscoroutine(awaitable):
        awaitable.close()

"""Waking tasks that wait for shared memory to change.

One native thread per client watches on behalf of all its tasks, off the GIL, and makes one descriptor readable that the
event loop watches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio

from aeron_async._core import Broadcast, Cnc, check
from aeron_async._native import ffi, lib
from aeron_async._tasks import watch_readable

# How late the watcher may notice what nobody signals.
_MAX_PARK_NS = 1_000_000

_TAKE = 64

# What "for ever" comes down to, in seconds.
_LONGEST = 1e9


class Waker:
    """The watcher thread of one client, and the callbacks that wait for it."""

    def __init__(
        self,
        cnc: Cnc,
        broadcast: Broadcast,
        client_id: int,
        *,
        keepalive_interval: float,
        loop_stall_limit: float,
        on_broadcast: Callable[[], None],
    ) -> None:
        """Starts the thread. Intervals are in seconds. `on_broadcast` is called when records wait to be received."""
        watcher = ffi.new("aa_watcher_t **")
        error = ffi.new("aa_error_t *")
        code = lib.aa_watcher_start(
            cnc.handle,
            broadcast.handle,
            client_id,
            _milliseconds(keepalive_interval),
            _milliseconds(loop_stall_limit),
            cnc.client_liveness_timeout_ns // 1_000_000,
            _MAX_PARK_NS,
            watcher,
            error,
        )
        check(code, error)
        self._watcher = watcher[0]
        self._on_broadcast = on_broadcast
        self._waiting: dict[int, Callable[[], None]] = {}
        self._tickets = ffi.new("int32_t[]", _TAKE)
        self._unwatch_descriptor = watch_readable(lib.aa_watcher_fd(self._watcher), self._take)

    def forget(self) -> None:
        """In a forked child there is no thread, and its lock may have been caught half-way: nothing is called again."""
        self._watcher = None
        self._waiting.clear()

    def beat(self) -> None:
        """The event loop is alive."""
        if self._watcher is not None:
            lib.aa_watcher_beat(self._watcher)

    def nudge(self) -> None:
        """A command was sent: look for its response at once."""
        if self._watcher is not None:
            lib.aa_watcher_nudge(self._watcher)

    def watch_images(self, images: Any, count: int, ready: Callable[[], None]) -> Callable[[], None]:
        """Calls `ready` once, soon after one of the images has something to read; returns what ends the watch."""
        if self._watcher is None:
            ready()
            return _nothing
        return self._register(lib.aa_watcher_watch_images(self._watcher, images, count), ready)

    async def wait_publication(self, publication: Any, kind: int) -> None:
        """Returns soon after the publication is ready in the way of `kind`, or when the client is closed."""
        if self._watcher is None:
            return
        event = anyio.Event()
        unwatch = self._register(lib.aa_watcher_watch_publication(self._watcher, publication, kind), event.set)
        try:
            await event.wait()
        finally:
            unwatch()

    def close(self) -> None:
        """Stops the thread and calls everybody who waits; again it does nothing."""
        if self._watcher is None:
            return
        watcher, self._watcher = self._watcher, None
        self._unwatch_descriptor()
        lib.aa_watcher_stop(watcher)
        waiting, self._waiting = self._waiting, {}
        for ready in waiting.values():
            ready()

    def _register(self, ticket: int, ready: Callable[[], None]) -> Callable[[], None]:
        if ticket < 0:
            raise MemoryError("no memory to watch what the task waits for")
        self._waiting[ticket] = ready

        def unwatch() -> None:
            if self._waiting.pop(ticket, None) is not None and self._watcher is not None:
                lib.aa_watcher_unwatch(self._watcher, ticket)

        return unwatch

    def _take(self) -> None:
        if self._watcher is None:
            return
        for ticket in ffi.unpack(self._tickets, lib.aa_watcher_take(self._watcher, self._tickets, _TAKE)):
            if ticket == lib.AA_WATCH_BROADCAST:
                self._on_broadcast()
            else:
                ready = self._waiting.pop(ticket, None)
                if ready is not None:
                    ready()


def _milliseconds(seconds: float) -> int:
    return int(min(seconds, _LONGEST) * 1000)


def _nothing() -> None:
    pass

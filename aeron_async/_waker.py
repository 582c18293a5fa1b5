"""Waking tasks that wait for shared memory to change.

One native thread per client watches on behalf of all its tasks, off the GIL, and makes one descriptor readable that the
event loop watches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from aeron_async._core import Broadcast, Cnc, check
from aeron_async._native import ffi, lib
from aeron_async._tasks import Pause, make_pause, turn, watch_readable
from aeron_async.idle import IdleStrategy

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
        idle: IdleStrategy,
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
        self._idle = idle
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

    def place(self, idle: IdleStrategy | None) -> Place:
        """Where one task at a time waits by a strategy, by default by the client's."""
        return Place(self, idle or self._idle)

    async def wait_publication(self, publication: Any, kind: int) -> None:
        """Returns soon after the publication is ready in the way of `kind`, or when the client is closed."""
        if self._watcher is None:
            return
        await self.place(None).wait(lambda ready: self._watch_publication(publication, kind, ready))

    def _watch_publication(self, publication: Any, kind: int, ready: Callable[[], None]) -> Callable[[], None]:
        return self._register(lib.aa_watcher_watch_publication(self._watcher, publication, kind), ready)

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


class Place:
    """Where one task at a time waits."""

    def __init__(self, waker: Waker, idle: IdleStrategy) -> None:
        self._waker = waker
        self._idle = idle
        self._pause: Pause = make_pause()
        self._is_over = False

    async def wait_images(self, images: Any, count: int) -> None:
        """Returns soon after one of the images has something to read, or after `wake`."""
        if count:
            await self.wait(lambda ready: self._waker.watch_images(images, count, ready))
        else:
            self._is_over = False
            await self._pause.wait()

    async def wait(self, watch: Callable[[Callable[[], None]], Callable[[], None]]) -> None:
        """Returns soon after what `watch` watches is ready, or after `wake`."""
        self._is_over = False
        unwatch = watch(self.wake)
        try:
            await self._idle._wait(self)
        finally:
            unwatch()

    def wake(self) -> None:
        """The wait is over."""
        self._is_over = True
        self._pause.end()

    # Waiting

    def look(self, seconds: float = 0.0) -> bool:
        return self._is_over

    async def turn(self) -> None:
        await turn()

    async def sleep(self, seconds: float) -> None:
        await self._pause.wait_at_most(math.ceil(seconds * 1000) / 1000)

    async def park(self, spin: float) -> None:
        if not self._is_over:
            await self._pause.wait()


def _milliseconds(seconds: float) -> int:
    return int(min(seconds, _LONGEST) * 1000)


def _nothing() -> None:
    pass

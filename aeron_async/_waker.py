"""Waking tasks that wait for shared memory to change.

One native thread per client watches on behalf of all its tasks, off the GIL, and makes one descriptor readable that the
event loop watches; publishers that can signal directly write to another.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any

from aeron_async._core import Broadcast, Cnc, check
from aeron_async._native import ffi, lib
from aeron_async._tasks import Pause, make_pause, turn, watch_readable
from aeron_async.idle import IdleStrategy, Parking

# How late the thread may notice what nobody signals.
_MAX_PARK_NS = 1_000_000

_TAKE = 64
_NOTHING = -1

# Looked up once: they are part of every wake-up.
_wait = lib.aa_watcher_wait
_take = lib.aa_watcher_take
_READY = lib.AA_WAIT_READY
_READY_TURN = lib.AA_WAIT_READY_TURN
_OTHERS = lib.AA_WAIT_OTHERS
_PARKED = lib.AA_WAIT_PARKED

# What "for ever" comes down to, in seconds.
_LONGEST = 1e9


class Waker:
    """The watcher thread of one client, and the places where its tasks wait."""

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
        wake_counter: Callable[[int], Any | None] = lambda stream_id: None,
    ) -> None:
        """Starts the thread. Intervals are in seconds.

        `on_broadcast` is called when records wait to be received; `wake_counter` gives the `aa_wake_counter_t` of a
        stream, where there is one by now.
        """
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
        self.watcher: Any | None = ffi.gc(watcher[0], lib.aa_watcher_release)
        """The `aa_watcher_t`; None once nobody waits any more."""
        self.wake_counter = wake_counter
        self._idle = idle
        self._on_broadcast = on_broadcast
        self.waiting: dict[int, Place] = {}
        """Where tasks wait now, by the id of what they wait for."""
        self._ids = ffi.new("int32_t[]", _TAKE)
        self._unwatch: list[Callable[[], None]] = []
        self.watch_descriptor(lib.aa_watcher_fd(self.watcher))

    def watch_descriptor(self, fd: int) -> None:
        """From now on tasks are woken through this descriptor, too."""
        self._unwatch.append(watch_readable(fd, partial(self.take, fd)))

    def forget(self) -> None:
        """In a forked child there is no thread, and its lock may have been caught half-way: nothing is called again."""
        self.watcher = None
        self.waiting.clear()

    def beat(self) -> None:
        """The event loop is alive."""
        if self.watcher is not None:
            lib.aa_watcher_beat(self.watcher)

    def nudge(self) -> None:
        """A command was sent: look for its response at once."""
        if self.watcher is not None:
            lib.aa_watcher_nudge(self.watcher)

    def place(self, idle: IdleStrategy | None, stream_id: int | None) -> ImagesPlace:
        """Where a reader waits by a strategy, by default by the client's.

        `stream_id` is that of a stream whose publishers are on the same driver, else None.
        """
        return ImagesPlace(self, idle or self._idle, stream_id)

    async def wait_publication(self, publication: Any, kind: int) -> None:
        """Returns soon after the publication is ready in the way of `kind`, or when the client is closed."""
        if self.watcher is not None:
            place = Place(self, self._idle)
            place.watch(lib.aa_watch_publication(publication, kind))
            try:
                await place.wait()
            finally:
                place.unwatch()

    def wake_stream(self, stream_id: int) -> None:
        """Whoever waits for a stream looks at it, and at its wake counter, again."""
        for place in self.waiting.values():
            if isinstance(place, ImagesPlace) and place.stream_id == stream_id:
                place.end()

    def take(self, readable: int = _NOTHING) -> None:
        """Wakes the tasks whose waits are over, having emptied the descriptor that said so."""
        if self.watcher is None:
            return
        ids = self._ids
        for index in range(_take(self.watcher, readable, ids, _TAKE)):
            watch_id = ids[index]
            if watch_id == lib.AA_TAKEN_BROADCAST:
                self._on_broadcast()
            elif watch_id in self.waiting:
                self.waiting[watch_id].resume()

    def close(self) -> None:
        """Stops the thread and wakes everybody who waits; again it does nothing."""
        if self.watcher is None:
            return
        watcher, self.watcher = self.watcher, None
        for unwatch in self._unwatch:
            unwatch()
        lib.aa_watcher_stop(watcher)
        for place in self.waiting.values():
            place.end()


class Place:
    """Where one task at a time waits for one watch."""

    _watch: Any | None = None

    def __init__(self, waker: Waker, idle: IdleStrategy) -> None:
        self._waker = waker
        self._idle = idle
        self._pause: Pause = make_pause()
        self.resume = self._pause.end
        """Ends a wait that is parked: what is watched is ready."""
        self._watch_id = 0
        self._is_over = False
        self._is_turn_due = False

    def watch(self, watch: Any) -> None:
        """From now on waits are for this (`aa_watch_t`)."""
        if watch == ffi.NULL:
            raise MemoryError("no memory to watch what the task waits for")
        self._watch = ffi.gc(watch, lib.aa_watch_release)
        self._watch_id = lib.aa_watcher_add(self._waker.watcher, self._watch)

    def unwatch(self) -> None:
        """Holds what was watched no longer."""
        if self._watch is not None:
            watch, self._watch = self._watch, None
            if self._waker.watcher is not None:
                lib.aa_watcher_remove(self._waker.watcher, watch)

    async def wait(self) -> None:
        """Returns soon after what is watched is ready, or after `end`."""
        self._is_over = False
        await self._until_over(self._idle._wait(self))

    def end(self) -> None:
        """The wait is over before its time, if there is one."""
        self._leave()
        self._is_over = True
        self._pause.end()

    def _leave(self) -> None:
        if self._watch is not None and self._waker.watcher is not None:
            lib.aa_watcher_leave(self._waker.watcher, self._watch)

    async def _until_over(self, waiting: Awaitable[None]) -> None:
        waiting_places, watch_id = self._waker.waiting, self._watch_id
        waiting_places[watch_id] = self
        try:
            await waiting
            if self._is_turn_due:
                self._is_turn_due = False
                await turn()
        except BaseException:
            self._leave()
            raise
        finally:
            waiting_places.pop(watch_id, None)

    async def _go_on(self, result: int, spin_ns: int) -> None:
        """Goes on after a first `aa_watcher_wait` that had this result."""
        while result != _PARKED:
            if result == _OTHERS:
                self._waker.take()
            await turn()
            if result == _READY_TURN or self._is_over:
                return
            result = _wait(self._waker.watcher, self._watch, spin_ns)
            if result == _READY:
                return
        await self._pause.wait()

    # Waiting

    def look(self, seconds: float = 0.0) -> bool:
        if self._is_over:
            return True
        result = lib.aa_watcher_look(self._waker.watcher, self._watch, _nanoseconds(seconds))
        self._is_turn_due = result == _READY_TURN
        return bool(result != lib.AA_WAIT_AGAIN)

    async def turn(self) -> None:
        lib.aa_watcher_turn(self._waker.watcher)
        await turn()

    async def sleep(self, seconds: float) -> None:
        lib.aa_watcher_turn(self._waker.watcher)
        # Loops count in milliseconds, and uvloop rounds to the nearest: less than half of one would be no sleep.
        await self._pause.wait_at_most(math.ceil(seconds * 1000) / 1000)

    async def park(self) -> None:
        result = _wait(self._waker.watcher, self._watch, 0)
        if result != _READY:
            await self._go_on(result, 0)


class _Ended:
    """A wait that was over when it began: what awaits it does not give up its turn."""

    def __await__(self) -> Generator[Any, Any, None]:
        yield from ()


_ENDED = _Ended()


class ImagesPlace(Place):
    """Where the reader of a subscription waits."""

    def __init__(self, waker: Waker, idle: IdleStrategy, stream_id: int | None) -> None:
        super().__init__(waker, idle)
        self.stream_id = stream_id
        self._spin_ns = _nanoseconds(idle.spin) if isinstance(idle, Parking) else None
        self._images: Any | None = None
        self._counter: Any | None = None

    def __del__(self) -> None:
        self.unwatch()

    def wait_images(self, images: Any, count: int) -> Awaitable[None]:
        """What returns soon after one of the images has something to read, or after `wake`; to be awaited at once."""
        watcher = self._waker.watcher
        if watcher is None:
            return _ENDED
        if count == 0:
            # The client tells when one comes.
            return self._pause.wait()
        if images is not self._images or (self._counter is None and self.stream_id is not None):
            self._watch_images(images, count)
        spin_ns = self._spin_ns
        if spin_ns is None:
            return self.wait()
        # The usual strategy without a detour: what comes within a slice of the spin costs this call.
        result = _wait(watcher, self._watch, spin_ns)
        if result == _READY:
            return _ENDED
        self._is_over = False
        return self._until_over(self._pause.wait() if result == _PARKED else self._go_on(result, spin_ns))

    def wake(self) -> None:
        """The images have changed: the wait is over, if there is one."""
        self.unwatch()
        self._images = None
        self.end()

    def _watch_images(self, images: Any, count: int) -> None:
        counter = None if self.stream_id is None else self._waker.wake_counter(self.stream_id)
        if images is self._images and counter is self._counter:
            return
        self.unwatch()
        self._images = images
        self._counter = counter
        self.watch(lib.aa_watch_images(images, count, counter or ffi.NULL))


def _nanoseconds(seconds: float) -> int:
    return int(min(seconds, _LONGEST) * 1e9)


def _milliseconds(seconds: float) -> int:
    return int(min(seconds, _LONGEST) * 1000)

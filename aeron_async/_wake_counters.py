"""The wake counters of one client: by them its readers that park ask publishers to wake them."""

from __future__ import annotations

import os
from struct import Struct
from typing import TYPE_CHECKING, Any, Protocol

from aeron_async._core import Cnc
from aeron_async._log import log
from aeron_async._native import ffi, lib
from aeron_async._wake_fifos import WakeFifos
from aeron_async.errors import AeronError, ClientClosedError

if TYPE_CHECKING:
    from aeron_async.conductor import Registration

WAKE_COUNTER_TYPE_ID = 20861
"""A counter type of this library's own."""

WAKE_COUNTER_KEY = Struct("<i")
"""The key of such a counter: the stream id."""


class Readers(Protocol):
    """Those who are to be woken."""

    def watch_descriptor(self, fd: int) -> None:
        """From now on they are woken through this descriptor, too."""

    def wake_stream(self, stream_id: int) -> None:
        """Whoever waits for a stream looks at it, and at its wake counter, again."""


class CounterCommands(Protocol):
    """What is asked of the conductor."""

    client_id: int

    def add_counter(self, type_id: int, key: bytes, label: str) -> Registration:
        """Resolves to a `Counter`."""

    def abandon(self, registration: Registration) -> None:
        """What the command has made, or will have made, is removed again."""


class WakeCounters:
    """One counter a stream that readers of this client have parked on, and the FIFO that publishers write to.

    Where a FIFO cannot be had, there are none: the watcher wakes everybody.
    """

    def __init__(self, cnc: Cnc, fifos: WakeFifos, commands: CounterCommands, readers: Readers) -> None:
        self._cnc = cnc
        self._fifos = fifos
        self._commands = commands
        self._readers = readers
        self._fifo: int | None = None
        self._is_impossible = False
        self._registrations: dict[int, Registration] = {}
        self._handles: dict[int, Any] = {}

    def of_stream(self, stream_id: int) -> Any | None:
        """The `aa_wake_counter_t` of a stream; None as long as there is none, which is asked for the first time."""
        handle = self._handles.get(stream_id)
        if handle is None and stream_id not in self._registrations and self._has_fifo():
            self._ask(stream_id)
        return handle

    def remove(self, stream_id: int) -> None:
        """Nobody of this client reads the stream any more."""
        self._handles.pop(stream_id, None)
        registration = self._registrations.pop(stream_id, None)
        if registration is not None:
            self._commands.abandon(registration)

    def close(self) -> None:
        """Removes the FIFO. The counters end with the client."""
        self._handles.clear()
        self._is_impossible = True
        if self._fifo is not None:
            fifo, self._fifo = self._fifo, None
            self._fifos.remove(self._commands.client_id)
            os.close(fifo)

    def _has_fifo(self) -> bool:
        if self._fifo is None and not self._is_impossible:
            try:
                self._fifo = self._fifos.create(self._commands.client_id)
            except OSError as error:
                self._is_impossible = True
                log.warning("direct_wake_ups_impossible", error=str(error))
            else:
                self._readers.watch_descriptor(self._fifo)
        return self._fifo is not None

    def _ask(self, stream_id: int) -> None:
        label = f"aeron_async wake: {stream_id}"
        registration = self._commands.add_counter(WAKE_COUNTER_TYPE_ID, WAKE_COUNTER_KEY.pack(stream_id), label)
        self._registrations[stream_id] = registration
        registration.on_done = lambda: self._answered(stream_id, registration)

    def _answered(self, stream_id: int, registration: Registration) -> None:
        try:
            counter = registration.result()
        except ClientClosedError:
            return
        except AeronError as error:
            log.warning("no_wake_counter", stream_id=stream_id, error=str(error))
            return
        handle = lib.aa_wake_counter_create(self._cnc.handle, counter.id, counter.registration_id)
        if handle != ffi.NULL:
            self._handles[stream_id] = ffi.gc(handle, lib.aa_wake_counter_release)
            self._readers.wake_stream(stream_id)

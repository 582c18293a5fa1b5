"""What one client is made of, and what becomes of it when its process forks or ends."""

from __future__ import annotations

import atexit
import math
import os
import time
import weakref
from collections.abc import Callable
from numbers import Real
from typing import Any

import anyio

from aeron_async._control import CLIENT_TIMEOUT, Timeout
from aeron_async._core import Broadcast, Cnc
from aeron_async._handlers import HandlerRunner
from aeron_async._local_addresses import local_socket_addresses
from aeron_async._log import log
from aeron_async._tasks import spawn
from aeron_async._waker import Place, Waker
from aeron_async.channel import ChannelUri, channel_text
from aeron_async.conductor import (
    ClientConductor,
    ClientHandlers,
    ConductorSettings,
    ConductorTask,
    Handler,
    Registration,
)
from aeron_async.counters import CountersReader
from aeron_async.driver import DriverSource
from aeron_async.errors import (
    AddTimeoutError,
    AeronError,
    ClosedError,
    CloseReason,
    ForkedClientError,
    RegistrationError,
)
from aeron_async.idle import IdleStrategy
from aeron_async.protocol.error_codes import ErrorCode

# How soon a command is sent again that the driver could not carry out yet, in seconds.
_RETRY_INTERVAL = 0.01


class ClientSession:
    """What one client is made of: its conductor, the task that drives it, and its watcher thread."""

    def __init__(
        self,
        cnc: Cnc,
        settings: ConductorSettings,
        handlers: ClientHandlers,
        *,
        idle: IdleStrategy,
        on_error: Callable[[Exception], Any] | None,
        on_close: Callable[[CloseReason], Any] | None,
    ) -> None:
        self.cnc = cnc
        self.counters = CountersReader(cnc)
        self.settings = settings
        self.closed_event = anyio.Event()
        self.is_forked = False
        self.source: DriverSource | None = None
        self._on_close = on_close
        self._handlers = HandlerRunner(on_error)
        broadcast = Broadcast(cnc)
        client_id = cnc.next_correlation_id()
        self.conductor = ClientConductor(
            cnc, broadcast, client_id, settings, self, self, now=time.monotonic(), handlers=handlers
        )
        self._waker = Waker(
            cnc,
            broadcast,
            client_id,
            keepalive_interval=settings.keepalive_interval,
            loop_stall_limit=settings.loop_stall_limit,
            idle=idle,
            on_broadcast=lambda: self._duty.wake(),
        )
        self._duty = ConductorTask(self.conductor, self._waker.beat, self.failed)
        self._task = spawn(self._run, f"aeron_async: conductor of client {client_id}")
        _sessions.add(self)

    async def complete(self, registration: Registration, timeout: Timeout) -> Any:
        """The result of a command; cancelled or late, it is taken back."""
        event = anyio.Event()
        registration.on_done = event.set
        heartbeat = self.cnc.driver_heartbeat()
        try:
            with anyio.move_on_after(self.seconds(timeout)):
                if not registration.is_done:
                    await event.wait()
            if timeout is CLIENT_TIMEOUT and not registration.is_done and self.cnc.driver_heartbeat() == heartbeat:
                # A driver that has given no sign of life since is about to be found dead: that is the better answer.
                with anyio.move_on_after(self.settings.driver_timeout):
                    await event.wait()
        except BaseException:
            self.conductor.abandon(registration)
            raise
        if not registration.is_done:
            self.conductor.abandon(registration)
            raise AddTimeoutError(f"the driver did not answer within {self.seconds(timeout)} s")
        return registration.result()

    async def add(self, ask: Callable[[], Registration], timeout: Timeout, channel: str, stream_id: int) -> Any:
        """What a command makes; asked again while something of the same name is still on its way out of the driver."""
        seconds = self.seconds(timeout)
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        while True:
            try:
                return await self.complete(ask(), timeout)
            except RegistrationError as error:
                if error.code != ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE or time.monotonic() >= deadline:
                    error.add_note(f"channel={channel!r} stream_id={stream_id}")
                    raise
            await anyio.sleep(_RETRY_INTERVAL)

    async def wait_ended(self) -> None:
        await self._task.wait()

    async def _run(self) -> None:
        try:
            await self._duty.run()
        finally:
            if not self.conductor.is_closed:
                self.end("its event loop has ended")
                if self.source is not None:
                    self.source.let_go()

    def end(self, detail: str) -> None:
        """Closes the client where there is no loop any more that could do more for it."""
        if not self.is_forked and not self.conductor.is_closed:
            self._handlers.stop()
            self.conductor.close(CloseReason.USER, detail)

    def enter_forked_child(self) -> None:
        self.is_forked = True
        self._waker.forget()
        self.conductor.close_handles()

    # ConductorEvents

    def call(self, handler: Handler, *arguments: Any, order: int) -> None:
        self._handlers.call(handler, *arguments, order=order)

    def failed(self, error: Exception) -> None:
        self._handlers.failed(error)

    def command_sent(self) -> None:
        self._duty.wake()
        self._waker.nudge()

    def closed(self, reason: CloseReason) -> None:
        log.info("client_closed", client_id=self.conductor.client_id, reason=reason.name)
        self._waker.close()
        self._duty.wake()
        self.closed_event.set()
        if self._on_close is not None:
            self.call(self._on_close, reason, order=0)

    # Control

    def seconds(self, timeout: Timeout) -> float | None:
        if timeout is CLIENT_TIMEOUT:
            return self.settings.driver_timeout
        if timeout is None:
            return None
        if not isinstance(timeout, Real):
            raise TypeError(f"timeout must be seconds or None, not {type(timeout).__name__}")
        return float(timeout)

    def check_process(self) -> None:
        if self.is_forked:
            raise ForkedClientError(
                "this client belongs to the parent process; a forked child needs a client of its own"
            )

    def closed_error(self, resource: type[ClosedError]) -> AeronError:
        self.check_process()
        if self.conductor.close_reason in (None, CloseReason.USER):
            return resource(f"the {resource.__name__.removesuffix('ClosedError').lower()} was closed")
        return self.conductor.closed_error()

    async def close_resource(self, registration_id: int) -> None:
        self.check_process()
        registration = self.conductor.close_resource(registration_id)
        if registration is not None:
            try:
                await self.complete(registration, self.settings.driver_timeout)
            except (AddTimeoutError, RegistrationError) as error:
                # It is closed all the same.
                log.warning("close_unanswered", registration_id=registration_id, error=str(error))

    async def reject_image(self, correlation_id: int, position: int, reason: str) -> None:
        self.check_process()
        await self.complete(self.conductor.reject_image(correlation_id, position, reason), CLIENT_TIMEOUT)

    def local_socket_addresses(self, channel_status_id: int) -> list[str]:
        return local_socket_addresses(self.counters, channel_status_id)

    async def add_destination(self, owner_id: int, uri: str | ChannelUri, timeout: Timeout) -> int:
        destination_id: int = await self.complete(self.conductor.add_destination(owner_id, channel_text(uri)), timeout)
        return destination_id

    async def remove_destination(self, owner_id: int, destination: str | ChannelUri | int, timeout: Timeout) -> None:
        text_or_id = destination if isinstance(destination, int) else channel_text(destination)
        await self.complete(self.conductor.remove_destination(owner_id, text_or_id), timeout)

    async def wait_publication(self, publication: Any, kind: int) -> None:
        await self._waker.wait_publication(publication, kind)

    def waiting_place(self, idle: IdleStrategy | None) -> Place:
        return self._waker.place(idle)


_sessions: weakref.WeakSet[ClientSession] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for session in list(_sessions):
        session.enter_forked_child()


def _at_exit() -> None:
    for session in list(_sessions):
        session.end("its process has ended")


os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)

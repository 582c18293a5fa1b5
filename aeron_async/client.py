"""Connecting to a driver, and the client that comes of it."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from functools import partial
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import anyio
import anyio.lowlevel

from aeron_async._closing import ClosedOnExit
from aeron_async._control import CLIENT_TIMEOUT, Timeout
from aeron_async._core import Cnc
from aeron_async._draining import drain
from aeron_async._log import log
from aeron_async._session import ClientSession
from aeron_async._tasks import BackgroundTask, spawn
from aeron_async.channel import ChannelUri, channel_text
from aeron_async.conductor import (
    ClientHandlers,
    ConductorSettings,
    ImageHandlers,
)
from aeron_async.counters import Counter, CounterInfo, CountersReader
from aeron_async.driver import DriverConfig, DriverSource, MediaDriver, choose_driver
from aeron_async.errors import (
    CloseReason,
    DriverNotRunningError,
    DriverStartError,
)
from aeron_async.idle import IdleStrategy, Parking, check_idle
from aeron_async.protocol.cnc import COUNTER_MAX_KEY_LENGTH, COUNTER_MAX_LABEL_LENGTH
from aeron_async.publication import ExclusivePublication, Publication
from aeron_async.publication_error import PublicationError
from aeron_async.subscription import Image, Subscription

ImageHandler = Callable[[Image], Awaitable[None] | None]
CounterHandler = Callable[[CounterInfo], Awaitable[None] | None]
PublicationErrorHandler = Callable[[PublicationError], Awaitable[None] | None]

# How often a directory is looked at for a driver that is not there yet, in seconds.
_CNC_POLL = 0.02

# Back-off between the clients of one iteration, in seconds. A client that lived longer than the longest starts it anew.
_FIRST_BACKOFF = 0.05
_LONGEST_BACKOFF = 5.0


class Client(ClosedOnExit):
    """A connected client. Obtained from `connect`. Source: Aeron's `Aeron`."""

    def __init__(
        self,
        session: ClientSession,
        aeron_dir: Path,
        driver: MediaDriver | None,
        release: Callable[[], Awaitable[None]],
    ) -> None:
        self._session = session
        self._release = release
        self._closing: BackgroundTask | None = None
        self.aeron_dir = aeron_dir
        """The driver's directory."""
        self.driver = driver
        """The driver where this client's `connect` owns it, else None."""

    @property
    def counters(self) -> CountersReader:
        """All counters of the driver. Raises `ForkedClientError`."""
        self._session.check_process()
        return self._session.counters

    @property
    def client_id(self) -> int:
        """The driver's id of this client."""
        return self._session.conductor.client_id

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, by whomever."""
        return self._session.conductor.is_closed

    @property
    def close_reason(self) -> CloseReason | None:
        """Why the client is closed; None while it is open."""
        return self._session.conductor.close_reason

    async def add_publication(
        self, channel: str | ChannelUri, stream_id: int, *, timeout: Timeout = CLIENT_TIMEOUT
    ) -> Publication:
        """Adds a publication that others, in this process or not, may share.

        A `channel` given as a text goes to the driver as it is; `ChannelUri` checks it first.

        `timeout` is in seconds. Cancelled or late, what may have been created is removed again. Where something of the
        same address is still on its way out of the driver, the command is sent again until the timeout.

        Raises `RegistrationError` with the driver's code and text, `AddTimeoutError`, `ClientClosedError`,
        `InsufficientStorageError`. Source: `Aeron.addPublication`.
        """
        self._session.check_process()
        text = channel_text(channel)
        _int32("stream_id", stream_id)
        ask = partial(self._session.conductor.add_publication, text, stream_id)
        publication: Publication = await self._session.add(ask, timeout, text, stream_id)
        return publication

    async def add_exclusive_publication(
        self, channel: str | ChannelUri, stream_id: int, *, timeout: Timeout = CLIENT_TIMEOUT
    ) -> ExclusivePublication:
        """Adds a publication with a session of its own. Otherwise as `add_publication`.

        Source: `Aeron.addExclusivePublication`.
        """
        self._session.check_process()
        text = channel_text(channel)
        _int32("stream_id", stream_id)
        add = self._session.conductor.add_exclusive_publication
        publication: ExclusivePublication = await self._session.add(
            lambda: add(text, stream_id), timeout, text, stream_id
        )
        return publication

    async def add_subscription(
        self,
        channel: str | ChannelUri,
        stream_id: int,
        *,
        on_available_image: ImageHandler | None = None,
        on_unavailable_image: ImageHandler | None = None,
        idle: IdleStrategy | None = None,
        timeout: Timeout = CLIENT_TIMEOUT,
    ) -> Subscription:
        """Adds a subscription.

        `idle` is how a task waits that reads it; None for the client's own.

        The handlers take the `Image`. A plain function is called in the conductor's turn; an async one runs as a task,
        in order per subscription, and may itself add resources. One that raises is logged and passed to `on_error`.

        Channel, timeout and errors as `add_publication`. Source: `Aeron.addSubscription`.
        """
        self._session.check_process()
        text = channel_text(channel)
        _int32("stream_id", stream_id)
        check_idle(idle)
        handlers = ImageHandlers(on_available_image, on_unavailable_image)
        add = self._session.conductor.add_subscription
        subscription: Subscription = await self._session.add(
            lambda: add(text, stream_id, handlers, idle), timeout, text, stream_id
        )
        return subscription

    async def add_counter(
        self, type_id: int, key: bytes = b"", label: str = "", *, timeout: Timeout = CLIENT_TIMEOUT
    ) -> Counter:
        """Adds a counter that everybody on this driver can read.

        `key` takes up to 112 bytes, `label` up to 380. Timeout and errors as `add_publication`; `ValueError` for what
        is longer. Source: `Aeron.addCounter`.
        """
        self._session.check_process()
        _check_length("key", len(key), COUNTER_MAX_KEY_LENGTH)
        _check_length("label", len(label.encode()), COUNTER_MAX_LABEL_LENGTH)
        registration = self._session.conductor.add_counter(_int32("type_id", type_id), key, label)
        counter: Counter = await self._session.complete(registration, timeout)
        return counter

    async def add_static_counter(
        self, type_id: int, key: bytes, label: str, registration_id: int, *, timeout: Timeout = CLIENT_TIMEOUT
    ) -> Counter:
        """Adds a counter that outlives its clients, or finds the one with this type and registration id.

        It cannot be taken back: `aclose` only lets go of it, and cancellation waits for the driver's answer, for
        `timeout` seconds at most. Where it is found, its key and label stay as they are. Errors as `add_counter`, and
        `RegistrationError` where a counter that is not static has these ids. Source: `Aeron.addStaticCounter`.
        """
        self._session.check_process()
        _check_length("key", len(key), COUNTER_MAX_KEY_LENGTH)
        _check_length("label", len(label.encode()), COUNTER_MAX_LABEL_LENGTH)
        registration = self._session.conductor.add_static_counter(
            _int32("type_id", type_id), key, label, _int64("registration_id", registration_id)
        )
        with anyio.CancelScope(shield=True):
            counter: Counter = await self._session.complete(registration, timeout)
        await anyio.lowlevel.checkpoint_if_cancelled()
        return counter

    async def next_session_id(self, stream_id: int, *, timeout: Timeout = CLIENT_TIMEOUT) -> int:
        """A session id that no publication of the stream has, for a channel's `session-id`.

        Raises `AddTimeoutError`, `ClientClosedError`. Source: `Aeron.nextSessionId`.
        """
        self._session.check_process()
        registration = self._session.conductor.next_session_id(_int32("stream_id", stream_id))
        session_id: int = await self._session.complete(registration, timeout)
        return session_id

    async def terminate_driver(self, token: bytes = b"") -> None:
        """Asks the driver to stop. Its own termination validator decides, by `token`; most drivers refuse.

        It does not answer: where it stops, this client is closed with `CloseReason.DRIVER_SHUTDOWN`. Raises
        `ClientClosedError`, `ValueError` for a token that is too long.

        Source: `CommonContext.requestDriverTermination`.
        """
        self._session.check_process()
        self._session.conductor.terminate_driver(token)
        await anyio.lowlevel.checkpoint()

    async def wait_closed(self) -> CloseReason:
        """Returns the reason once the client is closed."""
        self._session.check_process()
        await self._session.closed_event.wait()
        assert self.close_reason is not None
        return self.close_reason

    async def aclose(self) -> None:
        """Closes the client and all its resources, and stops a driver that only it used; again it does nothing.

        Such a driver goes on until what was published over UDP has arrived, for a few seconds at most. Cancelling does
        not keep it from being done. Of several calls at once each returns when it is.
        """
        self._session.check_process()
        if self._closing is None:
            self._session.conductor.close(CloseReason.USER, "it was closed by its user")
            # A task of its own, which goes on when whoever waits for it is cancelled.
            self._closing = spawn(self._finish_closing, "aeron_async: close client")
        with anyio.CancelScope(shield=True):
            await self._closing.wait()

    async def _finish_closing(self) -> None:
        await self._session.wait_ended()
        source = self._session.source
        if source is not None and source.ends_with_users and self.close_reason is CloseReason.USER:
            await drain(self._session.counters, self._session.conductor.departed_publications)
        await self._release()

    def __repr__(self) -> str:
        state = "open" if self.close_reason is None else self.close_reason.name
        return f"<Client {self.client_id} on {str(self.aeron_dir)!r}, {state}>"


class _Hold:
    """Counts who still needs a driver source, and lets go of it after the last of them."""

    def __init__(self, source: DriverSource) -> None:
        self.source = source
        self._count = 0

    def take(self) -> None:
        self._count += 1

    async def release(self) -> None:
        self._count -= 1
        if self._count == 0:
            with anyio.CancelScope(shield=True):
                await self.source.release()

    def drop(self) -> None:
        """As `release`, for where nothing can be awaited."""
        self._count -= 1
        if self._count == 0:
            self.source.let_go()


class Connect:
    """What `connect` returns: to be awaited, entered with `async with`, or iterated with `async for`."""

    def __init__(
        self,
        source: DriverSource,
        settings: ConductorSettings,
        handlers: ClientHandlers,
        idle: IdleStrategy,
        on_error: Callable[[Exception], Any] | None,
        on_close: Callable[[CloseReason], Any] | None,
    ) -> None:
        self._hold = _Hold(source)
        self._settings = settings
        self._handlers = handlers
        self._idle = idle
        self._on_error = on_error
        self._on_close = on_close
        self._entered: list[Client] = []

    def __await__(self) -> Generator[Any, None, Client]:
        return self._open().__await__()

    async def __aenter__(self) -> Client:
        client = await self._open()
        self._entered.append(client)
        return client

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._entered.pop().__aexit__(exc_type, exc, traceback)

    def __aiter__(self) -> AsyncIterator[Client]:
        return _Clients(self)

    async def _open(self) -> Client:
        source = self._hold.source
        self._hold.take()
        try:
            aeron_dir = await source.acquire()
            cnc = await _wait_for_driver(aeron_dir, self._settings.driver_timeout)
            session = ClientSession(
                cnc,
                self._settings,
                self._handlers,
                idle=self._idle,
                on_error=self._on_error,
                on_close=self._on_close,
            )
        except BaseException:
            await self._hold.release()
            raise
        # Publications and subscriptions may be all that is left of a client: the driver is theirs too.
        session.source = source
        unsubscribe = source.on_exit(session.conductor.driver_exited)
        is_held = True

        async def release() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                unsubscribe()
                await self._hold.release()

        return Client(session, aeron_dir, source.driver, release)


class _Clients:
    """The clients of `async for client in connect()`."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        connect._hold.take()
        # After a break out of the loop nothing of it can be awaited any more.
        self._drop = weakref.finalize(self, connect._hold.drop)
        self._drop.atexit = False
        self._client: Client | None = None
        self._opened_at = 0.0
        self._backoff = _FIRST_BACKOFF

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Client:
        if self._client is None:
            return await self._open()
        await self._client.aclose()
        if time.monotonic() - self._opened_at > _LONGEST_BACKOFF:
            self._backoff = _FIRST_BACKOFF
        while True:
            delay = self._backoff
            self._backoff = min(2 * delay, _LONGEST_BACKOFF)
            await anyio.sleep(delay)
            try:
                return await self._open()
            except (DriverNotRunningError, DriverStartError) as error:
                log.warning("reconnect_failed", error=str(error), next_attempt_in=self._backoff)

    async def aclose(self) -> None:
        """Closes the last client and lets the driver go."""
        if self._client is not None:
            await self._client.aclose()
        if self._drop.detach() is not None:
            await self._connect._hold.release()

    async def _open(self) -> Client:
        self._client = await self._connect._open()
        self._opened_at = time.monotonic()
        return self._client


def connect(
    aeron_dir: str | os.PathLike[str] | None = None,
    *,
    driver: Literal["embedded", "shared", "external"] | MediaDriver | DriverConfig | None = None,
    client_name: str = "",
    driver_timeout: float = 5.0,
    keepalive_interval: float = 0.5,
    loop_stall_limit: float = 60.0,
    resource_linger: float = 3.0,
    idle: IdleStrategy | None = None,
    on_available_counter: CounterHandler | None = None,
    on_unavailable_counter: CounterHandler | None = None,
    on_publication_error: PublicationErrorHandler | None = None,
    on_error: Callable[[Exception], Any] | None = None,
    on_close: Callable[[CloseReason], Any] | None = None,
    driver_config: DriverConfig | None = None,
) -> Connect:
    """Connects to a media driver, by default to one of its own that it starts and supervises.

    ``async with connect() as client``, ``client = await connect()`` (then ``await client.aclose()``), or
    ``async for client in connect()``, which gives a fresh client after each loss, with back-off.

    Which driver: an explicit `driver` or `aeron_dir`; else the directory that AERON_DIR names; else an embedded one.
    `driver` may be "embedded", "shared" (with a directory: whoever comes first starts it, it stops after the last has
    gone), "external" (starts nothing), a `MediaDriver`, or a `DriverConfig` for an embedded one. `driver_config` has
    the settings of an embedded or shared driver.

    All times are in seconds: `driver_timeout` is how long the driver may be silent, and the default of every `timeout`;
    `keepalive_interval` how often this client tells that it lives; `loop_stall_limit` how long it is kept alive while
    the event loop is blocked; `resource_linger` how long mappings outlive what was closed. `client_name` appears in the
    label of the client's heartbeat counter. `idle` is how tasks of the client wait, for messages, for room to publish
    and for connections; None for `Parking()`.

    Handlers are plain functions, called in the conductor's turn, or async ones, which run as tasks, in order.
    `on_available_counter` and `on_unavailable_counter` get the `CounterInfo` of every client's counters as they come
    and go (not those that were there before); the key of one that has gone may be zeroed already.
    `on_publication_error` gets a `PublicationError` when a receiver has rejected a publication of this client.
    `on_error` gets exceptions of handlers, `on_close` the `CloseReason`.

    Opening raises `DriverNotRunningError`, `DriverNotFoundError`, `DriverStartError`, `CncVersionError`,
    `CorruptFileError`, `DriverAccessError`. Source: `Aeron.connect` and `Aeron.Context`.
    """
    settings = ConductorSettings(
        client_name=client_name,
        driver_timeout=driver_timeout,
        keepalive_interval=keepalive_interval,
        loop_stall_limit=loop_stall_limit,
        resource_linger=resource_linger,
    )
    for name in ("driver_timeout", "keepalive_interval", "loop_stall_limit"):
        if not getattr(settings, name) > 0:
            raise ValueError(f"{name} must be greater than 0")
    if settings.loop_stall_limit <= settings.keepalive_interval:
        raise ValueError(
            f"loop_stall_limit={loop_stall_limit} must be greater than keepalive_interval={keepalive_interval}: a loop "
            "with nothing to do runs the client's duty cycle only that often"
        )
    check_idle(idle)
    handlers = ClientHandlers(on_available_counter, on_unavailable_counter, on_publication_error)
    source = choose_driver(aeron_dir, driver, driver_config)
    return Connect(source, settings, handlers, idle or Parking(), on_error, on_close)


async def _wait_for_driver(aeron_dir: Path, timeout: float) -> Cnc:
    """Maps the CnC file of a live driver; waits for one that is about to start."""
    deadline = time.monotonic() + timeout
    path = aeron_dir / "cnc.dat"
    while True:
        try:
            cnc = Cnc(str(path))
            heartbeat = cnc.driver_heartbeat()
            age = time.time() - heartbeat / 1000
            if heartbeat == -1:
                problem = "its driver has shut down"
            elif age <= timeout:
                return cnc
            else:
                problem = f"the directory is stale: its driver's last heartbeat was {age:.0f} s ago"
        except DriverNotRunningError as error:
            problem = str(error)
        if time.monotonic() >= deadline:
            raise DriverNotRunningError(
                f"no driver is running in {aeron_dir}: {problem}. Start one there, or leave aeron_dir and AERON_DIR "
                "out for an embedded driver"
            )
        await anyio.sleep(_CNC_POLL)


def _int32(name: str, value: int) -> int:
    _check_integer(name, value)
    if not -(1 << 31) <= value < 1 << 31:
        raise ValueError(f"{name}={value} does not fit into 32 bits")
    return value


def _int64(name: str, value: int) -> int:
    _check_integer(name, value)
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{name}={value} does not fit into 64 bits")
    return value


def _check_integer(name: str, value: object) -> None:
    if not isinstance(value, Integral):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")


def _check_length(name: str, length: int, limit: int) -> None:
    if length > limit:
        raise ValueError(f"{name} of {length} bytes is longer than {limit}")

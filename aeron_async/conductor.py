"""The client's half of Aeron's control protocol: a state machine without I/O of its own, and the task that drives it.

Commands go to the driver through the to-driver ring buffer with a correlation id; the response comes back on the
to-clients broadcast. Source: Aeron's `ClientConductor`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakValueDictionary

import anyio

from aeron_async._control import Control
from aeron_async._core import Broadcast, Cnc, Lapped, check, open_log
from aeron_async._destinations import Destinations, addition
from aeron_async._native import ffi, lib
from aeron_async.counters import Counter, CounterInfo, CountersReader
from aeron_async.errors import (
    AeronError,
    ClientClosedError,
    CloseReason,
    CorruptFileError,
    InsufficientStorageRegistrationError,
    RegistrationError,
)
from aeron_async.idle import IdleStrategy
from aeron_async.protocol import commands, responses
from aeron_async.protocol.error_codes import ErrorCode
from aeron_async.protocol.records import MalformedRecord
from aeron_async.publication import ExclusivePublication, Publication
from aeron_async.publication_error import PublicationError
from aeron_async.subscription import Image, Subscription

Handler = Callable[..., Any]
NO_COUNTER_ID = -1

# How long a closed publication may still be on its way to its receivers, in seconds.
_MEMORY = 10.0

# The orders of handlers that belong to no resource, whose registration ids are positive.
_COUNTER_HANDLERS = -1
_ERROR_HANDLERS = -2

Resource = Publication | Subscription | Counter


class Registration:
    """A command that waits for the driver's answer."""

    def __init__(
        self,
        correlation_id: int,
        answer: type[responses.Response],
        make: Callable[[Any], Any],
        removal: Callable[..., commands.Command] | None = None,
        *,
        is_removal: bool = False,
    ) -> None:
        self.correlation_id = correlation_id
        self.answer = answer
        self.make = make
        self.removal = removal
        """What takes the result back, where it can be taken back."""
        self.is_removal = is_removal
        """Whether the end of the client does it as well."""
        self.on_done: Callable[[], None] | None = None
        self.is_done = False
        self.is_abandoned = False
        self._result: Any = None
        self._error: Exception | None = None

    def result(self) -> Any:
        """What the answer made. Raises what the driver refused it with."""
        if self._error is not None:
            raise self._error
        return self._result

    def resolve(self, result: Any) -> None:
        """The driver has said yes."""
        self._result = result
        self._finish()

    def fail(self, error: Exception) -> None:
        """The driver has said no, or can no longer be asked."""
        self._error = error
        self._finish()

    def _finish(self) -> None:
        self.is_done = True
        if self.on_done is not None:
            self.on_done()


@dataclass(frozen=True, slots=True)
class ImageHandlers:
    """What a subscription calls when its images come and go."""

    on_available: Handler | None = None
    on_unavailable: Handler | None = None


@dataclass(frozen=True, slots=True)
class ClientHandlers:
    """What a client calls for what belongs to none of its resources, or to any."""

    on_available_counter: Handler | None = None
    on_unavailable_counter: Handler | None = None
    on_publication_error: Handler | None = None


@dataclass(frozen=True, slots=True)
class ConductorSettings:
    """Times in seconds."""

    client_name: str
    driver_timeout: float
    keepalive_interval: float
    loop_stall_limit: float
    resource_linger: float


class ConductorEvents(Protocol):
    """What the conductor tells its surroundings."""

    def call(self, handler: Handler, *arguments: Any, order: int) -> None:
        """Calls a user's handler; those with the same order one after the other."""

    def failed(self, error: Exception) -> None:
        """Something went wrong that no call waits for."""

    def command_sent(self) -> None:
        """The driver will answer soon."""

    def closed(self, reason: CloseReason) -> None:
        """The client is closed, once."""

    def publication_added(self, publication: Publication) -> None:
        """A publication was added."""

    def publication_closed(self, publication: Publication) -> None:
        """A publication is closed."""

    def stream_left(self, stream_id: int) -> None:
        """The last subscription of a stream is closed."""

    def counter_added(self, counter_id: int, registration_id: int) -> None:
        """Some client has a new counter."""

    def counter_removed(self, registration_id: int) -> None:
        """Some client's counter has gone."""


@dataclass(slots=True)
class _Entry:
    resource: Resource
    removal: Callable[..., commands.Command] | None
    """None for what is never removed."""

    @property
    def is_to_be_revoked(self) -> bool:
        return isinstance(self.resource, ExclusivePublication) and self.resource.revoke_on_close

    def make_removal(self, client_id: int, correlation_id: int, registration_id: int) -> commands.Command | None:
        if self.is_to_be_revoked:
            flags = commands.RemovePublication.FLAG_REVOKE
            return commands.RemovePublication(client_id, correlation_id, registration_id, flags)
        return None if self.removal is None else self.removal(client_id, correlation_id, registration_id)


class ClientConductor:
    """The state of one client: its resources, the commands under way, and whether both ends live."""

    def __init__(
        self,
        cnc: Cnc,
        broadcast: Broadcast,
        client_id: int,
        settings: ConductorSettings,
        events: ConductorEvents,
        control: Control,
        *,
        now: float,
        handlers: ClientHandlers = ClientHandlers(),
        epoch_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.client_id = client_id
        self.close_reason: CloseReason | None = None
        self.close_detail = ""
        self._cnc = cnc
        self._broadcast = broadcast
        self._settings = settings
        self._events = events
        self._control = control
        self._handlers = handlers
        self._epoch_ms = epoch_ms
        self._counters = CountersReader(cnc)
        self._destinations = Destinations()
        self._pending: dict[int, Registration] = {}
        self._resources: dict[int, _Entry] = {}
        self._image_handlers: dict[int, ImageHandlers] = {}
        self._unsent: deque[tuple[int, bytes]] = deque()
        self._logs: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self._departed: dict[int, float] = {}
        self._lingering: deque[tuple[float, Any]] = deque()
        self._now = now
        self._next_keepalive = now
        self._driver_heartbeat = cnc.driver_heartbeat()
        self._driver_heartbeat_changed = now
        self._has_heartbeat_counter = False

    # --- commands ----------------------------------------------------------------------------------------------

    def add_publication(self, channel: str, stream_id: int) -> Registration:
        """Resolves to a `Publication`."""
        return self._ask(
            lambda correlation_id: commands.AddPublication(self.client_id, correlation_id, stream_id, channel),
            responses.PublicationReady,
            lambda ready: self._make_publication(Publication, channel, ready),
            commands.RemovePublication,
        )

    def add_exclusive_publication(self, channel: str, stream_id: int) -> Registration:
        """Resolves to an `ExclusivePublication`."""
        return self._ask(
            lambda correlation_id: commands.AddExclusivePublication(self.client_id, correlation_id, stream_id, channel),
            responses.ExclusivePublicationReady,
            lambda ready: self._make_publication(ExclusivePublication, channel, ready),
            commands.RemovePublication,
        )

    def add_subscription(
        self, channel: str, stream_id: int, handlers: ImageHandlers, idle: IdleStrategy | None = None
    ) -> Registration:
        """Resolves to a `Subscription`, whose first images may come at once."""
        return self._ask(
            lambda correlation_id: commands.AddSubscription(self.client_id, correlation_id, -1, stream_id, channel),
            responses.SubscriptionReady,
            lambda ready: self._make_subscription(channel, stream_id, handlers, idle, ready),
            commands.RemoveSubscription,
        )

    def add_counter(self, type_id: int, key: bytes, label: str) -> Registration:
        """Resolves to a `Counter`."""
        return self._ask(
            lambda correlation_id: commands.AddCounter(self.client_id, correlation_id, type_id, key, label),
            responses.CounterReady,
            lambda ready: self._make_counter(label, ready),
            commands.RemoveCounter,
        )

    def add_static_counter(self, type_id: int, key: bytes, label: str, registration_id: int) -> Registration:
        """Resolves to a `Counter`, which is never removed."""
        return self._ask(
            lambda correlation_id: commands.AddStaticCounter(
                self.client_id, correlation_id, registration_id, type_id, key, label
            ),
            responses.StaticCounter,
            lambda found: self._make_counter(label, found, registration_id),
        )

    def add_destination(self, owner_id: int, uri: str) -> Registration:
        """Resolves to the registration id of a destination of a publication or subscription that is open."""
        owner = self._owner(owner_id)

        def made(done: responses.OperationSucceeded) -> int:
            self._destinations.added(owner, done.correlation_id, uri)
            return done.correlation_id

        return self._ask(
            lambda correlation_id: addition(owner, self.client_id, correlation_id, uri),
            responses.OperationSucceeded,
            made,
            lambda client_id, correlation_id, destination_id: self._destinations.removal(
                owner, uri if isinstance(owner, Subscription) else destination_id
            )(client_id, correlation_id),
        )

    def remove_destination(self, owner_id: int, destination: str | int) -> Registration:
        """Resolves once a destination, by its channel or its registration id, is removed."""
        owner = self._owner(owner_id)
        removal = self._destinations.removal(owner, destination)
        registration = self._ask(
            lambda correlation_id: removal(self.client_id, correlation_id),
            responses.OperationSucceeded,
            lambda _: None,
        )
        self._destinations.removed(owner, destination)
        return registration

    def next_session_id(self, stream_id: int) -> Registration:
        """Resolves to a session id that no publication of the stream has."""
        return self._ask(
            lambda correlation_id: commands.GetNextAvailableSessionId(self.client_id, correlation_id, stream_id),
            responses.NextAvailableSessionId,
            lambda answer: answer.next_session_id,
        )

    def terminate_driver(self, token: bytes) -> None:
        """Asks the driver to stop; it never answers."""
        self.check_open()
        self._send(commands.TerminateDriver(self.client_id, self._cnc.next_correlation_id(), token))

    def reject_image(self, image_correlation_id: int, position: int, reason: str) -> Registration:
        """Resolves once the driver has taken the rejection."""
        return self._ask(
            lambda correlation_id: commands.RejectImage(
                self.client_id, correlation_id, image_correlation_id, position, reason
            ),
            responses.OperationSucceeded,
            lambda _: None,
        )

    def close_resource(self, registration_id: int) -> Registration | None:
        """Closes a resource here and sends its removal; None where it is closed already."""
        entry = self._resources.pop(registration_id, None)
        if entry is None:
            return None
        self._close_here(registration_id, entry.resource)
        correlation_id = self._cnc.next_correlation_id()
        removal = entry.make_removal(self.client_id, correlation_id, registration_id)
        if removal is None:
            return None
        registration = Registration(correlation_id, responses.OperationSucceeded, lambda _: None, is_removal=True)
        self._pending[correlation_id] = registration
        self._send(removal)
        return registration

    def abandon(self, registration: Registration) -> None:
        """Nobody waits for the answer any more: what the command has made, or will have made, is removed again."""
        if not registration.is_done:
            registration.is_abandoned = True
        elif registration.correlation_id in self._destinations:
            self.remove_destination(
                self._destinations.owner_id(registration.correlation_id), registration.correlation_id
            )
        elif registration.removal is not None and registration.correlation_id in self._resources:
            self.close_resource(registration.correlation_id)

    def _owner(self, registration_id: int) -> Publication | Subscription:
        """The open publication or subscription that a destination belongs to."""
        resource = self._resources[registration_id].resource
        assert not isinstance(resource, Counter)
        return resource

    def _ask(
        self,
        command: Callable[[int], commands.Command],
        answer: type[responses.Response],
        make: Callable[[Any], Resource | int | None],
        removal: Callable[..., commands.Command] | None = None,
    ) -> Registration:
        self.check_open()
        correlation_id = self._cnc.next_correlation_id()
        registration = Registration(correlation_id, answer, make, removal)
        self._pending[correlation_id] = registration
        try:
            self._send(command(correlation_id))
        except ValueError:
            del self._pending[correlation_id]
            raise
        return registration

    def _send(self, command: commands.Command) -> None:
        encoded = command.encode()
        if len(encoded) > self._cnc.max_command_length:
            raise ValueError(
                f"a command of {len(encoded)} bytes is too long for the driver's buffer, which takes "
                f"{self._cnc.max_command_length}"
            )
        if self._unsent or not self._cnc.send(command.TYPE_ID, encoded):
            self._unsent.append((command.TYPE_ID, encoded))
        self._events.command_sent()

    # --- the duty cycle ----------------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether the client was closed, for whatever reason."""
        return self.close_reason is not None

    @property
    def departed_publications(self) -> set[int]:
        """The original registration ids of publications that were closed of late, while somebody received them."""
        return set(self._departed)

    def check_open(self) -> None:
        """Raises the reason's exception once the client is closed."""
        if self.close_reason is not None:
            raise self.closed_error()

    def closed_error(self) -> ClientClosedError:
        """The exception of the reason why the client is closed."""
        assert self.close_reason is not None
        return ClientClosedError.of(self.close_reason, f"the client is closed: {self.close_detail}")

    def do_work(self, now: float) -> int:
        """One duty cycle at `now` (seconds, monotonic). Returns how much there was to do."""
        gap, self._now = now - self._now, now
        # The driver's verdict comes before our own: after a SIGSTOP both have something to say.
        work = self._receive()
        if not self.is_closed and gap > self._settings.loop_stall_limit:
            self.close(
                CloseReason.SERVICE_TIMEOUT,
                f"the event loop was blocked for {gap:.1f} s, longer than loop_stall_limit="
                f"{self._settings.loop_stall_limit}",
            )
        if not self.is_closed:
            work += self._send_unsent()
            if now >= self._next_keepalive:
                self._next_keepalive = now + self._settings.keepalive_interval
                self._check_liveness(now)
        while self._lingering and self._lingering[0][0] <= now:
            self._lingering.popleft()
            work += 1
        return work

    def idle_time(self, now: float) -> float:
        """How long the next duty cycle may wait, in seconds, where nothing arrives."""
        if self._unsent:
            return 0.001
        return max(0.0, self._next_keepalive - now)

    def driver_exited(self) -> None:
        """The driver's process is gone."""
        self._receive()
        self.close(CloseReason.DRIVER_SHUTDOWN, "the driver's process has exited")

    def close(self, reason: CloseReason, detail: str) -> None:
        """Closes everything for `reason`; again it does nothing."""
        if self.is_closed:
            return
        self.close_reason, self.close_detail = reason, detail
        if reason is CloseReason.USER:
            self._say_goodbye()
        resources, self._resources = self._resources, {}
        for registration_id, entry in resources.items():
            self._close_here(registration_id, entry.resource)
        pending, self._pending = self._pending, {}
        for registration in pending.values():
            if registration.is_removal:
                registration.resolve(None)
            else:
                registration.fail(self.closed_error())
        self._unsent.clear()
        self._lingering.clear()
        self._events.closed(reason)

    def _say_goodbye(self) -> None:
        """Tells the driver, as far as its buffer has room, that this client and all it has is closed."""
        farewells = [
            entry.make_removal(self.client_id, self._cnc.next_correlation_id(), registration_id)
            for registration_id, entry in self._resources.items()
            # The driver lets go of the others by itself.
            if entry.is_to_be_revoked
        ]
        for command in (*farewells, commands.ClientClose(self.client_id)):
            if command is not None:
                self._cnc.send(command.TYPE_ID, command.encode())

    def close_handles(self) -> None:
        """Closes all handles of this process and touches nothing shared: a forked child's part."""
        for entry in self._resources.values():
            if isinstance(entry.resource, Subscription):
                entry.resource._forget_read_ahead()
            entry.resource._close()

    def _send_unsent(self) -> int:
        sent = 0
        while self._unsent and self._cnc.send(*self._unsent[0]):
            self._unsent.popleft()
            sent += 1
        return sent

    def _check_liveness(self, now: float) -> None:
        heartbeat = self._cnc.driver_heartbeat()
        if heartbeat == -1:
            self.close(CloseReason.DRIVER_SHUTDOWN, "the driver has shut down")
            return
        # By its change, not by its age: a step of the system's clock is not the driver's death.
        if heartbeat != self._driver_heartbeat:
            self._driver_heartbeat, self._driver_heartbeat_changed = heartbeat, now
        elif now - self._driver_heartbeat_changed > self._settings.driver_timeout:
            self.close(
                CloseReason.DRIVER_TIMEOUT,
                f"the driver has not changed its heartbeat for {now - self._driver_heartbeat_changed:.1f} s, longer "
                f"than driver_timeout={self._settings.driver_timeout}",
            )
            return
        if self._cnc.client_heartbeat(self.client_id, self._epoch_ms()):
            if not self._has_heartbeat_counter:
                self._has_heartbeat_counter = True
                self._cnc.client_label(self.client_id, f" name={self._settings.client_name} client=aeron_async")
        elif self._has_heartbeat_counter:
            self.close(CloseReason.CLIENT_TIMEOUT, "the driver has taken away this client's heartbeat counter")

    # --- responses ---------------------------------------------------------------------------------------------

    def _receive(self) -> int:
        received = 0
        while not self.is_closed:
            try:
                record = self._broadcast.receive()
            except Lapped:
                self.close(CloseReason.LAPPED, "it fell behind the driver's broadcast and may have missed responses")
                break
            except CorruptFileError as error:
                # Where the next record starts cannot be known any more.
                self._events.failed(error)
                self.close(CloseReason.LAPPED, f"it can receive no more responses: {error}")
                break
            if record is None:
                break
            received += 1
            try:
                response = responses.decode_response(*record)
            except MalformedRecord as error:
                self._events.failed(error)
                continue
            self._on_response(response)
        return received

    def _on_response(self, response: responses.Response | None) -> None:
        match response:
            case responses.AvailableImage():
                self._on_available_image(response)
            case responses.UnavailableImage():
                self._on_unavailable_image(response)
            case responses.ErrorResponse():
                self._on_error(response)
            case responses.ClientTimeout():
                if response.client_id == self.client_id:
                    self.close(
                        CloseReason.CLIENT_TIMEOUT,
                        "the driver heard nothing of this client for its client liveness timeout",
                    )
            case responses.PublicationError():
                self._on_publication_error(response)
            case responses.UnavailableCounter():
                self._on_unavailable_counter(response)
            case responses.CounterReady() if type(response) is responses.CounterReady:
                self._on_answer(response)
                self._on_available_counter(response)
            case None:
                pass
            case _:
                self._on_answer(response)

    def _on_answer(self, response: Any) -> None:
        registration = self._pending.pop(response.correlation_id, None)
        if registration is None:
            return
        removal = registration.removal
        if registration.is_abandoned:
            if removal is not None:
                self._remove_again(registration, removal)
            return
        try:
            result = self._make(registration, response)
        except Exception as error:
            if removal is not None:
                self._remove_again(registration, removal)
            registration.fail(error)
            return
        if isinstance(result, Resource):
            self._resources[registration.correlation_id] = _Entry(result, removal)
        if isinstance(result, Publication):
            self._events.publication_added(result)
        registration.resolve(result)

    def _make(self, registration: Registration, response: responses.Response) -> Any:
        if not isinstance(response, registration.answer):
            raise CorruptFileError(
                f"the driver answered a command with {type(response).__name__}, not {registration.answer.__name__}"
            )
        return registration.make(response)

    def _remove_again(self, registration: Registration, removal: Callable[..., commands.Command]) -> None:
        self._send(removal(self.client_id, self._cnc.next_correlation_id(), registration.correlation_id))

    def _on_error(self, response: responses.ErrorResponse) -> None:
        if response.error_code == ErrorCode.CHANNEL_ENDPOINT_ERROR:
            # No command's id: that of a channel status counter, which says the same to the resources on it.
            return
        registration = self._pending.pop(response.offending_command_correlation_id, None)
        if registration is None:
            return
        kind = (
            InsufficientStorageRegistrationError
            if response.error_code == ErrorCode.STORAGE_SPACE
            else RegistrationError
        )
        registration.fail(kind(response.error_code, response.error_message))

    def _on_publication_error(self, response: responses.PublicationError) -> None:
        handler = self._handlers.on_publication_error
        if handler is None:
            return
        for entry in list(self._resources.values()):
            publication = entry.resource
            if (
                isinstance(publication, Publication)
                and publication.original_registration_id == response.registration_id
            ):
                error = PublicationError.of(response, publication.registration_id)
                self._events.call(handler, error, order=_ERROR_HANDLERS)

    def _on_available_counter(self, response: responses.CounterReady) -> None:
        self._events.counter_added(response.counter_id, response.correlation_id)
        handler = self._handlers.on_available_counter
        if handler is not None:
            self._events.call(handler, self._counter_info(response), order=_COUNTER_HANDLERS)

    def _on_unavailable_counter(self, response: responses.UnavailableCounter) -> None:
        self._events.counter_removed(response.correlation_id)
        handler = self._handlers.on_unavailable_counter
        if handler is not None:
            info = self._counter_info(response)._replace(state=lib.AA_COUNTER_RECLAIMED)
            self._events.call(handler, info, order=_COUNTER_HANDLERS)

    def _counter_info(self, response: responses.CounterReady) -> CounterInfo:
        """What the counter's record says, or nothing but its ids where that is another's by now."""
        counter_id, registration_id = response.counter_id, response.correlation_id
        if 0 <= counter_id <= self._counters.max_counter_id:
            info = self._counters.snapshot(counter_id)
            if info.registration_id == registration_id:
                return info
        return CounterInfo(
            id=counter_id,
            type_id=-1,
            key=b"",
            label="",
            value=0,
            registration_id=registration_id,
            owner_id=-1,
            reference_id=0,
            state=lib.AA_COUNTER_RECLAIMED,
        )

    def _on_available_image(self, response: responses.AvailableImage) -> None:
        entry = self._resources.get(response.subscription_registration_id)
        if entry is None or not isinstance(entry.resource, Subscription):
            return
        subscription = entry.resource
        if any(image.correlation_id == response.correlation_id for image in subscription.images):
            return
        try:
            image = self._make_image(subscription, response)
        except (AeronError, OSError, MemoryError) as error:
            self._events.failed(error)
            return
        subscription._add_image(image)
        handler = self._image_handlers[subscription.registration_id].on_available
        if handler is not None:
            self._events.call(handler, image, order=subscription.registration_id)

    def _on_unavailable_image(self, response: responses.UnavailableImage) -> None:
        entry = self._resources.get(response.subscription_registration_id)
        if entry is None or not isinstance(entry.resource, Subscription):
            return
        subscription = entry.resource
        for image in subscription.images:
            if image.correlation_id == response.correlation_id:
                subscription._remove_image(image)
                self._image_gone(subscription.registration_id, image)

    def _image_gone(self, registration_id: int, image: Image) -> None:
        self._linger(image)
        handler = self._image_handlers[registration_id].on_unavailable
        if handler is not None:
            self._events.call(handler, image, order=registration_id)

    def _close_here(self, registration_id: int, resource: Resource) -> None:
        images = resource.images if isinstance(resource, Subscription) else ()
        if isinstance(resource, Publication) and resource.is_connected:
            self._note_departure(resource)
        resource._close()
        self._destinations.owner_closed(registration_id)
        for image in images:
            self._image_gone(registration_id, image)
        if isinstance(resource, Subscription):
            del self._image_handlers[registration_id]
            if not self._is_subscribed(resource.stream_id):
                self._events.stream_left(resource.stream_id)
        else:
            self._linger(resource)
        if isinstance(resource, Publication):
            self._events.publication_closed(resource)

    def _is_subscribed(self, stream_id: int) -> bool:
        resources = (entry.resource for entry in self._resources.values())
        return any(isinstance(resource, Subscription) and resource.stream_id == stream_id for resource in resources)

    def _note_departure(self, publication: Publication) -> None:
        for registration_id in [id for id, since in self._departed.items() if self._now - since > _MEMORY]:
            del self._departed[registration_id]
        self._departed[publication.original_registration_id] = self._now

    def _linger(self, holder: Any) -> None:
        """Keeps the mappings of a closed object for a while, so that unmapping is never part of a message's way."""
        self._lingering.append((self._now + self._settings.resource_linger, holder))

    # --- what answers make -------------------------------------------------------------------------------------

    def _log(self, path: str) -> Any:
        """The mapping of a log buffer, one for all handles on it."""
        log = self._logs.get(path)
        if log is None:
            log = self._logs[path] = open_log(path)
        return log

    def _make_publication(
        self, kind: type[Publication], channel: str, ready: responses.PublicationReady
    ) -> Publication:
        log = self._log(ready.log_file_name)
        publication = ffi.new("aa_publication_t **")
        error = ffi.new("aa_error_t *")
        code = lib.aa_publication_create(
            log,
            self._cnc.handle,
            ready.session_id,
            ready.stream_id,
            ready.position_limit_counter_id,
            ready.channel_status_indicator_id,
            kind.is_exclusive,
            publication,
            error,
        )
        check(code, error)
        return kind(
            ffi.gc(publication[0], lib.aa_publication_release),
            log,
            self._control,
            channel=channel,
            stream_id=ready.stream_id,
            session_id=ready.session_id,
            registration_id=ready.correlation_id,
            original_registration_id=ready.registration_id,
            channel_status_id=ready.channel_status_indicator_id,
        )

    def _make_subscription(
        self,
        channel: str,
        stream_id: int,
        handlers: ImageHandlers,
        idle: IdleStrategy | None,
        ready: responses.SubscriptionReady,
    ) -> Subscription:
        subscription = Subscription(
            self._control,
            channel=channel,
            stream_id=stream_id,
            registration_id=ready.correlation_id,
            channel_status=self._status_handle(ready.channel_status_indicator_id),
            channel_status_id=ready.channel_status_indicator_id,
            idle=idle,
        )
        self._image_handlers[ready.correlation_id] = handlers
        return subscription

    def _make_image(self, subscription: Subscription, response: responses.AvailableImage) -> Image:
        log = self._log(response.log_file_name)
        image = ffi.new("aa_image_t **")
        error = ffi.new("aa_error_t *")
        check(lib.aa_image_create(log, self._cnc.handle, response.subscriber_position_id, image, error), error)
        return Image(
            ffi.gc(image[0], lib.aa_image_release),
            log,
            subscription._reader,
            self._control,
            session_id=response.session_id,
            correlation_id=response.correlation_id,
            subscription_registration_id=subscription.registration_id,
            source_identity=response.source_identity,
        )

    def _make_counter(self, label: str, ready: responses.CounterReady, registration_id: int | None = None) -> Counter:
        return Counter(
            self._counter_handle(ready.counter_id),
            self._control,
            id=ready.counter_id,
            registration_id=ready.correlation_id if registration_id is None else registration_id,
            label=label,
            correlation_id=ready.correlation_id,
        )

    def _status_handle(self, counter_id: int) -> Any | None:
        """The status counter of a channel; IPC has none."""
        return None if counter_id == NO_COUNTER_ID else self._counter_handle(counter_id)

    def _counter_handle(self, counter_id: int) -> Any:
        handle = lib.aa_counter_create(self._cnc.handle, counter_id)
        if handle == ffi.NULL:
            raise CorruptFileError(f"the driver named counter {counter_id}, which its counters file has no room for")
        return ffi.gc(handle, lib.aa_counter_release)


class ConductorTask:
    """Runs a conductor's duty cycle in the running loop: at once when something arrived, else at its next deadline."""

    def __init__(
        self, conductor: ClientConductor, beat: Callable[[], None], failed: Callable[[Exception], None]
    ) -> None:
        """`beat` is called after each duty cycle, `failed` with what should not have gone wrong in one."""
        self._conductor = conductor
        self._beat = beat
        self._failed = failed
        self._wake = anyio.Event()

    def wake(self) -> None:
        """The next duty cycle is due now."""
        self._wake.set()

    async def run(self) -> None:
        """Returns when the conductor is closed."""
        conductor = self._conductor
        while not conductor.is_closed:
            self._wake = anyio.Event()
            try:
                conductor.do_work(time.monotonic())
            except Exception as error:
                # One response that could not be dealt with must not end the client.
                self._failed(error)
            self._beat()
            with anyio.move_on_after(conductor.idle_time(time.monotonic())):
                await self._wake.wait()

"""A client's conductor on a fake driver, and the answers that a test gives in the driver's name."""

from __future__ import annotations

import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import anyio
import anyio.lowlevel

from aeron_async._control import Timeout
from aeron_async._core import Broadcast, Cnc
from aeron_async._waker import ImagesPlace
from aeron_async.conductor import (
    ClientConductor,
    ClientHandlers,
    ConductorSettings,
    Handler,
    ImageHandlers,
    Registration,
)
from aeron_async.counters import Counter
from aeron_async.errors import AeronError, ClosedError, CloseReason
from aeron_async.idle import IdleStrategy
from aeron_async.protocol import responses
from aeron_async.protocol.commands import Command
from aeron_async.protocol.counter_types import CounterType
from aeron_async.publication import ExclusivePublication, Publication
from aeron_async.subscription import Image, Subscription
from tests.fakes import FakeCounter, FakeDriver, FakeLog

IPC = "aeron:ipc"
STREAM_ID = 10
NO_LIMIT = 1 << 62
NO_HANDLERS = ClientHandlers()

C = TypeVar("C", bound=Command)


class PublicationStream(NamedTuple):
    """A publication and the driver's side of it."""

    publication: Publication
    log: FakeLog
    limit: FakeCounter


class ImageStream(NamedTuple):
    """An image and the driver's side of it."""

    image: Image
    log: FakeLog
    position: FakeCounter


class Bench:
    """A conductor and the driver that answers it. Resources come into being in one turn, with no loop needed."""

    def __init__(
        self, driver: FakeDriver, conductor: ClientConductor, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.driver = driver
        self.conductor = conductor
        self._clock = clock

    def work(self) -> int:
        """One duty cycle."""
        return self.conductor.do_work(self._clock())

    def command(self, kind: type[C]) -> C:
        """The one command that was sent since the last look."""
        (command,) = self.driver.receive()
        assert type(command) is kind
        return command

    async def next_command(self, kind: type[C]) -> C:
        """The next command that another task sends."""
        while not (received := self.driver.receive()):
            await anyio.sleep(0.001)
        (command,) = received
        assert type(command) is kind
        return command

    async def answer_removal(self, kind: type[C]) -> C:
        """Answers the removal that another task sends."""
        command = await self.next_command(kind)
        self.answer(responses.OperationSucceeded(command.correlation_id))
        return command

    def answer(self, *answers: responses.Response) -> None:
        """Gives the driver's answers, and the conductor a turn to take them."""
        for answer in answers:
            self.driver.send(answer)
        self.work()

    def publication_ready(
        self,
        command: Command,
        log: FakeLog,
        limit: FakeCounter,
        *,
        kind: type[responses.PublicationReady] = responses.PublicationReady,
        status_id: int = -1,
    ) -> responses.PublicationReady:
        return kind(
            correlation_id=command.correlation_id,
            registration_id=command.correlation_id,
            session_id=log.session_id,
            stream_id=log.stream_id,
            position_limit_counter_id=limit.id,
            channel_status_indicator_id=status_id,
            log_file_name=log.path,
        )

    def add_publication(
        self, log: FakeLog | None = None, *, limit: int = NO_LIMIT, status_id: int = -1
    ) -> PublicationStream:
        return self._add_publication(
            self.conductor.add_publication(IPC, STREAM_ID), responses.PublicationReady, log, limit, status_id
        )

    def add_exclusive_publication(
        self, log: FakeLog | None = None, *, limit: int = NO_LIMIT, status_id: int = -1
    ) -> PublicationStream:
        stream = self._add_publication(
            self.conductor.add_exclusive_publication(IPC, STREAM_ID),
            responses.ExclusivePublicationReady,
            log,
            limit,
            status_id,
        )
        assert type(stream.publication) is ExclusivePublication
        return stream

    def _add_publication(
        self,
        registration: Registration,
        kind: type[responses.PublicationReady],
        log: FakeLog | None,
        limit: int,
        status_id: int,
    ) -> PublicationStream:
        (command,) = self.driver.receive()
        log = log or self.driver.create_log()
        counter = self.driver.allocate_counter(CounterType.PUBLISHER_LIMIT, value=limit)
        self.answer(self.publication_ready(command, log, counter, kind=kind, status_id=status_id))
        return PublicationStream(registration.result(), log, counter)

    def add_subscription(
        self,
        channel: str = IPC,
        *,
        on_available: Handler | None = None,
        on_unavailable: Handler | None = None,
        idle: IdleStrategy | None = None,
        status_id: int = -1,
    ) -> Subscription:
        handlers = ImageHandlers(on_available, on_unavailable)
        registration = self.conductor.add_subscription(channel, STREAM_ID, handlers, idle)
        (command,) = self.driver.receive()
        self.answer(responses.SubscriptionReady(command.correlation_id, status_id))
        subscription: Subscription = registration.result()
        return subscription

    def available_image(
        self, subscription: Subscription, log: FakeLog, position: FakeCounter, *, correlation_id: int = 500
    ) -> responses.AvailableImage:
        return responses.AvailableImage(
            correlation_id=correlation_id,
            session_id=log.session_id,
            stream_id=log.stream_id,
            subscription_registration_id=subscription.registration_id,
            subscriber_position_id=position.id,
            log_file_name=log.path,
            source_identity=IPC,
        )

    def add_image(
        self,
        subscription: Subscription,
        log: FakeLog | None = None,
        *,
        correlation_id: int = 500,
        join_position: int = 0,
    ) -> ImageStream:
        log = log or self.driver.create_log()
        position = self.driver.allocate_counter(CounterType.SUBSCRIBER_POSITION, value=join_position)
        self.answer(self.available_image(subscription, log, position, correlation_id=correlation_id))
        (image,) = [image for image in subscription.images if image.correlation_id == correlation_id]
        return ImageStream(image, log, position)

    def remove_image(self, image: Image) -> None:
        self.answer(
            responses.UnavailableImage(image.correlation_id, image.subscription_registration_id, STREAM_ID, IPC)
        )

    def add_counter(
        self, *, type_id: int = 1001, label: str = "a counter", value: int = 0
    ) -> tuple[Counter, FakeCounter]:
        registration = self.conductor.add_counter(type_id, b"key", label)
        (command,) = self.driver.receive()
        counter = self.driver.allocate_counter(
            type_id, label=label, registration_id=command.correlation_id, owner_id=command.client_id, value=value
        )
        self.answer(responses.CounterReady(command.correlation_id, counter.id))
        return registration.result(), counter

    def allocate_heartbeat_counter(self) -> FakeCounter:
        """What the driver does at this client's first command."""
        client_id = self.conductor.client_id
        return self.driver.allocate_counter(
            CounterType.HEARTBEAT,
            key=struct.pack("<q", client_id),
            label=f"client-heartbeat: id={client_id}",
            registration_id=client_id,
            owner_id=client_id,
        )


class Surroundings:
    """What a conductor tells, kept; and what its resources ask for, without a loop."""

    def __init__(self) -> None:
        self.calls: list[tuple[Handler, tuple[Any, ...], int]] = []
        self.errors: list[Exception] = []
        self.commands_sent = 0
        self.closed_with: list[CloseReason] = []
        self.on_closed: Callable[[], None] = lambda: None
        self.closed_resources: list[int] = []
        self.process_error: AeronError | None = None

    # ConductorEvents

    def call(self, handler: Handler, *arguments: Any, order: int) -> None:
        self.calls.append((handler, arguments, order))
        handler(*arguments)

    def failed(self, error: Exception) -> None:
        self.errors.append(error)

    def command_sent(self) -> None:
        self.commands_sent += 1

    def closed(self, reason: CloseReason) -> None:
        self.closed_with.append(reason)
        self.on_closed()

    def publication_added(self, publication: Publication) -> None:
        pass

    def publication_closed(self, publication: Publication) -> None:
        pass

    def stream_left(self, stream_id: int) -> None:
        pass

    def counter_added(self, counter_id: int, registration_id: int) -> None:
        pass

    def counter_removed(self, registration_id: int) -> None:
        pass

    # Control

    def seconds(self, timeout: Timeout) -> float | None:
        return timeout if timeout is None or isinstance(timeout, int | float) else 5.0

    def check_process(self) -> None:
        if self.process_error is not None:
            raise self.process_error

    def closed_error(self, resource: type[ClosedError]) -> AeronError:
        return resource("it was closed")

    async def close_resource(self, registration_id: int) -> None:
        self.closed_resources.append(registration_id)

    async def wait_publication(self, publication: Any, kind: int) -> None:
        raise AssertionError("nothing may wait here")

    def waiting_place(self, idle: IdleStrategy | None, local_stream_id: int | None) -> ImagesPlace:
        raise AssertionError("nothing may wait here")


class Rig(Bench):
    """A conductor without a loop, at a time that the test sets."""

    def __init__(self, driver: FakeDriver, *, handlers: ClientHandlers = NO_HANDLERS, **settings: Any) -> None:
        self.now = 1000.0
        self.epoch_ms = 1_800_000_000_000
        self.surroundings = Surroundings()
        self.cnc = Cnc(driver.cnc_path)
        self.settings = ConductorSettings(
            **{
                "client_name": "",
                "driver_timeout": 5.0,
                "keepalive_interval": 0.5,
                "loop_stall_limit": 60.0,
                "resource_linger": 3.0,
            }
            | settings
        )
        conductor = ClientConductor(
            self.cnc,
            Broadcast(self.cnc),
            self.cnc.next_correlation_id(),
            self.settings,
            self.surroundings,
            self.surroundings,
            now=self.now,
            handlers=handlers,
            epoch_ms=lambda: self.epoch_ms,
        )
        super().__init__(driver, conductor, lambda: self.now)

    def pass_time(self, seconds: float, *, driver_lives: bool = True) -> int:
        """Lets time pass, on every clock, and then gives the conductor a turn."""
        self.now += seconds
        self.epoch_ms += round(seconds * 1000)
        if driver_lives:
            self.driver.heartbeat += round(seconds * 1000)
        return self.work()


async def until(condition: Callable[[], bool]) -> None:
    """Returns when the condition holds; a test that waits in vain fails by its time limit."""
    while not condition():
        await anyio.sleep(0.001)


def mapping_count(log: FakeLog) -> int:
    """How often this process has the log mapped, the fake driver's own mapping not counted."""
    with open("/proc/self/maps") as maps:
        return sum(log.path in line for line in maps) - 1


def make_driver(directory: Path, **options: Any) -> FakeDriver:
    """A driver in a directory of its own."""
    directory.mkdir()
    return FakeDriver(directory, **options)


@asynccontextmanager
async def turns_of_another_task() -> AsyncIterator[Callable[[], int]]:
    """How many turns a task has had so far that runs beside the caller's and always wants another one."""
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take_turns)
        yield lambda: turns
        tasks.cancel_scope.cancel()

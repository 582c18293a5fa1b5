"""Commands that make no resource of the usual kind: destinations, static counters, session ids, the driver's end."""

from __future__ import annotations

import dataclasses

import anyio
import pytest

import aeron_async
from aeron_async.counters import Counter
from aeron_async.errors import (
    AddTimeoutError,
    ClientClosedError,
    CloseReason,
    CorruptFileError,
    CounterClosedError,
    PublicationClosedError,
    RegistrationError,
    SubscriptionClosedError,
)
from aeron_async.protocol import commands, responses
from aeron_async.protocol.counter_types import CounterType
from aeron_async.publication import Publication
from aeron_async.subscription import Subscription
from tests.unit.rig import STREAM_ID, Bench, Rig

MANUAL = "aeron:udp?control-mode=manual"
URI = "aeron:udp?endpoint=127.0.0.1:40123"
OTHER_URI = "aeron:udp?endpoint=127.0.0.1:40124"
ORIGINAL_ID = 777


def add_shared_publication(rig: Bench) -> Publication:
    """A publication that another client was the first to add."""
    registration = rig.conductor.add_publication(MANUAL, STREAM_ID)
    (command,) = rig.driver.receive()
    limit = rig.driver.allocate_counter(CounterType.PUBLISHER_LIMIT)
    ready = rig.publication_ready(command, rig.driver.create_log(), limit)
    rig.answer(dataclasses.replace(ready, registration_id=ORIGINAL_ID))
    publication: Publication = registration.result()
    return publication


def add_destination(rig: Rig, owner: Publication | Subscription, uri: str = URI) -> int:
    registration = rig.conductor.add_destination(owner.registration_id, uri)
    (command,) = rig.driver.receive()
    rig.answer(responses.OperationSucceeded(command.correlation_id))
    destination_id: int = registration.result()
    return destination_id


# --- destinations of publications ------------------------------------------------------------------------------------


def test_a_destination_is_added_to_what_the_driver_knows_the_publication_by(rig: Rig) -> None:
    publication = add_shared_publication(rig)
    registration = rig.conductor.add_destination(publication.registration_id, URI)
    command = rig.command(commands.AddDestination)
    assert (command.registration_id, command.channel) == (ORIGINAL_ID, URI)
    rig.answer(responses.OperationSucceeded(command.correlation_id))
    assert registration.result() == command.correlation_id


def test_a_destination_is_removed_by_its_channel_or_its_id(rig: Rig) -> None:
    publication = add_shared_publication(rig)
    destination_id = add_destination(rig, publication)

    by_channel = rig.conductor.remove_destination(publication.registration_id, OTHER_URI)
    command = rig.command(commands.RemoveDestination)
    assert (command.registration_id, command.channel) == (ORIGINAL_ID, OTHER_URI)
    rig.answer(responses.OperationSucceeded(command.correlation_id))
    assert by_channel.result() is None

    rig.conductor.remove_destination(publication.registration_id, destination_id)
    by_id = rig.command(commands.RemoveDestinationById)
    assert (by_id.resource_registration_id, by_id.destination_registration_id) == (ORIGINAL_ID, destination_id)


def test_a_destination_that_the_driver_refuses_is_an_error(rig: Rig) -> None:
    publication = add_shared_publication(rig)
    registration = rig.conductor.add_destination(publication.registration_id, "aeron:ipc")
    command = rig.command(commands.AddDestination)
    rig.answer(responses.ErrorResponse(command.correlation_id, 1, "no such thing"))
    with pytest.raises(RegistrationError, match="no such thing"):
        registration.result()
    rig.conductor.abandon(registration)
    assert rig.driver.receive() == []


@pytest.mark.parametrize("is_late", [False, True])
def test_an_abandoned_destination_is_removed_again(rig: Rig, is_late: bool) -> None:
    publication = add_shared_publication(rig)
    registration = rig.conductor.add_destination(publication.registration_id, URI)
    command = rig.command(commands.AddDestination)
    if is_late:
        rig.conductor.abandon(registration)
        assert rig.driver.receive() == []
    rig.answer(responses.OperationSucceeded(command.correlation_id))
    if not is_late:
        rig.conductor.abandon(registration)
    removal = rig.command(commands.RemoveDestinationById)
    assert removal.resource_registration_id == ORIGINAL_ID
    assert removal.destination_registration_id == command.correlation_id


# --- destinations of subscriptions -----------------------------------------------------------------------------------


def test_a_subscriptions_destination_is_removed_by_its_channel_also_where_its_id_is_given(rig: Rig) -> None:
    subscription = rig.add_subscription()
    registration = rig.conductor.add_destination(subscription.registration_id, URI)
    command = rig.command(commands.AddRcvDestination)
    assert (command.registration_id, command.channel) == (subscription.registration_id, URI)
    rig.answer(responses.OperationSucceeded(command.correlation_id))
    first = registration.result()
    second = add_destination(rig, subscription, OTHER_URI)

    for destination, channel in ((second, OTHER_URI), (URI, URI)):
        rig.conductor.remove_destination(subscription.registration_id, destination)
        removal = rig.command(commands.RemoveRcvDestination)
        assert (removal.registration_id, removal.channel) == (subscription.registration_id, channel)
    for gone in (first, second):
        with pytest.raises(ValueError, match=f"{gone} is not the registration id of a destination"):
            rig.conductor.remove_destination(subscription.registration_id, gone)


def test_an_id_of_another_subscriptions_destination_is_refused(rig: Rig) -> None:
    subscription, other = rig.add_subscription(), rig.add_subscription()
    destination_id = add_destination(rig, other)
    with pytest.raises(ValueError, match=str(destination_id)):
        rig.conductor.remove_destination(subscription.registration_id, destination_id)
    assert rig.driver.receive() == []


def test_an_abandoned_destination_of_a_subscription_is_removed_again(rig: Rig) -> None:
    subscription = rig.add_subscription()
    registration = rig.conductor.add_destination(subscription.registration_id, URI)
    command = rig.command(commands.AddRcvDestination)
    rig.conductor.abandon(registration)
    rig.answer(responses.OperationSucceeded(command.correlation_id))
    assert rig.command(commands.RemoveRcvDestination).channel == URI


def test_a_destination_that_went_with_its_subscription_needs_no_removal(rig: Rig) -> None:
    subscription = rig.add_subscription()
    registration = rig.conductor.add_destination(subscription.registration_id, URI)
    command = rig.command(commands.AddRcvDestination)
    rig.answer(responses.OperationSucceeded(command.correlation_id))
    rig.conductor.close_resource(subscription.registration_id)
    rig.driver.receive()
    rig.conductor.abandon(registration)
    assert rig.driver.receive() == []


def test_a_destination_under_way_fails_with_the_client(rig: Rig) -> None:
    publication = add_shared_publication(rig)
    added = rig.conductor.add_destination(publication.registration_id, URI)
    removed = rig.conductor.remove_destination(publication.registration_id, URI)
    rig.conductor.close(CloseReason.DRIVER_SHUTDOWN, "gone")
    for registration in (added, removed):
        with pytest.raises(ClientClosedError):
            registration.result()


# --- destinations, as users see them ---------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_destinations_are_added_and_removed(client: aeron_async.Client, bench: Bench) -> None:
    ids: list[int] = []

    async def use(owner: Publication | Subscription) -> None:
        ids.append(await owner.add_destination(aeron_async.ChannelUri.parse(URI)))
        await owner.remove_destination(ids[-1])
        await owner.remove_destination(aeron_async.ChannelUri.parse(URI))

    for owner, expected in (
        (add_shared_publication(bench), ("AddDestination", "RemoveDestinationById", "RemoveDestination")),
        (bench.add_subscription(), ("AddRcvDestination", "RemoveRcvDestination", "RemoveRcvDestination")),
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(use, owner)
            for name in expected:
                command = await bench.next_command(getattr(commands, name))
                bench.answer(responses.OperationSucceeded(command.correlation_id))
    assert len(set(ids)) == 2


@pytest.mark.anyio
async def test_destinations_of_what_is_closed_are_refused(bench: Bench) -> None:
    publication, subscription = bench.add_publication().publication, bench.add_subscription()
    for resource in (publication, subscription):
        bench.conductor.close_resource(resource.registration_id)
    bench.driver.receive()
    for call in (publication.add_destination, publication.remove_destination):
        with pytest.raises(PublicationClosedError):
            await call(URI)
    for call in (subscription.add_destination, subscription.remove_destination):
        with pytest.raises(SubscriptionClosedError):
            await call(URI)
    assert bench.driver.receive() == []


@pytest.mark.anyio
async def test_a_destination_without_an_answer_times_out(bench: Bench) -> None:
    publication = bench.add_publication().publication
    with pytest.raises(AddTimeoutError):
        await publication.add_destination(URI, timeout=0.01)
    command = bench.command(commands.AddDestination)
    bench.answer(responses.OperationSucceeded(command.correlation_id))
    assert bench.command(commands.RemoveDestinationById).destination_registration_id == command.correlation_id
    with pytest.raises(TypeError, match="float"):
        await publication.add_destination(1.5)  # type: ignore[arg-type]


# --- static counters --------------------------------------------------------------------------------------------------


def add_static_counter(rig: Bench, registration_id: int = 99) -> Counter:
    registration = rig.conductor.add_static_counter(1001, b"key", "label", registration_id)
    command = rig.command(commands.AddStaticCounter)
    assert (command.type_id, command.key, command.label, command.registration_id) == (
        1001,
        b"key",
        "label",
        registration_id,
    )
    counter = rig.driver.allocate_counter(1001, registration_id=registration_id, owner_id=-1, value=5)
    rig.answer(responses.StaticCounter(command.correlation_id, counter.id))
    made: Counter = registration.result()
    return made


def test_a_static_counter_has_the_id_it_was_added_with(rig: Rig) -> None:
    counter = add_static_counter(rig)
    assert (counter.registration_id, counter.label, counter.value) == (99, "label", 5)
    assert counter.increment() == 6


@pytest.mark.anyio
async def test_closing_a_static_counter_only_lets_go_of_it(bench: Bench) -> None:
    counter, other = add_static_counter(bench), add_static_counter(bench)
    await counter.aclose()
    assert counter.is_closed
    assert not other.is_closed
    assert bench.driver.receive() == []
    with pytest.raises(CounterClosedError):
        counter.value = 1


def test_a_static_counter_is_closed_with_its_client(rig: Rig) -> None:
    counter = add_static_counter(rig)
    rig.conductor.close(CloseReason.DRIVER_SHUTDOWN, "gone")
    assert counter.is_closed


def test_an_abandoned_static_counter_leaves_nothing(rig: Rig) -> None:
    registration = rig.conductor.add_static_counter(1001, b"", "", 1)
    command = rig.command(commands.AddStaticCounter)
    rig.conductor.abandon(registration)
    rig.answer(responses.StaticCounter(command.correlation_id, rig.driver.allocate_counter(1001).id))
    assert rig.driver.receive() == []


@pytest.mark.anyio
async def test_adding_a_static_counter_waits_for_the_answer_although_it_is_cancelled(
    client: aeron_async.Client, bench: Bench
) -> None:
    is_over = False

    async def add() -> None:
        nonlocal is_over
        try:
            await client.add_static_counter(1001, b"key", "label", 99)
        finally:
            is_over = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(add)
        command = await bench.next_command(commands.AddStaticCounter)
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.02)
            assert not is_over
            bench.answer(responses.StaticCounter(command.correlation_id, bench.driver.allocate_counter(1001).id))
    assert is_over


@pytest.mark.anyio
async def test_what_a_static_counter_cannot_have_is_refused(client: aeron_async.Client, bench: Bench) -> None:
    for arguments in ((1 << 31, b"", "", 1), (1, bytes(113), "", 1), (1, b"", "x" * 381, 1), (1, b"", "", 1 << 63)):
        with pytest.raises(ValueError, match=r"longer than|does not fit"):
            await client.add_static_counter(*arguments)
    assert bench.driver.receive() == []


# --- session ids and the driver's end --------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_the_next_session_id_is_the_drivers(client: aeron_async.Client, bench: Bench) -> None:
    ids: list[int] = []

    async def ask() -> None:
        ids.append(await client.next_session_id(-7))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        command = await bench.next_command(commands.GetNextAvailableSessionId)
        assert command.stream_id == -7
        bench.answer(responses.NextAvailableSessionId(command.correlation_id, -12345))
    assert ids == [-12345]
    with pytest.raises(ValueError, match="stream_id"):
        await client.next_session_id(1 << 31)


def test_another_answer_than_a_session_id_is_no_session_id(rig: Rig) -> None:
    registration = rig.conductor.next_session_id(1)
    command = rig.command(commands.GetNextAvailableSessionId)
    rig.answer(responses.OperationSucceeded(command.correlation_id))
    with pytest.raises(CorruptFileError):
        registration.result()


@pytest.mark.anyio
async def test_the_driver_is_asked_to_stop_with_a_token(client: aeron_async.Client, bench: Bench) -> None:
    await client.terminate_driver(b"please")
    assert bench.command(commands.TerminateDriver).token == b"please"
    await client.terminate_driver()
    assert bench.command(commands.TerminateDriver).token == b""
    with pytest.raises(ValueError, match="too long"):
        await client.terminate_driver(bytes(1 << 20))
    bench.conductor.driver_exited()
    with pytest.raises(ClientClosedError):
        await client.terminate_driver()

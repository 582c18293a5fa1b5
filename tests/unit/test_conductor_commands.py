"""Commands and their answers: what goes to the driver, and what comes of each response."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from aeron_async.conductor import ImageHandlers, Registration
from aeron_async.counters import Counter
from aeron_async.errors import (
    CorruptFileError,
    DriverNotRunningError,
    InsufficientStorageError,
    RegistrationError,
)
from aeron_async.protocol import commands, responses
from aeron_async.protocol.counter_types import CounterType
from aeron_async.protocol.error_codes import ErrorCode
from aeron_async.publication import ExclusivePublication, Publication
from aeron_async.subscription import Subscription
from tests.fakes import FakeDriver
from tests.unit.rig import IPC, STREAM_ID, Rig, mapping_count

NO_HANDLERS = ImageHandlers()

ADD: dict[str, Callable[[Rig], Registration]] = {
    "publication": lambda rig: rig.conductor.add_publication(IPC, STREAM_ID),
    "exclusive": lambda rig: rig.conductor.add_exclusive_publication(IPC, STREAM_ID),
    "subscription": lambda rig: rig.conductor.add_subscription(IPC, STREAM_ID, NO_HANDLERS),
    "counter": lambda rig: rig.conductor.add_counter(1001, b"key", "label"),
}

REMOVAL: dict[str, type[commands.Command]] = {
    "publication": commands.RemovePublication,
    "exclusive": commands.RemovePublication,
    "subscription": commands.RemoveSubscription,
    "counter": commands.RemoveCounter,
}


def ready(rig: Rig, kind: str, command: commands.Command) -> responses.Response:
    """The driver's consent to the command that adds a resource of this kind."""
    match kind:
        case "publication":
            limit = rig.driver.allocate_counter(CounterType.PUBLISHER_LIMIT)
            return rig.publication_ready(command, rig.driver.create_log(), limit)
        case "exclusive":
            limit = rig.driver.allocate_counter(CounterType.PUBLISHER_LIMIT)
            return rig.publication_ready(
                command, rig.driver.create_log(), limit, kind=responses.ExclusivePublicationReady
            )
        case "subscription":
            return responses.SubscriptionReady(command.correlation_id, -1)
    return responses.CounterReady(command.correlation_id, rig.driver.allocate_counter(1001).id)


each_kind = pytest.mark.parametrize("kind", ADD)


def test_adding_a_publication_names_channel_and_stream(rig: Rig) -> None:
    registration = rig.conductor.add_publication("aeron:udp?endpoint=localhost:40123|alias=é", -7)
    assert rig.driver.receive() == [
        commands.AddPublication(
            rig.conductor.client_id, registration.correlation_id, -7, "aeron:udp?endpoint=localhost:40123|alias=é"
        )
    ]


def test_adding_an_exclusive_publication_names_channel_and_stream(rig: Rig) -> None:
    registration = rig.conductor.add_exclusive_publication(IPC, 7)
    assert rig.driver.receive() == [
        commands.AddExclusivePublication(rig.conductor.client_id, registration.correlation_id, 7, IPC)
    ]


def test_adding_a_subscription_names_channel_and_stream(rig: Rig) -> None:
    registration = rig.conductor.add_subscription(IPC, 7, NO_HANDLERS)
    assert rig.driver.receive() == [
        commands.AddSubscription(rig.conductor.client_id, registration.correlation_id, -1, 7, IPC)
    ]


def test_adding_a_counter_names_type_key_and_label(rig: Rig) -> None:
    registration = rig.conductor.add_counter(1001, b"\x01key", "a label")
    assert rig.driver.receive() == [
        commands.AddCounter(rig.conductor.client_id, registration.correlation_id, 1001, b"\x01key", "a label")
    ]


@each_kind
def test_a_command_is_pending_until_its_answer(rig: Rig, kind: str) -> None:
    registration = ADD[kind](rig)
    (command,) = rig.driver.receive()
    done: list[bool] = []
    registration.on_done = lambda: done.append(True)
    rig.work()
    assert not registration.is_done
    rig.answer(ready(rig, kind, command))
    assert registration.is_done
    assert done == [True]
    assert registration.result().registration_id == command.correlation_id


def test_a_publication_has_what_the_driver_says(rig: Rig) -> None:
    registration = rig.conductor.add_publication("aeron:ipc?alias=mine", 11)
    command = rig.command(commands.AddPublication)
    log = rig.driver.create_log(session_id=-9, stream_id=11, initial_term_id=-5, mtu_length=4096, term_length=1 << 17)
    limit = rig.driver.allocate_counter(CounterType.PUBLISHER_LIMIT, value=640)
    status = rig.driver.allocate_counter(CounterType.SEND_CHANNEL_STATUS, value=1)
    rig.answer(
        responses.PublicationReady(
            correlation_id=command.correlation_id,
            registration_id=77,
            session_id=-9,
            stream_id=11,
            position_limit_counter_id=limit.id,
            channel_status_indicator_id=status.id,
            log_file_name=log.path,
        )
    )
    publication: Publication = registration.result()
    assert type(publication) is Publication
    assert not publication.is_exclusive
    assert publication.channel == "aeron:ipc?alias=mine"
    assert (publication.stream_id, publication.session_id, publication.initial_term_id) == (11, -9, -5)
    assert publication.registration_id == command.correlation_id
    assert publication.original_registration_id == 77
    assert publication.term_buffer_length == 1 << 17
    assert publication.max_payload_length == 4096 - 32
    assert publication.max_message_length == 1 << 14
    assert publication.position_limit == 640
    assert publication.channel_status == 1


def test_an_exclusive_publication_is_one(rig: Rig) -> None:
    stream = rig.add_exclusive_publication()
    assert type(stream.publication) is ExclusivePublication
    assert stream.publication.is_exclusive


def test_a_subscription_starts_without_images(rig: Rig) -> None:
    status = rig.driver.allocate_counter(CounterType.RECEIVE_CHANNEL_STATUS, value=-1)
    subscription = rig.add_subscription(status_id=status.id)
    assert type(subscription) is Subscription
    assert (subscription.channel, subscription.stream_id) == (IPC, STREAM_ID)
    assert subscription.images == ()
    assert subscription.channel_status == -1


def test_a_counter_is_the_one_that_the_driver_allocated(rig: Rig) -> None:
    counter, fake = rig.add_counter(label="requests", value=41)
    assert type(counter) is Counter
    assert (counter.id, counter.label) == (fake.id, "requests")
    assert counter.increment() == 42
    assert fake.value == 42


@each_kind
def test_answers_to_other_clients_are_passed_over(rig: Rig, kind: str) -> None:
    registration = ADD[kind](rig)
    (command,) = rig.driver.receive()
    for other_kind in ADD:
        other = commands.Command(999, command.correlation_id + 100)
        rig.driver.send(ready(rig, other_kind, other))
    rig.driver.send(responses.OperationSucceeded(command.correlation_id + 101))
    rig.driver.send(responses.ErrorResponse(command.correlation_id + 102, ErrorCode.GENERIC_ERROR, "not yours"))
    rig.work()
    assert not registration.is_done
    rig.answer(ready(rig, kind, command))
    assert registration.is_done
    assert rig.surroundings.errors == []


def test_unknown_responses_are_passed_over(rig: Rig) -> None:
    registration = ADD["counter"](rig)
    (command,) = rig.driver.receive()
    rig.driver.transmit(0x0FFF, bytes(64))
    rig.driver.transmit(0x01, b"")
    rig.answer(ready(rig, "counter", command))
    assert registration.is_done
    assert rig.surroundings.errors == []


def test_an_answer_of_another_kind_than_the_command_asks_for_is_reported_and_fails_it(rig: Rig) -> None:
    registration = ADD["publication"](rig)
    (command,) = rig.driver.receive()
    rig.answer(responses.OperationSucceeded(command.correlation_id))
    with pytest.raises(CorruptFileError, match="OperationSucceeded"):
        registration.result()
    assert not rig.conductor.is_closed


@each_kind
def test_a_refusal_carries_code_and_text(rig: Rig, kind: str) -> None:
    registration = ADD[kind](rig)
    (command,) = rig.driver.receive()
    rig.answer(responses.ErrorResponse(command.correlation_id, ErrorCode.INVALID_CHANNEL, "no such thing as é"))
    with pytest.raises(RegistrationError) as raised:
        registration.result()
    assert raised.value.code == ErrorCode.INVALID_CHANNEL
    assert raised.value.message == "no such thing as é"
    assert not isinstance(raised.value, InsufficientStorageError)
    assert not rig.conductor.is_closed


def test_a_code_that_this_version_does_not_know_is_kept(rig: Rig) -> None:
    registration = ADD["publication"](rig)
    (command,) = rig.driver.receive()
    rig.answer(responses.ErrorResponse(command.correlation_id, 999, "new"))
    with pytest.raises(RegistrationError) as raised:
        registration.result()
    assert raised.value.code == 999


def test_lack_of_storage_is_an_error_of_its_own(rig: Rig) -> None:
    registration = ADD["publication"](rig)
    (command,) = rig.driver.receive()
    rig.answer(responses.ErrorResponse(command.correlation_id, ErrorCode.STORAGE_SPACE, "insufficient usable storage"))
    with pytest.raises(InsufficientStorageError, match="term_buffer_length") as raised:
        registration.result()
    assert isinstance(raised.value, RegistrationError)
    assert raised.value.code == ErrorCode.STORAGE_SPACE


def test_a_channel_error_whose_status_counter_has_the_number_of_a_command_does_not_fail_the_command(rig: Rig) -> None:
    registration = ADD["publication"](rig)
    (command,) = rig.driver.receive()
    rig.answer(
        responses.ErrorResponse(command.correlation_id, ErrorCode.CHANNEL_ENDPOINT_ERROR, "address already in use")
    )
    assert not registration.is_done


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda log: log.put_constant(3, 65537), CorruptFileError),
        (lambda log: log.put_constant(2, 33), CorruptFileError),
        (lambda log: log.put_constant(4, 0), CorruptFileError),
        (lambda log: log.put_constant(1, 24), CorruptFileError),
    ],
    ids=["term length", "MTU", "page size", "header length"],
)
def test_a_publication_whose_log_cannot_be_true_fails_and_is_removed_again(
    rig: Rig, damage: Callable[[Any], None], error: type[Exception]
) -> None:
    registration = ADD["publication"](rig)
    (command,) = rig.driver.receive()
    log = rig.driver.create_log()
    damage(log)
    rig.answer(rig.publication_ready(command, log, rig.driver.allocate_counter(CounterType.PUBLISHER_LIMIT)))
    with pytest.raises(error, match="logbuffer"):
        registration.result()
    assert rig.command(commands.RemovePublication).registration_id == command.correlation_id
    assert not rig.conductor.is_closed


def test_a_publication_whose_log_is_not_there_fails_and_is_removed_again(rig: Rig) -> None:
    registration = ADD["publication"](rig)
    (command,) = rig.driver.receive()
    answer = rig.publication_ready(
        command, rig.driver.create_log(), rig.driver.allocate_counter(CounterType.PUBLISHER_LIMIT)
    )
    rig.answer(dataclasses.replace(answer, log_file_name=f"{answer.log_file_name}.gone"))
    with pytest.raises(DriverNotRunningError, match="gone"):
        registration.result()
    assert rig.command(commands.RemovePublication).registration_id == command.correlation_id


@pytest.mark.parametrize("counter_id", [-2, 32, 2**31 - 1])
def test_a_counter_id_outside_the_counters_file_fails_the_command(rig: Rig, counter_id: int) -> None:
    registration = ADD["counter"](rig)
    (command,) = rig.driver.receive()
    rig.answer(responses.CounterReady(command.correlation_id, counter_id))
    with pytest.raises(CorruptFileError, match=str(counter_id)):
        registration.result()
    assert rig.command(commands.RemoveCounter).registration_id == command.correlation_id


def test_a_status_counter_outside_the_counters_file_fails_the_subscription(rig: Rig) -> None:
    registration = ADD["subscription"](rig)
    (command,) = rig.driver.receive()
    rig.answer(responses.SubscriptionReady(command.correlation_id, 32))
    with pytest.raises(CorruptFileError):
        registration.result()
    assert rig.command(commands.RemoveSubscription).registration_id == command.correlation_id


# --- records that cannot be true --------------------------------------------------------------------------------------


def test_a_malformed_record_is_reported_and_the_records_after_it_are_taken_in_the_same_turn(rig: Rig) -> None:
    registration = ADD["counter"](rig)
    (command,) = rig.driver.receive()
    rig.driver.transmit(responses.SubscriptionReady.TYPE_ID, b"\0\0\0")
    rig.driver.transmit(responses.ErrorResponse.TYPE_ID, bytes(12) + b"\xff\xff\xff\x7f")
    rig.answer(ready(rig, "counter", command))
    assert registration.is_done
    assert len(rig.surroundings.errors) == 2
    assert not rig.conductor.is_closed


# --- the to-driver buffer is full ------------------------------------------------------------------------------------


def fill(driver: FakeDriver, rig: Rig) -> None:
    """Fills the to-driver buffer with keepalives of somebody else."""
    keepalive = commands.ClientKeepalive(999)
    while rig.cnc.send(keepalive.TYPE_ID, keepalive.encode()):
        pass


def own_commands(rig: Rig) -> list[commands.Command]:
    return [command for command in rig.driver.receive() if command.client_id == rig.conductor.client_id]


def test_commands_wait_for_room_and_keep_their_order(driver: FakeDriver, rig: Rig) -> None:
    fill(driver, rig)
    added = [ADD[kind](rig).correlation_id for kind in ("publication", "counter", "subscription", "exclusive")]
    assert own_commands(rig) == []
    added.append(ADD["counter"](rig).correlation_id)
    assert own_commands(rig) == []
    rig.work()
    assert [command.correlation_id for command in own_commands(rig)] == added


def test_commands_that_wait_for_room_shorten_the_wait_for_the_next_turn(driver: FakeDriver, rig: Rig) -> None:
    rig.work()
    unhurried = rig.conductor.idle_time(rig.now)
    fill(driver, rig)
    ADD["counter"](rig)
    assert rig.conductor.idle_time(rig.now) < unhurried
    rig.driver.receive()
    rig.work()
    assert rig.conductor.idle_time(rig.now) == unhurried


def test_a_command_that_waited_for_room_is_answered_as_any_other(driver: FakeDriver, rig: Rig) -> None:
    fill(driver, rig)
    registration = ADD["counter"](rig)
    rig.driver.receive()
    rig.work()
    rig.answer(ready(rig, "counter", rig.command(commands.AddCounter)))
    assert registration.is_done


def test_a_command_that_is_too_long_for_the_buffer_is_refused_at_once(rig: Rig) -> None:
    with pytest.raises(ValueError, match="too long"):
        rig.conductor.add_publication("aeron:ipc?alias=" + "a" * 600, STREAM_ID)
    assert rig.driver.receive() == []
    assert rig.add_counter()[0].is_closed is False


def test_a_command_that_is_too_long_is_refused_at_once_also_where_others_wait_for_room(
    driver: FakeDriver, rig: Rig
) -> None:
    fill(driver, rig)
    waiting = ADD["counter"](rig)
    with pytest.raises(ValueError, match="too long"):
        rig.conductor.add_publication("aeron:ipc?alias=" + "a" * 600, STREAM_ID)
    rig.driver.receive()
    rig.work()
    assert [command.correlation_id for command in own_commands(rig)] == [waiting.correlation_id]


@pytest.mark.parametrize("stream_id", [1 << 31, -(1 << 31) - 1])
def test_a_value_that_does_not_fit_its_field_is_refused_at_once(rig: Rig, stream_id: int) -> None:
    with pytest.raises(ValueError, match="AddPublication"):
        rig.conductor.add_publication(IPC, stream_id)
    assert rig.driver.receive() == []


# --- removal ----------------------------------------------------------------------------------------------------------


@each_kind
def test_closing_a_resource_sends_its_removal_once_and_is_done_with_the_answer(rig: Rig, kind: str) -> None:
    added = ADD[kind](rig)
    (command,) = rig.driver.receive()
    rig.answer(ready(rig, kind, command))
    resource = added.result()

    closing = rig.conductor.close_resource(command.correlation_id)
    assert closing is not None
    assert resource.is_closed
    assert rig.conductor.close_resource(command.correlation_id) is None
    assert rig.driver.receive() == [
        REMOVAL[kind](rig.conductor.client_id, closing.correlation_id, command.correlation_id)
    ]

    assert not closing.is_done
    rig.answer(responses.OperationSucceeded(closing.correlation_id))
    assert closing.is_done
    assert closing.result() is None


def test_closing_what_the_driver_does_not_know_tells_its_refusal(rig: Rig) -> None:
    counter, _ = rig.add_counter()
    closing = rig.conductor.close_resource(counter.registration_id)
    assert closing is not None
    command = rig.command(commands.RemoveCounter)
    rig.answer(responses.ErrorResponse(command.correlation_id, ErrorCode.UNKNOWN_COUNTER, "unknown counter"))
    with pytest.raises(RegistrationError, match="unknown counter"):
        closing.result()


def test_closing_something_that_was_never_added_does_nothing(rig: Rig) -> None:
    assert rig.conductor.close_resource(4711) is None
    assert rig.driver.receive() == []


# --- commands that nobody waits for any more --------------------------------------------------------------------------


@each_kind
def test_what_an_abandoned_command_made_is_removed_when_the_late_answer_comes(rig: Rig, kind: str) -> None:
    registration = ADD[kind](rig)
    (command,) = rig.driver.receive()
    rig.conductor.abandon(registration)
    assert rig.driver.receive() == []
    rig.answer(ready(rig, kind, command))
    removal = rig.command(REMOVAL[kind])
    assert removal.registration_id == command.correlation_id  # type: ignore[attr-defined]
    assert removal.correlation_id != command.correlation_id
    rig.answer(responses.OperationSucceeded(removal.correlation_id))
    assert not registration.is_done


@each_kind
def test_what_was_made_just_before_its_command_was_abandoned_is_removed_at_once(rig: Rig, kind: str) -> None:
    registration = ADD[kind](rig)
    (command,) = rig.driver.receive()
    rig.answer(ready(rig, kind, command))
    rig.conductor.abandon(registration)
    assert rig.command(REMOVAL[kind]).registration_id == command.correlation_id  # type: ignore[attr-defined]
    assert registration.result().is_closed


@each_kind
def test_an_abandoned_command_that_is_refused_leaves_nothing_to_remove(rig: Rig, kind: str) -> None:
    registration = ADD[kind](rig)
    (command,) = rig.driver.receive()
    rig.conductor.abandon(registration)
    rig.answer(responses.ErrorResponse(command.correlation_id, ErrorCode.GENERIC_ERROR, "no"))
    assert rig.driver.receive() == []


def test_abandoning_a_command_that_was_refused_sends_nothing(rig: Rig) -> None:
    registration = ADD["publication"](rig)
    (command,) = rig.driver.receive()
    rig.answer(responses.ErrorResponse(command.correlation_id, ErrorCode.GENERIC_ERROR, "no"))
    rig.conductor.abandon(registration)
    assert rig.driver.receive() == []


def test_an_image_of_an_abandoned_subscription_is_ignored(rig: Rig) -> None:
    calls: list[Any] = []
    registration = rig.conductor.add_subscription(IPC, STREAM_ID, ImageHandlers(calls.append, calls.append))
    command = rig.command(commands.AddSubscription)
    rig.conductor.abandon(registration)
    log = rig.driver.create_log()
    position = rig.driver.allocate_counter(CounterType.SUBSCRIBER_POSITION)
    rig.answer(
        responses.SubscriptionReady(command.correlation_id, -1),
        responses.AvailableImage(1, -3, STREAM_ID, command.correlation_id, position.id, log.path, IPC),
        responses.UnavailableImage(1, command.correlation_id, STREAM_ID, IPC),
    )
    assert calls == []
    assert rig.surroundings.errors == []


def test_abandoning_a_removal_changes_nothing(rig: Rig) -> None:
    counter, _ = rig.add_counter()
    closing = rig.conductor.close_resource(counter.registration_id)
    assert closing is not None
    removal = rig.command(commands.RemoveCounter)
    rig.conductor.abandon(closing)
    rig.answer(responses.OperationSucceeded(removal.correlation_id))
    assert rig.driver.receive() == []
    assert counter.is_closed


# --- log buffers ------------------------------------------------------------------------------------------------------


def test_publications_of_one_session_share_one_mapping_until_the_last_is_gone(rig: Rig) -> None:
    log = rig.driver.create_log()
    first = rig.add_publication(log).publication
    second = rig.add_publication(log).publication
    assert mapping_count(log) == 1
    first_id, second_id = first.registration_id, second.registration_id
    first.offer(b"one")
    second.offer(b"two")
    assert log.messages() == [b"one", b"two"]

    rig.conductor.close_resource(first_id)
    del first
    rig.pass_time(rig.settings.resource_linger)
    assert mapping_count(log) == 1
    assert second.offer(b"three") > 0

    rig.conductor.close_resource(second_id)
    del second
    rig.pass_time(rig.settings.resource_linger)
    assert mapping_count(log) == 0


def test_the_mapping_of_a_closed_publication_lingers(rig: Rig) -> None:
    log = rig.driver.create_log()
    publication = rig.add_publication(log).publication
    rig.conductor.close_resource(publication.registration_id)
    del publication
    rig.pass_time(rig.settings.resource_linger / 2)
    assert mapping_count(log) == 1
    rig.pass_time(rig.settings.resource_linger / 2)
    assert mapping_count(log) == 0


def test_a_closed_publication_that_is_still_held_keeps_its_mapping(rig: Rig) -> None:
    publication, log, _ = rig.add_publication()
    publication.offer(b"message")
    position = publication.position
    rig.conductor.close_resource(publication.registration_id)
    rig.pass_time(10 * rig.settings.resource_linger)
    assert mapping_count(log) == 1
    assert publication.position == position

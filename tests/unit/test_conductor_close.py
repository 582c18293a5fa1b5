"""Closing a client: what is closed, in what order, and what is told to whom."""

from __future__ import annotations

import pytest

from aeron_async.conductor import ImageHandlers
from aeron_async.errors import (
    ClientClosedError,
    ClientTimeoutError,
    CloseReason,
    DriverShutdownError,
    DriverTimeoutError,
    LappedError,
    ServiceTimeoutError,
)
from aeron_async.protocol import commands, responses
from aeron_async.publication import OfferResult
from tests.unit.rig import IPC, STREAM_ID, Rig

each_reason = pytest.mark.parametrize("reason", CloseReason)

ERRORS = {
    CloseReason.USER: ClientClosedError,
    CloseReason.DRIVER_SHUTDOWN: DriverShutdownError,
    CloseReason.DRIVER_TIMEOUT: DriverTimeoutError,
    CloseReason.CLIENT_TIMEOUT: ClientTimeoutError,
    CloseReason.SERVICE_TIMEOUT: ServiceTimeoutError,
    CloseReason.LAPPED: LappedError,
}


@each_reason
def test_everything_is_closed(rig: Rig, reason: CloseReason) -> None:
    publication = rig.add_publication().publication
    exclusive = rig.add_exclusive_publication().publication
    subscription = rig.add_subscription()
    image = rig.add_image(subscription).image
    counter, _ = rig.add_counter()
    rig.conductor.close(reason, "why")
    assert rig.conductor.is_closed
    assert rig.conductor.close_reason is reason
    assert publication.is_closed
    assert exclusive.is_closed
    assert subscription.is_closed
    assert image.is_closed
    assert counter.is_closed
    assert publication.offer(b"late") == OfferResult.CLOSED
    assert len(subscription.poll_batch()) == 0


@each_reason
def test_pending_commands_fail_with_the_reason(rig: Rig, reason: CloseReason) -> None:
    registrations = [
        rig.conductor.add_publication(IPC, STREAM_ID),
        rig.conductor.add_exclusive_publication(IPC, STREAM_ID),
        rig.conductor.add_subscription(IPC, STREAM_ID, ImageHandlers()),
        rig.conductor.add_counter(1001, b"", ""),
    ]
    rig.conductor.close(reason, "why it was")
    for registration in registrations:
        with pytest.raises(ClientClosedError, match="why it was") as raised:
            registration.result()
        assert type(raised.value) is ERRORS[reason]
        assert raised.value.reason is reason


@each_reason
def test_new_commands_are_refused_with_the_reason(rig: Rig, reason: CloseReason) -> None:
    rig.conductor.close(reason, "why it was")
    rig.driver.receive()
    with pytest.raises(ERRORS[reason], match="why it was"):
        rig.conductor.add_publication(IPC, STREAM_ID)
    with pytest.raises(ERRORS[reason], match="why it was"):
        rig.conductor.check_open()
    assert rig.driver.receive() == []


def test_a_removal_under_way_is_done_when_the_client_closes(rig: Rig) -> None:
    counter, _ = rig.add_counter()
    closing = rig.conductor.close_resource(counter.registration_id)
    assert closing is not None
    rig.conductor.close(CloseReason.DRIVER_TIMEOUT, "why")
    assert closing.is_done
    assert closing.result() is None


def test_the_driver_is_told_when_the_user_closes(rig: Rig) -> None:
    rig.conductor.close(CloseReason.USER, "done")
    assert rig.driver.receive() == [commands.ClientClose(rig.conductor.client_id)]


@pytest.mark.parametrize("reason", [reason for reason in CloseReason if reason is not CloseReason.USER])
def test_the_driver_is_told_nothing_when_it_is_the_cause(rig: Rig, reason: CloseReason) -> None:
    rig.conductor.close(reason, "why")
    assert rig.driver.receive() == []


def test_unavailable_handlers_come_first_then_pending_commands_then_the_end_once(rig: Rig) -> None:
    order: list[str] = []
    subscription = rig.add_subscription(on_unavailable=lambda image: order.append(f"image {image.correlation_id}"))
    rig.add_image(subscription, correlation_id=1)
    rig.add_image(subscription, correlation_id=2)
    pending = rig.conductor.add_counter(1001, b"", "")
    pending.on_done = lambda: order.append("pending command")
    rig.surroundings.on_closed = lambda: order.append("closed")
    rig.conductor.close(CloseReason.LAPPED, "why")
    assert order == ["image 1", "image 2", "pending command", "closed"]


def test_the_first_reason_stays(rig: Rig) -> None:
    rig.conductor.close(CloseReason.DRIVER_TIMEOUT, "first")
    rig.conductor.close(CloseReason.USER, "second")
    rig.conductor.driver_exited()
    assert rig.conductor.close_reason is CloseReason.DRIVER_TIMEOUT
    assert rig.conductor.close_detail == "first"
    assert rig.surroundings.closed_with == [CloseReason.DRIVER_TIMEOUT]
    assert rig.driver.receive() == []


def test_a_closed_client_takes_no_more_responses(rig: Rig) -> None:
    registration = rig.conductor.add_counter(1001, b"", "")
    rig.conductor.close(CloseReason.USER, "done")
    rig.driver.receive()
    counter = rig.driver.allocate_counter(1001)
    rig.answer(responses.CounterReady(registration.correlation_id, counter.id))
    assert rig.driver.receive() == []
    with pytest.raises(ClientClosedError):
        registration.result()


def test_a_verdict_in_the_middle_of_responses_ends_the_turn(rig: Rig) -> None:
    registration = rig.conductor.add_counter(1001, b"", "")
    counter = rig.driver.allocate_counter(1001)
    rig.answer(
        responses.ClientTimeout(rig.conductor.client_id),
        responses.CounterReady(registration.correlation_id, counter.id),
    )
    with pytest.raises(ClientTimeoutError):
        registration.result()


def test_a_closed_client_beats_no_more(rig: Rig) -> None:
    counter = rig.allocate_heartbeat_counter()
    rig.pass_time(rig.settings.keepalive_interval)
    rig.conductor.close(CloseReason.USER, "done")
    beaten = counter.value
    rig.pass_time(10 * rig.settings.keepalive_interval)
    assert counter.value == beaten


def test_closing_a_resource_of_a_closed_client_does_nothing(rig: Rig) -> None:
    counter, _ = rig.add_counter()
    rig.conductor.close(CloseReason.CLIENT_TIMEOUT, "why")
    assert rig.conductor.close_resource(counter.registration_id) is None
    assert rig.driver.receive() == []


def test_what_a_closed_client_had_stays_safe_to_use(rig: Rig) -> None:
    publication = rig.add_publication().publication
    publication.offer(b"message")
    position = publication.position
    subscription = rig.add_subscription()
    image, log, _ = rig.add_image(subscription)
    log.append(b"unread")
    rig.conductor.close(CloseReason.DRIVER_SHUTDOWN, "why")
    del rig
    assert publication.position == position
    assert publication.offer(b"late") == OfferResult.CLOSED
    assert not publication.is_connected
    assert image.position == 0
    assert subscription.poll(lambda payload, header: None) == 0
    assert image.poll(lambda payload, header: None) == 0
    assert image.position == 0


def test_a_forked_child_closes_the_handles_and_touches_nothing_shared(rig: Rig) -> None:
    publication = rig.add_publication().publication
    subscription = rig.add_subscription()
    rig.conductor.close_handles()
    assert publication.is_closed
    assert subscription.is_closed
    assert rig.driver.receive() == []
    assert rig.surroundings.closed_with == []

"""Images come and go as the driver says, and handlers hear of it."""

from __future__ import annotations

from typing import Any

import pytest

from aeron_async.conductor import ImageHandlers
from aeron_async.errors import CorruptFileError, DriverNotRunningError
from aeron_async.protocol import responses
from aeron_async.protocol.counter_types import CounterType
from aeron_async.subscription import Image, Subscription
from tests.unit.rig import IPC, STREAM_ID, Rig, mapping_count


class Heard:
    """What a subscription's handlers heard, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int]] = []

    def on_available(self, image: Image) -> None:
        self.events.append(("available", image.correlation_id))

    def on_unavailable(self, image: Image) -> None:
        self.events.append(("unavailable", image.correlation_id))


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def subscription(rig: Rig, heard: Heard) -> Subscription:
    return rig.add_subscription(on_available=heard.on_available, on_unavailable=heard.on_unavailable)


def test_an_image_has_what_the_driver_says(rig: Rig, subscription: Subscription) -> None:
    log = rig.driver.create_log(session_id=-9, initial_term_id=-5, mtu_length=4096, term_length=1 << 17, position=640)
    position = rig.driver.allocate_counter(CounterType.SUBSCRIBER_POSITION, value=640)
    rig.answer(
        responses.AvailableImage(
            44, -9, STREAM_ID, subscription.registration_id, position.id, log.path, "192.168.0.1:40123"
        )
    )
    (image,) = subscription.images
    assert (image.correlation_id, image.session_id, image.initial_term_id) == (44, -9, -5)
    assert image.subscription_registration_id == subscription.registration_id
    assert image.source_identity == "192.168.0.1:40123"
    assert (image.term_buffer_length, image.mtu_length) == (1 << 17, 4096)
    assert (image.join_position, image.position) == (640, 640)
    assert not image.is_closed
    assert subscription.is_connected
    assert subscription.image_count == 1
    assert subscription.image_by_session_id(-9) is image
    assert subscription.image_by_session_id(9) is None


def test_handlers_hear_of_images_that_come_and_go(rig: Rig, subscription: Subscription, heard: Heard) -> None:
    first = rig.add_image(subscription, correlation_id=1).image
    second = rig.add_image(subscription, correlation_id=2).image
    rig.remove_image(first)
    assert heard.events == [("available", 1), ("available", 2), ("unavailable", 1)]
    assert subscription.images == (second,)
    assert first.is_closed
    assert not second.is_closed


def test_a_handler_finds_the_image_among_those_of_the_subscription_when_it_is_there(rig: Rig) -> None:
    found: list[Any] = []
    subscription = rig.add_subscription(
        on_available=lambda image: found.append(image in subscription.images),
        on_unavailable=lambda image: found.append(image in subscription.images),
    )
    rig.remove_image(rig.add_image(subscription).image)
    assert found == [True, False]


def test_handlers_of_one_subscription_have_one_order_and_those_of_another_have_another(rig: Rig) -> None:
    first = rig.add_subscription(on_available=lambda _: None, on_unavailable=lambda _: None)
    second = rig.add_subscription(on_available=lambda _: None)
    rig.remove_image(rig.add_image(first, correlation_id=1).image)
    rig.add_image(second, correlation_id=2)
    orders = [order for _, _, order in rig.surroundings.calls]
    assert orders == [first.registration_id, first.registration_id, second.registration_id]


def test_an_image_that_comes_in_the_same_turn_as_its_subscription_is_its_own(rig: Rig) -> None:
    heard: list[Image] = []
    registration = rig.conductor.add_subscription(IPC, STREAM_ID, ImageHandlers(heard.append, None))
    (command,) = rig.driver.receive()
    log = rig.driver.create_log()
    position = rig.driver.allocate_counter(CounterType.SUBSCRIBER_POSITION)
    rig.answer(
        responses.SubscriptionReady(command.correlation_id, -1),
        responses.AvailableImage(1, -3, STREAM_ID, command.correlation_id, position.id, log.path, IPC),
    )
    assert list(registration.result().images) == heard
    assert len(heard) == 1


def test_images_of_other_clients_subscriptions_are_ignored(rig: Rig, subscription: Subscription, heard: Heard) -> None:
    log = rig.driver.create_log()
    position = rig.driver.allocate_counter(CounterType.SUBSCRIBER_POSITION)
    rig.answer(
        responses.AvailableImage(
            1, -3, STREAM_ID, subscription.registration_id + 100, position.id, f"{log.path}.elsewhere", IPC
        ),
        responses.UnavailableImage(1, subscription.registration_id + 100, STREAM_ID, IPC),
    )
    assert heard.events == []
    assert subscription.images == ()
    assert rig.surroundings.errors == []


def test_an_image_for_what_is_no_subscription_is_ignored(rig: Rig) -> None:
    publication, log, _ = rig.add_publication()
    position = rig.driver.allocate_counter(CounterType.SUBSCRIBER_POSITION)
    rig.answer(
        responses.AvailableImage(1, -3, STREAM_ID, publication.registration_id, position.id, log.path, IPC),
        responses.UnavailableImage(1, publication.registration_id, STREAM_ID, IPC),
    )
    assert rig.surroundings.errors == []
    assert not publication.is_closed


def test_an_image_that_is_there_already_does_not_come_twice(rig: Rig, subscription: Subscription, heard: Heard) -> None:
    _, log, position = rig.add_image(subscription, correlation_id=1)
    rig.answer(rig.available_image(subscription, log, position, correlation_id=1))
    assert heard.events == [("available", 1)]
    assert subscription.image_count == 1


def test_an_image_does_not_leave_twice(rig: Rig, subscription: Subscription, heard: Heard) -> None:
    image = rig.add_image(subscription, correlation_id=1).image
    rig.remove_image(image)
    rig.remove_image(image)
    assert heard.events == [("available", 1), ("unavailable", 1)]


def test_an_image_that_has_left_may_come_again(rig: Rig, subscription: Subscription, heard: Heard) -> None:
    image, log, _ = rig.add_image(subscription, correlation_id=1)
    rig.remove_image(image)
    again = rig.add_image(subscription, log, correlation_id=1).image
    assert again is not image
    assert image.is_closed
    assert not again.is_closed
    assert heard.events == [("available", 1), ("unavailable", 1), ("available", 1)]


def test_an_unknown_image_does_not_leave(rig: Rig, subscription: Subscription, heard: Heard) -> None:
    rig.answer(responses.UnavailableImage(99, subscription.registration_id, STREAM_ID, IPC))
    assert heard.events == []
    assert rig.surroundings.errors == []


def test_an_image_whose_log_cannot_be_read_is_reported_and_the_client_lives(
    rig: Rig, subscription: Subscription, heard: Heard
) -> None:
    log = rig.driver.create_log()
    log.put_constant(3, 65537)
    position = rig.driver.allocate_counter(CounterType.SUBSCRIBER_POSITION)
    rig.answer(rig.available_image(subscription, log, position))
    (error,) = rig.surroundings.errors
    assert isinstance(error, CorruptFileError)
    assert heard.events == []
    assert subscription.images == ()
    assert not rig.conductor.is_closed


def test_an_image_whose_log_is_gone_is_reported_and_the_client_lives(rig: Rig, subscription: Subscription) -> None:
    position = rig.driver.allocate_counter(CounterType.SUBSCRIBER_POSITION)
    rig.answer(
        responses.AvailableImage(
            1, -3, STREAM_ID, subscription.registration_id, position.id, f"{rig.driver.aeron_dir}/gone.logbuffer", IPC
        )
    )
    (error,) = rig.surroundings.errors
    assert isinstance(error, DriverNotRunningError)
    assert not rig.conductor.is_closed


@pytest.mark.parametrize("position_id", [-1, 32, 2**31 - 1])
def test_an_image_whose_position_counter_is_outside_the_counters_file_is_reported(
    rig: Rig, subscription: Subscription, position_id: int
) -> None:
    log = rig.driver.create_log()
    rig.answer(responses.AvailableImage(1, -3, STREAM_ID, subscription.registration_id, position_id, log.path, IPC))
    (error,) = rig.surroundings.errors
    assert isinstance(error, CorruptFileError)
    assert str(position_id) in str(error)


def test_an_image_whose_log_could_not_be_read_leaves_without_a_word(
    rig: Rig, subscription: Subscription, heard: Heard
) -> None:
    log = rig.driver.create_log()
    log.put_constant(3, 65537)
    position = rig.driver.allocate_counter(CounterType.SUBSCRIBER_POSITION)
    rig.answer(
        rig.available_image(subscription, log, position, correlation_id=1),
        responses.UnavailableImage(1, subscription.registration_id, STREAM_ID, IPC),
    )
    assert heard.events == []


def test_closing_a_subscription_closes_its_images_and_tells_the_handlers(
    rig: Rig, subscription: Subscription, heard: Heard
) -> None:
    first = rig.add_image(subscription, correlation_id=1).image
    second = rig.add_image(subscription, correlation_id=2).image
    heard.events.clear()
    rig.conductor.close_resource(subscription.registration_id)
    assert heard.events == [("unavailable", 1), ("unavailable", 2)]
    assert first.is_closed
    assert second.is_closed
    assert subscription.is_closed
    assert subscription.images == ()


def test_images_of_a_closed_subscription_are_ignored(rig: Rig, subscription: Subscription, heard: Heard) -> None:
    image, log, position = rig.add_image(subscription, correlation_id=1)
    rig.conductor.close_resource(subscription.registration_id)
    heard.events.clear()
    rig.answer(rig.available_image(subscription, log, position, correlation_id=2))
    rig.remove_image(image)
    assert heard.events == []
    assert rig.surroundings.errors == []


def test_a_log_is_mapped_once_for_a_publication_and_the_image_of_it(rig: Rig, subscription: Subscription) -> None:
    publication, log, _ = rig.add_publication()
    image = rig.add_image(subscription, log).image
    assert mapping_count(log) == 1
    publication.offer(b"message")
    assert list(subscription.poll_batch()) == [b"message"]
    assert image.position == publication.position


def test_the_mapping_of_an_image_that_left_lingers(rig: Rig) -> None:
    image, log, _ = rig.add_image(rig.add_subscription())
    rig.remove_image(image)
    del image
    rig.pass_time(rig.settings.resource_linger / 2)
    assert mapping_count(log) == 1
    rig.pass_time(rig.settings.resource_linger / 2)
    assert mapping_count(log) == 0

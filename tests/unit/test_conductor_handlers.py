"""What the conductor tells of counters of all clients, and of receivers that reject a publication."""

from __future__ import annotations

from typing import Any

import pytest

from aeron_async.conductor import ClientHandlers
from aeron_async.counters import CounterInfo
from aeron_async.protocol import responses
from aeron_async.protocol.error_codes import ErrorCode
from aeron_async.publication_error import PublicationError
from tests.fakes import FakeDriver
from tests.unit.rig import Rig


class Heard:
    """What the handlers were told."""

    def __init__(self) -> None:
        self.available: list[CounterInfo] = []
        self.unavailable: list[CounterInfo] = []
        self.errors: list[PublicationError] = []

    @property
    def handlers(self) -> ClientHandlers:
        return ClientHandlers(self.available.append, self.unavailable.append, self.errors.append)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def rig(driver: FakeDriver, heard: Heard) -> Rig:
    return Rig(driver, handlers=heard.handlers)


def rejection(registration_id: int, **values: Any) -> responses.PublicationError:
    fields: dict[str, Any] = {
        "registration_id": registration_id,
        "destination_registration_id": -1,
        "session_id": 5,
        "stream_id": 10,
        "receiver_id": 77,
        "group_tag": -1,
        "address_type": 1,
        "source_port": 4321,
        "address": bytes([127, 0, 0, 1]).ljust(16, b"\0"),
        "error_code": ErrorCode.IMAGE_REJECTED,
        "error_message": "not wanted",
    }
    return responses.PublicationError(**(fields | values))


def test_counters_of_all_clients_are_told_as_they_come_and_go(rig: Rig, heard: Heard) -> None:
    counter = rig.driver.allocate_counter(1001, key=b"key", label="theirs", registration_id=7, owner_id=3, value=42)
    rig.answer(responses.CounterReady(7, counter.id))
    (info,) = heard.available
    assert (info.id, info.type_id, info.label, info.value, info.registration_id, info.owner_id, info.state) == (
        counter.id,
        1001,
        "theirs",
        42,
        7,
        3,
        1,
    )
    assert info.key.rstrip(b"\0") == b"key"
    rig.answer(responses.UnavailableCounter(7, counter.id))
    (gone,) = heard.unavailable
    assert gone == info._replace(state=-1)


def test_a_counter_of_ones_own_is_there_when_the_handler_hears_of_it(rig: Rig, heard: Heard) -> None:
    counter, _ = rig.add_counter(label="ours")
    assert [info.id for info in heard.available] == [counter.id]


def test_static_counters_are_not_told(rig: Rig, heard: Heard) -> None:
    rig.answer(responses.StaticCounter(7, 3))
    assert heard.available == []


@pytest.mark.parametrize("counter_id", [3, -1, 1 << 20])
def test_a_counter_whose_record_is_anothers_by_now_has_only_its_ids(rig: Rig, heard: Heard, counter_id: int) -> None:
    while rig.driver.allocate_counter(1001, label="another", registration_id=8).id < 3:
        pass
    rig.answer(responses.UnavailableCounter(7, counter_id))
    (info,) = heard.unavailable
    assert (info.id, info.registration_id, info.type_id, info.label, info.state) == (counter_id, 7, -1, "", -1)


def test_a_rejection_is_told_of_this_clients_publications_only(rig: Rig, heard: Heard) -> None:
    publication = rig.add_publication().publication
    rig.add_publication()
    rig.answer(rejection(publication.original_registration_id), rejection(4711))
    assert heard.errors == [
        PublicationError(
            registration_id=publication.registration_id,
            session_id=5,
            stream_id=10,
            code=ErrorCode.IMAGE_REJECTED,
            message="not wanted",
            source_address="127.0.0.1:4321",
            receiver_id=77,
            group_tag=None,
            destination_registration_id=None,
        )
    ]


def test_a_rejection_tells_group_and_destination_where_there_are_any(rig: Rig, heard: Heard) -> None:
    publication = rig.add_exclusive_publication().publication
    rig.answer(rejection(publication.registration_id, destination_registration_id=12, group_tag=13, source_port=0))
    (error,) = heard.errors
    assert (error.destination_registration_id, error.group_tag, error.source_address) == (12, 13, None)


def test_after_its_publication_is_closed_no_rejection_is_told(rig: Rig, heard: Heard) -> None:
    publication = rig.add_publication().publication
    rig.conductor.close_resource(publication.registration_id)
    rig.answer(rejection(publication.registration_id))
    assert heard.errors == []


def test_without_handlers_nothing_is_told(driver: FakeDriver) -> None:
    rig = Rig(driver)
    publication = rig.add_publication().publication
    rig.answer(rejection(publication.registration_id), responses.CounterReady(7, 1), responses.UnavailableCounter(7, 1))
    assert rig.surroundings.calls == []
    assert rig.surroundings.errors == []

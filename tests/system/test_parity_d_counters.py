"""Counters, session ids and the driver's end on a real driver; rows D2 and D3 of the parity table."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

import aeron_async
from aeron_async import Client, CloseReason, Counter, CounterInfo, RegistrationError
from aeron_async.protocol.counter_types import CounterType
from tests.support import LIMIT, eventually, open_pair, quick_config

pytestmark = pytest.mark.anyio

TYPE_ID = 2001


@pytest.fixture
async def other(aeron_dir: Path) -> AsyncIterator[Client]:
    """Another client of the same driver."""
    async with aeron_async.connect(aeron_dir) as other:
        yield other


def counters_of(client: Client, registration_id: int) -> list[CounterInfo]:
    return client.counters.find(type_id=TYPE_ID, registration_id=registration_id)


async def test_d2_own_counters_are_added_changed_and_read_by_others(client: Client, other: Client) -> None:
    async with await client.add_counter(TYPE_ID, b"a key", "a label") as counter:
        counter.value = 40
        assert counter.increment() == 41
        assert counter.get_and_set(5) == 41
        assert not counter.compare_and_set(6, 7)
        assert counter.compare_and_set(5, 7)
        (info,) = counters_of(other, counter.registration_id)
        assert (info.id, info.label, info.value, info.owner_id) == (counter.id, "a label", 7, client.client_id)
        assert info.key.rstrip(b"\0") == b"a key"
    await eventually(lambda: counters_of(other, counter.registration_id) == [])


async def test_d2_static_counters_are_found_again_and_outlive_their_clients(
    client: Client, aeron_dir: Path, stream_id: int
) -> None:
    async with aeron_async.connect(aeron_dir) as first:
        counter = await first.add_static_counter(TYPE_ID, b"a key", "a label", stream_id)
        counter.value = 3
        again = await client.add_static_counter(TYPE_ID, b"another key", "another label", stream_id)
        assert (again.id, again.value, again.registration_id) == (counter.id, 3, stream_id)
    assert counter.is_closed
    (info,) = counters_of(client, stream_id)
    assert (info.label, info.value) == ("a label", 3)
    assert again.increment() == 4
    await again.aclose()
    assert [info.value for info in counters_of(client, stream_id)] == [4]


async def test_d2_a_static_counter_with_the_ids_of_another_kind_is_refused(client: Client) -> None:
    counter = await client.add_counter(TYPE_ID, b"", "not static")
    with pytest.raises(RegistrationError, match="non-static"):
        await client.add_static_counter(TYPE_ID, b"", "static", counter.registration_id)


@pytest.mark.parametrize("is_async", [False, True])
async def test_d2_counters_are_told_as_they_come_and_go(aeron_dir: Path, other: Client, is_async: bool) -> None:
    heard: list[tuple[str, CounterInfo]] = []

    def available(info: CounterInfo) -> None:
        heard.append(("available", info))

    async def available_later(info: CounterInfo) -> None:
        await anyio.lowlevel.checkpoint()
        heard.append(("available", info))

    async with aeron_async.connect(
        aeron_dir,
        on_available_counter=available_later if is_async else available,
        on_unavailable_counter=lambda info: heard.append(("unavailable", info)),
    ) as client:
        counters: list[Counter] = [
            await client.add_counter(TYPE_ID, b"mine", "mine"),
            await other.add_counter(TYPE_ID, b"theirs", "theirs"),
        ]
        for counter in counters:
            counter.value = counter.id
            await eventually(lambda: {counter.id for counter in counters} <= {info.id for _, info in heard})
            await counter.aclose()
        ids = {counter.registration_id for counter in counters}
        for what, state in (("available", 1), ("unavailable", -1)):
            await eventually(lambda what=what: ids <= {info.registration_id for kind, info in heard if kind == what})  # type: ignore[misc]
            infos = [info for kind, info in heard if kind == what and info.registration_id in ids]
            assert [(info.id, info.label, info.type_id) for info in infos] == [
                (counter.id, counter.label, TYPE_ID) for counter in counters
            ]
            assert what == "available" or {info.state for info in infos} == {state}


async def test_d3_every_counter_is_read_with_key_label_owner_and_state(client: Client, stream_id: int) -> None:
    publication, subscription = await open_pair(client, "aeron:ipc", stream_id)
    await publication.publish(bytes(100))
    (limit,) = client.counters.find(
        type_id=CounterType.PUBLISHER_LIMIT, registration_id=publication.original_registration_id
    )
    assert limit.value == client.counters[limit.id] == publication.position_limit
    assert limit.state == 1
    assert str(stream_id) in limit.label
    (position,) = client.counters.find(
        type_id=CounterType.SUBSCRIBER_POSITION, registration_id=subscription.registration_id
    )
    assert position.value == subscription.images[0].position
    everything = list(client.counters)
    assert {limit.id, position.id} <= {info.id for info in everything}
    assert {info.type_id for info in everything} >= {CounterType.SYSTEM, CounterType.HEARTBEAT}


async def test_the_next_session_id_is_one_that_a_publication_can_have(
    client: Client, channel: str, stream_id: int
) -> None:
    session_id = await client.next_session_id(stream_id)
    uri = aeron_async.ChannelUri.parse(channel).replace(session_id=session_id)
    publication = await client.add_publication(uri, stream_id)
    assert publication.session_id == session_id
    assert await client.next_session_id(stream_id) != session_id


@pytest.mark.parametrize("is_allowed", [False, True])
async def test_the_drivers_own_validator_decides_whether_a_client_may_end_it(is_allowed: bool) -> None:
    validator = {"AERON_DRIVER_TERMINATION_VALIDATOR": "allow" if is_allowed else "deny"}
    async with aeron_async.connect(driver=quick_config(environment=validator)) as client:
        await client.terminate_driver(b"please")
        if is_allowed:
            with anyio.fail_after(LIMIT):
                assert await client.wait_closed() is CloseReason.DRIVER_SHUTDOWN
        else:
            # An answer to a later command shows that the driver has passed over it.
            await client.next_session_id(1)
            assert not client.is_closed

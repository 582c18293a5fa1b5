"""Local socket addresses, as the driver's counters tell them."""

from __future__ import annotations

import struct

import anyio
import pytest

from aeron_async._core import Cnc
from aeron_async._local_addresses import local_socket_addresses
from aeron_async.counters import CountersReader
from aeron_async.protocol import commands
from aeron_async.protocol.counter_types import CounterType
from tests.fakes import FakeDriver
from tests.unit.rig import Bench


def address(driver: FakeDriver, status_id: int, text: bytes, *, value: int = 1, length: int | None = None) -> None:
    key = struct.pack("<ii", status_id, len(text) if length is None else length) + text
    driver.allocate_counter(CounterType.LOCAL_SOCKET_ADDRESS_STATUS, key=key, value=value)


def test_the_addresses_of_a_channel_are_those_that_name_its_status_counter(driver: FakeDriver) -> None:
    status = driver.allocate_counter(CounterType.SEND_CHANNEL_STATUS, value=1)
    other = driver.allocate_counter(CounterType.SEND_CHANNEL_STATUS, value=1)
    address(driver, status.id, b"127.0.0.1:40123")
    address(driver, other.id, b"127.0.0.1:40124")
    address(driver, status.id, b"[::1]:40125")
    address(driver, status.id, b"127.0.0.1:40126", value=0)
    address(driver, status.id, b"")
    address(driver, status.id, b"127.0.0.1:1", length=-5)
    counters = CountersReader(Cnc(driver.cnc_path))
    assert local_socket_addresses(counters, status.id) == ["127.0.0.1:40123", "[::1]:40125"]
    assert local_socket_addresses(counters, other.id) == ["127.0.0.1:40124"]
    assert local_socket_addresses(counters, -1) == []
    status.value = 0
    assert local_socket_addresses(counters, status.id) == []


@pytest.mark.anyio
async def test_a_publication_knows_its_addresses_until_it_is_closed(bench: Bench) -> None:
    status = bench.driver.allocate_counter(CounterType.SEND_CHANNEL_STATUS, value=1)
    address(bench.driver, status.id, b"127.0.0.1:40123")
    publication = bench.add_publication(status_id=status.id).publication
    assert publication.local_socket_addresses == ["127.0.0.1:40123"]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publication.aclose)
        await bench.answer_removal(commands.RemovePublication)
    assert publication.local_socket_addresses == []
    assert bench.add_publication().publication.local_socket_addresses == []

"""The addresses that a subscription receives on, as the driver's counters tell them."""

from __future__ import annotations

import struct

import pytest

from aeron_async.errors import ChannelError
from aeron_async.protocol.counter_types import CounterType
from tests.fakes import FakeCounter
from tests.unit.rig import Bench

# The client's fixtures are async; nothing here waits.
pytestmark = pytest.mark.anyio

PORT_0 = "aeron:udp?endpoint=localhost:0|alias=quotes"


@pytest.fixture
def status(bench: Bench) -> FakeCounter:
    return bench.driver.allocate_counter(CounterType.RECEIVE_CHANNEL_STATUS, value=1)


def bind(bench: Bench, status: FakeCounter, address: str, *, value: int = 1) -> FakeCounter:
    """The driver has bound a socket for the channel of `status`."""
    text = address.encode()
    return bench.driver.allocate_counter(
        CounterType.LOCAL_SOCKET_ADDRESS_STATUS, key=struct.pack("<ii", status.id, len(text)) + text, value=value
    )


async def test_a_subscription_has_the_addresses_of_its_own_channel(bench: Bench, status: FakeCounter) -> None:
    other = bench.driver.allocate_counter(CounterType.RECEIVE_CHANNEL_STATUS, value=1)
    subscription = bench.add_subscription(PORT_0, status_id=status.id)
    assert subscription.local_socket_addresses == []
    bind(bench, other, "127.0.0.1:1000")
    bind(bench, status, "127.0.0.1:2000")
    bind(bench, status, "[::1]:3000")
    bind(bench, status, "127.0.0.1:4000", value=0)
    assert subscription.local_socket_addresses == ["127.0.0.1:2000", "[::1]:3000"]
    assert subscription.resolved_endpoint == "127.0.0.1:2000"


async def test_port_0_becomes_the_port_that_was_bound(bench: Bench, status: FakeCounter) -> None:
    subscription = bench.add_subscription(PORT_0, status_id=status.id)
    assert subscription.try_resolve_channel_endpoint_port() is None
    assert subscription.resolved_endpoint is None
    bind(bench, status, "127.0.0.1:2000")
    assert subscription.try_resolve_channel_endpoint_port() == "aeron:udp?endpoint=localhost:2000|alias=quotes"


async def test_an_ipv6_endpoint_keeps_its_host(bench: Bench, status: FakeCounter) -> None:
    subscription = bench.add_subscription("aeron:udp?endpoint=[::1]:0", status_id=status.id)
    bind(bench, status, "[0:0:0:0:0:0:0:1]:2000")
    assert subscription.try_resolve_channel_endpoint_port() == "aeron:udp?endpoint=[::1]:2000"


@pytest.mark.parametrize(
    "channel",
    [
        "aeron:ipc",
        "aeron:udp?endpoint=localhost:2000",
        "aeron:udp?endpoint=localhost:40000",
        "aeron:udp?control-mode=manual",
        "aeron:udp?endpoint=localhost:0|control-mode=manual",
        "aeron:udp?control=localhost:2000|control-mode=dynamic",
    ],
)
async def test_a_channel_without_port_0_is_resolved_already(bench: Bench, status: FakeCounter, channel: str) -> None:
    subscription = bench.add_subscription(channel, status_id=status.id)
    assert subscription.try_resolve_channel_endpoint_port() == channel


async def test_a_channel_that_cannot_be_read_is_an_error(bench: Bench, status: FakeCounter) -> None:
    subscription = bench.add_subscription("aeron:udp?endpoint=localhost:0|of-the-future=1", status_id=status.id)
    with pytest.raises(ChannelError, match="of-the-future"):
        subscription.try_resolve_channel_endpoint_port()


async def test_nothing_is_resolved_before_the_channel_is_active(bench: Bench, status: FakeCounter) -> None:
    subscription = bench.add_subscription(PORT_0, status_id=status.id)
    bind(bench, status, "127.0.0.1:2000")
    status.value = 0
    assert subscription.resolved_endpoint is None
    status.value = 1
    assert subscription.resolved_endpoint == "127.0.0.1:2000"


async def test_an_endpoint_once_resolved_stays(bench: Bench, status: FakeCounter) -> None:
    subscription = bench.add_subscription(PORT_0, status_id=status.id)
    bind(bench, status, "127.0.0.1:2000")
    assert subscription.resolved_endpoint == "127.0.0.1:2000"
    bench.conductor.close_resource(subscription.registration_id)
    assert subscription.local_socket_addresses == []
    assert subscription.resolved_endpoint == "127.0.0.1:2000"


@pytest.mark.parametrize("length", [-1, 0, 1 << 30])
async def test_an_address_whose_length_cannot_be_true_does_no_harm(
    bench: Bench, status: FakeCounter, length: int
) -> None:
    subscription = bench.add_subscription(PORT_0, status_id=status.id)
    bench.driver.allocate_counter(
        CounterType.LOCAL_SOCKET_ADDRESS_STATUS, key=struct.pack("<ii", status.id, length) + b"127.0.0.1:1", value=1
    )
    assert all(len(address) <= 104 for address in subscription.local_socket_addresses)


async def test_a_channel_without_a_status_counter_has_no_addresses(bench: Bench) -> None:
    subscription = bench.add_subscription()
    assert subscription.local_socket_addresses == []
    assert subscription.resolved_endpoint is None

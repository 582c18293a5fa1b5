"""Connecting and closing: the three forms, whose driver it is, and what is told to whom."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import aeron_async
from aeron_async import Client, CloseReason, MediaDriver, connect
from aeron_async.protocol.counter_types import CounterType
from tests.support import (
    LIMIT,
    eventually,
    free_udp_port,
    holds_nothing,
    is_running,
    open_pair,
    private_folders,
    quick_config,
    scratch_folder,
    take,
)

pytestmark = pytest.mark.anyio


# --- the three forms ---------------------------------------------------------------------------------------------


async def test_async_with_closes_the_client_at_its_end(aeron_dir: Path) -> None:
    async with connect(aeron_dir) as client:
        assert not client.is_closed
        assert client.close_reason is None
        assert client.aeron_dir == aeron_dir
        assert client.driver is None
    assert client.is_closed
    assert client.close_reason is CloseReason.USER


async def test_an_awaited_client_lives_until_it_is_closed(aeron_dir: Path) -> None:
    client = await connect(aeron_dir)
    assert not client.is_closed
    await client.aclose()
    assert client.is_closed


async def test_an_awaited_client_may_be_entered(aeron_dir: Path) -> None:
    async with await connect(aeron_dir) as client:
        assert not client.is_closed
    assert client.is_closed


async def test_iteration_closes_one_client_and_gives_the_next(aeron_dir: Path, stream_id: int) -> None:
    clients: list[Client] = []
    async for client in connect(aeron_dir):
        assert all(earlier.is_closed for earlier in clients)
        clients.append(client)
        publication, subscription = await open_pair(client, "aeron:ipc", stream_id)
        await publication.publish(b"works")
        assert await take(subscription.payloads(), 1) == [b"works"]
        if len(clients) == 3:
            await client.aclose()
            break
    assert len({client.client_id for client in clients}) == 3


async def test_a_client_may_be_left_in_another_task_than_it_was_entered_in(aeron_dir: Path, stream_id: int) -> None:
    context = connect(aeron_dir)
    clients: list[Client] = []

    async def enter() -> None:
        clients.append(await context.__aenter__())

    async def use() -> None:
        publication, subscription = await open_pair(clients[0], "aeron:ipc", stream_id)
        await publication.publish(b"from a third task")
        assert await take(subscription.payloads(), 1) == [b"from a third task"]

    async def leave() -> None:
        await context.__aexit__(None, None, None)

    for step in (enter, use, leave):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(step)
    assert clients[0].close_reason is CloseReason.USER


async def test_an_exception_of_the_user_arrives_as_it_is(aeron_dir: Path) -> None:
    error = KeyError("of the user")
    with pytest.raises(KeyError) as caught:
        async with connect(aeron_dir) as client:
            await client.add_publication("aeron:ipc", 1)
            raise error
    assert caught.value is error
    assert client.close_reason is CloseReason.USER


async def test_cancelling_the_scope_around_a_client_closes_it(aeron_dir: Path) -> None:
    with anyio.CancelScope() as scope:
        async with connect(aeron_dir) as client:
            await client.add_subscription("aeron:ipc", 1)
            scope.cancel()
            await anyio.sleep(LIMIT)
    assert scope.cancelled_caught
    assert client.close_reason is CloseReason.USER


# --- which driver ------------------------------------------------------------------------------------------------


async def test_by_default_a_client_has_a_driver_of_its_own(runtime_dir: Path, stream_id: int) -> None:
    async with connect() as client:
        assert client.driver is not None
        assert client.driver.is_alive
        pid = client.driver.pid
        assert client.aeron_dir.is_relative_to(runtime_dir)
        publication, subscription = await open_pair(client, "aeron:ipc", stream_id)
        await publication.publish(b"through my own driver")
        assert await take(subscription.payloads(), 1) == [b"through my own driver"]
    await eventually(lambda: not is_running(pid))
    await eventually(lambda: private_folders(runtime_dir) == [])


async def test_aeron_dir_of_the_environment_is_used_unless_a_driver_is_named(
    aeron_dir: Path, runtime_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AERON_DIR", str(aeron_dir))
    async with connect() as client:
        assert client.aeron_dir == aeron_dir
        assert client.driver is None
    async with connect(driver="external") as client:
        assert client.aeron_dir == aeron_dir
    async with connect(driver="embedded", driver_config=quick_config()) as client:
        assert client.driver is not None
        assert client.aeron_dir.is_relative_to(runtime_dir)


async def test_a_config_is_an_embedded_driver_with_these_settings(runtime_dir: Path, stream_id: int) -> None:
    async with connect(driver=quick_config(ipc_term_buffer_length=128 << 10)) as client:
        assert client.driver is not None
        publication = await client.add_publication("aeron:ipc", stream_id)
        assert publication.term_buffer_length == 128 << 10
        pid = client.driver.pid
    await eventually(lambda: not is_running(pid))


async def test_a_driver_of_the_user_outlives_its_clients(runtime_dir: Path, stream_id: int) -> None:
    async with MediaDriver(quick_config()) as driver:
        for _ in range(2):
            async with connect(driver=driver) as client:
                assert client.aeron_dir == driver.aeron_dir
                await client.add_publication("aeron:ipc", stream_id)
            assert driver.is_alive


async def test_a_shared_driver_lives_from_its_first_client_to_its_last(channel: str, stream_id: int) -> None:
    with scratch_folder() as folder:
        first = await connect(folder / "driver", driver="shared", driver_config=quick_config())
        async with connect(folder / "driver", driver="shared") as second:
            assert first.driver is not None
            assert second.driver is None
            pid = first.driver.pid
            subscription = await second.add_subscription(channel, stream_id)
            publication = await first.add_publication(channel, stream_id)
            await publication.publish(b"over there", timeout=LIMIT)
            assert await take(subscription.payloads(), 1) == [b"over there"]
            await first.aclose()
            publication, subscription = await open_pair(second, channel, stream_id)
            await publication.publish(b"still here")
            assert await take(subscription.payloads(), 1) == [b"still here"]
        await eventually(lambda: not is_running(pid))
        await eventually(lambda: list(folder.iterdir()) == [])


async def test_the_clients_of_one_iteration_keep_their_driver(runtime_dir: Path) -> None:
    pids = []
    async for client in connect(driver=quick_config()):
        async with client:
            assert client.driver is not None
            pids.append(client.driver.pid)
            if len(pids) == 2:
                break
    assert pids[0] == pids[1]
    await eventually(lambda: not is_running(pids[0]))
    await eventually(lambda: private_folders(runtime_dir) == [])


async def test_cancelling_a_connect_leaves_no_driver_behind(runtime_dir: Path) -> None:
    for delay in (0, 0.001, 0.01, 0.05, 0.1):
        with anyio.move_on_after(delay):
            client = await connect(driver=quick_config())
            await client.aclose()
    await eventually(lambda: private_folders(runtime_dir) == [])


@pytest.mark.parametrize("name", ["driver_timeout", "keepalive_interval", "loop_stall_limit"])
async def test_times_must_be_positive(aeron_dir: Path, name: str) -> None:
    settings: dict[str, Any] = {name: 0}
    with pytest.raises(ValueError, match=name):
        connect(aeron_dir, **settings)


# --- several clients ---------------------------------------------------------------------------------------------


async def test_two_clients_on_one_driver_reach_each_other(aeron_dir: Path, channel: str, stream_id: int) -> None:
    async with connect(aeron_dir) as one, connect(aeron_dir) as other:
        assert one.client_id != other.client_id
        subscription = await one.add_subscription(channel, stream_id)
        publication = await other.add_publication(channel, stream_id)
        await publication.publish(b"over there", timeout=LIMIT)
        assert await take(subscription.payloads(), 1) == [b"over there"]


async def test_the_name_of_a_client_is_in_the_label_of_its_heartbeat_counter(aeron_dir: Path, stream_id: int) -> None:
    async with connect(aeron_dir, client_name="pricing", keepalive_interval=0.02) as client:
        await client.add_subscription("aeron:ipc", stream_id)

        def labels() -> list[str]:
            counters = client.counters.find(type_id=CounterType.HEARTBEAT)
            return [info.label for info in counters if info.registration_id == client.client_id]

        await eventually(lambda: any("name=pricing" in label for label in labels()))
        assert len(labels()) == 1


async def test_clients_that_come_and_go_leave_nothing_behind(aeron_dir: Path, client: Client, channel: str) -> None:
    async def come_and_go() -> None:
        async with connect(aeron_dir) as visitor:
            publication, subscription = await open_pair(visitor, channel, 77)
            await publication.publish(b"hello")
            await take(subscription.payloads(), 1)

    def held() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    await come_and_go()
    before = held()
    for _ in range(5):
        await come_and_go()
    await eventually(lambda: held() == before)
    await eventually(lambda: holds_nothing(client))


# --- resources and arguments -------------------------------------------------------------------------------------


async def test_every_resource_closes_at_the_end_of_async_with(client: Client, channel: str, stream_id: int) -> None:
    async with (
        await client.add_subscription(channel, stream_id) as subscription,
        await client.add_publication(channel, stream_id) as publication,
        await client.add_exclusive_publication(channel, stream_id) as exclusive,
        await client.add_counter(1101, b"key", "a counter of a test") as counter,
    ):
        resources = (subscription, publication, exclusive, counter)
        assert not any(resource.is_closed for resource in resources)
    assert all(resource.is_closed for resource in resources)
    for resource in resources:
        await resource.aclose()
    await eventually(lambda: holds_nothing(client))


async def test_a_counter_is_seen_by_every_client(aeron_dir: Path, client: Client) -> None:
    async with connect(aeron_dir) as other:
        counter = await client.add_counter(1101, b"k\x01", "orders seen")
        counter.value = 40
        assert counter.increment() == 41
        assert counter.increment(2) == 43
        assert counter.get_and_set(44) == 43
        assert counter.compare_and_set(44, 45)
        assert not counter.compare_and_set(44, 46)
        (info,) = other.counters.find(type_id=1101, label="orders")
        assert (info.id, info.registration_id, info.value) == (counter.id, counter.registration_id, 45)
        assert info.owner_id == client.client_id
        assert info.key.rstrip(b"\0") == b"k\x01"
        assert other.counters[counter.id] == 45
        await counter.aclose()
        await eventually(lambda: other.counters.find(type_id=1101, label="orders") == [])
        assert counter.value == 45
        with pytest.raises(aeron_async.CounterClosedError):
            counter.value = 1


@pytest.mark.parametrize("stream", [1 << 31, -(1 << 31) - 1])
async def test_a_stream_id_has_32_bits(client: Client, stream: int) -> None:
    for add in (client.add_publication, client.add_exclusive_publication, client.add_subscription):
        with pytest.raises(ValueError, match="stream_id"):
            await add("aeron:ipc", stream)


async def test_stream_ids_may_be_negative(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, -stream_id)
    await publication.publish(b"below zero")
    (message,) = await take(aiter(subscription), 1)
    assert message.header.stream_id == -stream_id


# --- closing -----------------------------------------------------------------------------------------------------


async def test_whoever_waits_hears_why_the_client_closed(aeron_dir: Path) -> None:
    told: list[CloseReason] = []
    client = await connect(aeron_dir, on_close=told.append)
    reasons: list[CloseReason] = []

    async def wait() -> None:
        reasons.append(await client.wait_closed())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        tasks.start_soon(wait)
        await anyio.sleep(0.02)
        tasks.start_soon(client.aclose)
    await client.aclose()
    assert await client.wait_closed() is CloseReason.USER
    assert reasons == [CloseReason.USER] * 2
    assert told == [CloseReason.USER]


async def test_closing_twice_at_the_same_time_waits_for_the_end_both_times(runtime_dir: Path) -> None:
    client = await connect(driver=quick_config())
    assert client.driver is not None
    pid = client.driver.pid
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.aclose)
        tasks.start_soon(client.aclose)
    assert client.is_closed
    await eventually(lambda: not is_running(pid))


async def test_closing_a_client_closes_everything_of_it_before_it_tells(aeron_dir: Path, stream_id: int) -> None:
    steps: list[str] = []
    resources: list[Any] = []

    def closed(reason: CloseReason) -> None:
        steps.append("closed")
        assert all(resource.is_closed for resource in resources)

    async with connect(aeron_dir, on_close=closed) as client:
        subscription = await client.add_subscription(
            "aeron:ipc", stream_id, on_unavailable_image=lambda image: steps.append("image gone")
        )
        publication = await client.add_publication("aeron:ipc", stream_id)
        resources += [subscription, publication, await client.add_counter(1101)]
        await subscription.wait_connected(LIMIT)
    assert steps == ["image gone", "closed"]


async def test_async_on_close_is_awaited(aeron_dir: Path) -> None:
    told: list[CloseReason] = []

    async def closed(reason: CloseReason) -> None:
        await anyio.lowlevel.checkpoint()
        told.append(reason)

    async with connect(aeron_dir, on_close=closed):
        pass
    await eventually(lambda: told == [CloseReason.USER])


async def test_a_cancelled_close_is_done_all_the_same(runtime_dir: Path) -> None:
    client = await connect(driver=quick_config())
    assert client.driver is not None
    pid = client.driver.pid
    with anyio.CancelScope() as scope:
        scope.cancel()
        await client.aclose()
    assert client.is_closed
    await eventually(lambda: not is_running(pid))
    await eventually(lambda: private_folders(runtime_dir) == [])


async def test_a_closed_client_adds_nothing(aeron_dir: Path) -> None:
    async with connect(aeron_dir) as client:
        pass
    for add in (client.add_publication, client.add_exclusive_publication, client.add_subscription):
        with pytest.raises(aeron_async.ClientClosedError) as caught:
            await add("aeron:ipc", 1)
        assert caught.value.reason is CloseReason.USER
    with pytest.raises(aeron_async.ClientClosedError):
        await client.add_counter(1101)


async def test_an_endpoint_may_be_added_again_while_it_is_still_being_closed(client: Client) -> None:
    """The driver answers "resource temporarily unavailable" then; the client asks again."""
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_udp_port()}"
    for _ in range(30):
        async with (
            await client.add_subscription(channel, 1001),
            await client.add_publication(channel, 1001),
        ):
            pass


async def test_closes_at_once_return_when_it_is_done(runtime_dir: Path) -> None:
    client = await connect(driver=quick_config())
    assert client.driver is not None
    pid = client.driver.pid

    async def close() -> None:
        await client.aclose()
        assert not is_running(pid)

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(close)

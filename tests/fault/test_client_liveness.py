"""Clients, loops and drivers that stand still for a while."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from aeron_async import (
    Client,
    ClientClosedError,
    ClientTimeoutError,
    CloseReason,
    Counter,
    LappedError,
    MediaDriver,
    RegistrationError,
    ServiceTimeoutError,
    connect,
)
from aeron_async.protocol.counter_types import CounterType
from tests.support import LIMIT, RUNNERS, Program, eventually, open_pair, quick_config, take

pytestmark = pytest.mark.anyio

LIVENESS = 0.5


def patient_driver(aeron_dir: Path) -> MediaDriver:
    return MediaDriver(quick_config(aeron_dir=aeron_dir))


def impatient_driver(aeron_dir: Path) -> MediaDriver:
    """A driver that gives up a client after `LIVENESS` seconds without a keepalive."""
    return MediaDriver(quick_config(aeron_dir=aeron_dir, client_liveness_timeout=LIVENESS))


def block_the_loop(seconds: float) -> None:
    time.sleep(seconds)


async def shows_that_it_works(client: Client) -> None:
    publication, subscription = await open_pair(client, "aeron:ipc", 1001)
    await publication.publish(b"works")
    assert await take(subscription.payloads(), 1) == [b"works"]


# --- the client stands still -------------------------------------------------------------------------------------

STOPPED_CLIENT = """
    import sys
    from aeron_async import ClientClosedError, connect

    async def main():
        async with connect(sys.argv[1], keepalive_interval=0.1) as client:
            subscription = await client.add_subscription("aeron:ipc", 1001)
            publication = await client.add_publication("aeron:ipc", 1001)
            print(client.client_id, flush=True)
            try:
                async for message in subscription:
                    pass
            except ClientClosedError as error:
                print(type(error).__name__, error.reason.name, client.close_reason.name, flush=True)
            publication.offer(b"late")
            subscription.poll_batch()
"""


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("run", RUNNERS.values(), ids=RUNNERS)
async def test_a_client_stopped_for_too_long_is_told_and_does_not_crash(aeron_dir: Path, run: str) -> None:
    async with impatient_driver(aeron_dir), connect(aeron_dir) as observer:
        with Program(f"{STOPPED_CLIENT}\n    {run}\n", aeron_dir) as program:
            client_id = int(await anyio.to_thread.run_sync(program.line))
            program.signal(signal.SIGSTOP)
            heartbeat = CounterType.HEARTBEAT
            await eventually(lambda: observer.counters.find(type_id=heartbeat, registration_id=client_id) == [])
            program.signal(signal.SIGCONT)
            told = await anyio.to_thread.run_sync(program.line)
            assert told == "ClientTimeoutError CLIENT_TIMEOUT CLIENT_TIMEOUT"
            assert await anyio.to_thread.run_sync(program.finish) == 0
            assert program.errors == ""
        await shows_that_it_works(observer)


async def test_a_blocked_event_loop_keeps_its_client(aeron_dir: Path) -> None:
    async with impatient_driver(aeron_dir), connect(aeron_dir, keepalive_interval=0.1) as client:
        publication, subscription = await open_pair(client, "aeron:ipc", 1002)
        block_the_loop(4 * LIVENESS)
        await publication.publish(b"after the block")
        assert await take(subscription.payloads(), 1) == [b"after the block"]
        await shows_that_it_works(client)
        assert not client.is_closed


async def test_a_loop_blocked_beyond_its_limit_loses_its_client_to_the_driver(aeron_dir: Path) -> None:
    async with (
        impatient_driver(aeron_dir),
        connect(aeron_dir, keepalive_interval=0.1, loop_stall_limit=LIVENESS) as client,
    ):
        subscription = await client.add_subscription("aeron:ipc", 1001)
        block_the_loop(5 * LIVENESS)
        with anyio.fail_after(LIMIT):
            assert await client.wait_closed() is CloseReason.CLIENT_TIMEOUT
        with pytest.raises(ClientTimeoutError):
            await anext(aiter(subscription))


async def test_a_loop_blocked_beyond_its_limit_closes_its_client_where_the_driver_is_patient(aeron_dir: Path) -> None:
    async with (
        patient_driver(aeron_dir),
        connect(aeron_dir, keepalive_interval=0.1, loop_stall_limit=0.3) as client,
    ):
        subscription = await client.add_subscription("aeron:ipc", 1001)
        block_the_loop(0.6)
        with anyio.fail_after(LIMIT):
            assert await client.wait_closed() is CloseReason.SERVICE_TIMEOUT
        with pytest.raises(ServiceTimeoutError) as caught:
            await anext(aiter(subscription))
        assert "loop_stall_limit" in str(caught.value)


def flood_the_broadcast(aeron_dir: Path) -> None:
    """Makes the driver send more than its broadcast of 1 MiB holds: errors that repeat long channels."""

    async def flood() -> None:
        async with connect(aeron_dir, driver_timeout=LIMIT) as client:
            for _ in range(20):
                async with anyio.create_task_group() as tasks:
                    for _ in range(30):
                        tasks.start_soon(fail, client)

    async def fail(client: Client) -> None:
        with pytest.raises(RegistrationError):
            await client.add_subscription(f"aeron:udp?endpoint=127.0.0.1:x|alias={3500 * 'x'}", 1001)

    thread = threading.Thread(target=anyio.run, args=(flood,))
    thread.start()
    thread.join()


async def test_a_client_that_falls_behind_the_broadcast_is_closed(aeron_dir: Path) -> None:
    async with patient_driver(aeron_dir), connect(aeron_dir) as client:
        subscription = await client.add_subscription("aeron:ipc", 1001)
        flood_the_broadcast(aeron_dir)
        with anyio.fail_after(LIMIT):
            assert await client.wait_closed() is CloseReason.LAPPED
        with pytest.raises(LappedError):
            await anext(aiter(subscription))


async def test_a_quiet_client_stays_alive(aeron_dir: Path) -> None:
    async with impatient_driver(aeron_dir), connect(aeron_dir, keepalive_interval=0.1) as client:
        await client.add_subscription("aeron:ipc", 1001)
        await anyio.sleep(4 * LIVENESS)
        assert not client.is_closed
        await shows_that_it_works(client)


# --- the driver stands still -------------------------------------------------------------------------------------


async def test_a_driver_paused_for_less_than_the_timeout_is_forgiven(aeron_dir: Path) -> None:
    async with patient_driver(aeron_dir) as driver, connect(aeron_dir, keepalive_interval=0.05) as client:
        publication, subscription = await open_pair(client, "aeron:ipc", 1002)
        os.kill(driver.pid, signal.SIGSTOP)
        try:
            await publication.publish(b"past the driver")
            assert await take(subscription.payloads(), 1) == [b"past the driver"]
            await anyio.sleep(0.5)
        finally:
            os.kill(driver.pid, signal.SIGCONT)
        await shows_that_it_works(client)
        assert not client.is_closed


async def test_a_driver_paused_for_longer_is_given_up(aeron_dir: Path) -> None:
    async with (
        patient_driver(aeron_dir) as driver,
        connect(aeron_dir, keepalive_interval=0.05, driver_timeout=0.3) as client,
    ):
        await client.add_subscription("aeron:ipc", 1001)
        os.kill(driver.pid, signal.SIGSTOP)
        try:
            with anyio.fail_after(LIMIT):
                assert await client.wait_closed() is CloseReason.DRIVER_TIMEOUT
            with pytest.raises(ClientClosedError):
                await client.add_subscription("aeron:ipc", 1002)
        finally:
            os.kill(driver.pid, signal.SIGCONT)
        async with connect(aeron_dir) as next_client:
            await shows_that_it_works(next_client)


async def test_commands_wait_in_order_while_the_drivers_buffer_is_full(aeron_dir: Path) -> None:
    # Together they are longer than the buffer of 1 MiB.
    labels = [f"{number:04d} {300 * 'x'}" for number in range(3000)]
    async with patient_driver(aeron_dir) as driver, connect(aeron_dir, driver_timeout=LIMIT) as client:
        await client.add_subscription("aeron:ipc", 1001)
        counters: dict[str, Counter] = {}

        async def add(label: str) -> None:
            counters[label] = await client.add_counter(1101, bytes(100), label)

        async with anyio.create_task_group() as tasks:
            os.kill(driver.pid, signal.SIGSTOP)
            try:
                for label in labels:
                    tasks.start_soon(add, label)
                await anyio.sleep(0.3)
                assert counters == {}
            finally:
                os.kill(driver.pid, signal.SIGCONT)
        assert set(counters) == set(labels)
        assert {info.label for info in client.counters.find(type_id=1101)} == set(labels)
        order = sorted(counters.values(), key=lambda counter: counter.registration_id)
        assert [counter.id for counter in order] == sorted(counter.id for counter in order)
        await shows_that_it_works(client)

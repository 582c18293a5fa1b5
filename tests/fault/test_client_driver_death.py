"""Drivers that die or fall silent under their clients, and the clients that come after."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from aeron_async import (
    Client,
    ClientClosedError,
    CloseReason,
    CounterClosedError,
    DriverShutdownError,
    DriverTimeoutError,
    Image,
    MediaDriver,
    OfferResult,
    connect,
)
from tests.support import LIMIT, eventually, is_running, open_pair, private_folders, quick_config, take

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def clients_of_embedded_drivers(
    aeron_dir: Path, told: list[CloseReason]
) -> AsyncIterator[tuple[Client, MediaDriver]]:
    """A client whose driver's death is seen through its process: the timeout is far away."""
    async with connect(driver=quick_config(), driver_timeout=1000, on_close=told.append) as client:
        assert client.driver is not None
        yield client, client.driver


@asynccontextmanager
async def clients_of_shared_drivers(
    aeron_dir: Path, told: list[CloseReason]
) -> AsyncIterator[tuple[Client, MediaDriver]]:
    """A client that has joined a driver whose starter uses it too; it sees its death by a lock."""
    async with (
        connect(aeron_dir, driver="shared", driver_config=quick_config()) as starter,
        connect(aeron_dir, driver="shared", driver_timeout=1000, on_close=told.append) as client,
    ):
        assert starter.driver is not None
        assert client.driver is None
        yield client, starter.driver


@asynccontextmanager
async def clients_of_external_drivers(
    aeron_dir: Path, told: list[CloseReason]
) -> AsyncIterator[tuple[Client, MediaDriver]]:
    """A client whose driver's death is seen by its silence."""
    async with (
        MediaDriver(quick_config(aeron_dir=aeron_dir)) as driver,
        connect(aeron_dir, driver_timeout=1, keepalive_interval=0.1, on_close=told.append) as client,
    ):
        yield client, driver


@pytest.mark.parametrize(
    ("clients", "error", "reason"),
    [
        (clients_of_embedded_drivers, DriverShutdownError, CloseReason.DRIVER_SHUTDOWN),
        (clients_of_shared_drivers, DriverShutdownError, CloseReason.DRIVER_SHUTDOWN),
        (clients_of_external_drivers, DriverTimeoutError, CloseReason.DRIVER_TIMEOUT),
    ],
    ids=["embedded", "shared", "external"],
)
async def test_a_killed_driver_closes_everything_with_its_reason(
    runtime_dir: Path,
    aeron_dir: Path,
    clients: Callable[..., AbstractAsyncContextManager[tuple[Client, MediaDriver]]],
    error: type[ClientClosedError],
    reason: CloseReason,
) -> None:
    told: list[CloseReason] = []
    gone: list[Image] = []
    failed: list[str] = []
    async with clients(aeron_dir, told) as (client, driver):
        subscription = await client.add_subscription("aeron:ipc", 1001, on_unavailable_image=gone.append)
        publication = await client.add_publication("aeron:ipc", 1001)
        unheard = await client.add_publication("aeron:ipc", 1002)
        unpublished = await client.add_subscription("aeron:ipc", 1003)
        counter = await client.add_counter(1101, label="of a test")
        await subscription.wait_connected(LIMIT)
        (image,) = subscription.images

        async def expect_failure(name: str, call: Callable[[], Awaitable[object]]) -> None:
            with pytest.raises(error) as caught:
                await call()
            assert caught.value.reason is reason
            failed.append(name)

        waits: dict[str, Callable[[], Awaitable[object]]] = {
            "iterate": lambda: anext(aiter(subscription)),
            "publish": lambda: unheard.publish(b"unheard", timeout=None),
            "wait for a subscriber": lambda: unheard.wait_connected(None),
            "wait for a publisher": lambda: unpublished.wait_connected(None),
            "add": lambda: client.add_publication("aeron:ipc", 1004, timeout=None),
        }
        with anyio.fail_after(LIMIT):
            async with anyio.create_task_group() as tasks:
                for name in list(waits)[:-1]:
                    tasks.start_soon(expect_failure, name, waits[name])
                await anyio.sleep(0.05)
                # Stopped first, so that it cannot answer the command.
                os.kill(driver.pid, signal.SIGSTOP)
                tasks.start_soon(expect_failure, "add", waits["add"])
                await anyio.sleep(0.05)
                os.kill(driver.pid, signal.SIGKILL)
                assert await client.wait_closed() is reason
        assert sorted(failed) == sorted(waits)

        assert client.is_closed
        assert client.close_reason is reason
        assert told == [reason]
        assert gone == [image]
        assert all(resource.is_closed for resource in (image, subscription, publication, unheard, counter))
        assert publication.offer(b"late") is OfferResult.CLOSED
        assert subscription.poll(lambda payload, header: None) == 0
        assert len(subscription.poll_batch()) == 0
        for late in (
            lambda: publication.publish(b"late"),
            lambda: publication.wait_connected(),
            lambda: subscription.wait_connected(),
            lambda: anext(aiter(subscription)),
            lambda: anext(subscription.payloads()),
            lambda: anext(subscription.batches()),
            lambda: client.add_subscription("aeron:ipc", 1001),
            lambda: client.add_counter(1101),
        ):
            await expect_failure("late", late)
        with pytest.raises((CounterClosedError, error)):
            counter.value = 1
        for resource in (publication, subscription, counter, client):
            await resource.aclose()
    assert client.close_reason is reason
    assert told == [reason]


async def test_a_driver_that_shuts_down_says_so(aeron_dir: Path) -> None:
    async with (
        MediaDriver(quick_config(aeron_dir=aeron_dir)) as driver,
        connect(aeron_dir, driver_timeout=1000, keepalive_interval=0.05) as client,
    ):
        subscription = await client.add_subscription("aeron:ipc", 1001)
        os.kill(driver.pid, signal.SIGTERM)
        with anyio.fail_after(LIMIT):
            assert await client.wait_closed() is CloseReason.DRIVER_SHUTDOWN
        with pytest.raises(DriverShutdownError):
            await anext(aiter(subscription))


async def test_messages_that_had_arrived_are_lost_with_their_driver_and_nothing_crashes(runtime_dir: Path) -> None:
    async with connect(driver=quick_config()) as client:
        assert client.driver is not None
        publication, subscription = await open_pair(client, "aeron:ipc", 1001)
        publication.offer_many([b"unread"] * 10)
        batch = subscription.poll_batch(2)
        os.kill(client.driver.pid, signal.SIGKILL)
        with anyio.fail_after(LIMIT):
            await client.wait_closed()
        assert list(batch) == [b"unread"] * 2
        assert publication.position > 0
        assert subscription.poll_batch().nbytes == 0


# --- async for ---------------------------------------------------------------------------------------------------


async def serve_until_killed(client: Client, driver_pid: int) -> None:
    """Shows that the client works, kills its driver, and ends as a program would that serves on."""
    publication, subscription = await open_pair(client, "aeron:ipc", 1001)
    await publication.publish(b"works")
    assert await take(subscription.payloads(), 1) == [b"works"]
    os.kill(driver_pid, signal.SIGKILL)
    with anyio.fail_after(LIMIT):
        async for _ in subscription:
            pass


@pytest.mark.parametrize("private", [True, False], ids=["private", "named"])
async def test_iteration_gives_a_working_client_after_each_death(
    runtime_dir: Path, aeron_dir: Path, private: bool
) -> None:
    pids: list[int] = []
    reasons: list[CloseReason] = []
    async for client in connect(driver=quick_config() if private else quick_config(aeron_dir=aeron_dir)):
        async with client:
            assert client.driver is not None
            pids.append(client.driver.pid)
            if len(pids) == 4:
                break
            try:
                await serve_until_killed(client, client.driver.pid)
            except ClientClosedError as error:
                reasons.append(error.reason)
                continue
    assert reasons == [CloseReason.DRIVER_SHUTDOWN] * 3
    assert len(set(pids)) == 4
    await eventually(lambda: not any(map(is_running, pids)))
    await eventually(lambda: private_folders(runtime_dir) == [] and not aeron_dir.exists())


async def test_iteration_waits_for_an_external_driver_to_come_back(aeron_dir: Path) -> None:
    clients: list[Client] = []
    drivers: list[MediaDriver] = []

    async def stay_connected() -> None:
        async for client in connect(aeron_dir, driver_timeout=0.5, keepalive_interval=0.05):
            async with client:
                clients.append(client)
                # The client may be there before the start of its driver has returned.
                await eventually(lambda: len(drivers) == len(clients))
                with pytest.raises(DriverTimeoutError):
                    await serve_until_killed(client, drivers[-1].pid)
            if len(clients) == 2:
                break

    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as tasks:
            for start in (1, 2):
                async with MediaDriver(quick_config(aeron_dir=aeron_dir)) as driver:
                    drivers.append(driver)
                    if start == 1:
                        tasks.start_soon(stay_connected)
                    await eventually(lambda: len(clients) == len(drivers) and clients[-1].is_closed)
                # Long enough for attempts that find no driver.
                await anyio.sleep(0.8)


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "left open"])
async def test_breaking_out_of_the_iteration_leaves_no_driver_behind(runtime_dir: Path, closed: bool) -> None:
    async for client in connect(driver=quick_config()):
        assert client.driver is not None
        pid = client.driver.pid
        if closed:
            await client.aclose()
        break
    if not closed:
        # It is the user's until it is closed.
        await client.add_publication("aeron:ipc", 1001)
        await client.aclose()
    await eventually(lambda: not is_running(pid))
    await eventually(lambda: private_folders(runtime_dir) == [])


async def test_an_exception_out_of_the_iteration_leaves_no_driver_behind(runtime_dir: Path) -> None:
    pids: list[int] = []

    async def fail() -> None:
        async for client in connect(driver=quick_config()):
            async with client:
                assert client.driver is not None
                pids.append(client.driver.pid)
                raise KeyError("of the user")

    with pytest.raises(KeyError):
        await fail()
    await eventually(lambda: not is_running(pids[0]))
    await eventually(lambda: private_folders(runtime_dir) == [])

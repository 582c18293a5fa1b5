"""Cancellation and timeouts at every point: nothing leaks in the driver, no message is lost or seen twice."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from aeron_async import (
    AddTimeoutError,
    Client,
    Counter,
    MediaDriver,
    Publication,
    Subscription,
    connect,
)
from tests.support import (
    LIMIT,
    eventually,
    free_udp_port,
    holds_nothing,
    open_pair,
    quick_config,
    sealed,
    take,
    unseal,
)

pytestmark = pytest.mark.anyio

Resource = Publication | Subscription | Counter
Add = Callable[..., Awaitable[Resource]]

IPC = "aeron:ipc"
UDP = f"aeron:udp?endpoint=127.0.0.1:{free_udp_port()}"

ADDS: dict[str, Add] = {
    "publication": lambda client, **timeout: client.add_publication(IPC, 1001, **timeout),
    "udp publication": lambda client, **timeout: client.add_publication(UDP, 1001, **timeout),
    "exclusive publication": lambda client, **timeout: client.add_exclusive_publication(IPC, 1001, **timeout),
    "subscription": lambda client, **timeout: client.add_subscription(IPC, 1001, **timeout),
    "udp subscription": lambda client, **timeout: client.add_subscription(UDP, 1001, **timeout),
    "counter": lambda client, **timeout: client.add_counter(1101, b"key", "label", **timeout),
}


@pytest.fixture
async def driver(aeron_dir: Path) -> AsyncIterator[MediaDriver]:
    async with MediaDriver(quick_config(aeron_dir=aeron_dir)) as driver:
        yield driver


@pytest.fixture
async def client(driver: MediaDriver) -> AsyncIterator[Client]:
    async with connect(driver.aeron_dir) as client:
        yield client


async def works_and_holds_nothing_else(client: Client) -> None:
    await eventually(lambda: holds_nothing(client))
    publication, subscription = await open_pair(client, IPC, 1002)
    await publication.publish(b"works")
    assert await take(subscription.payloads(), 1) == [b"works"]


async def test_a_cancelled_add_leaves_nothing_in_the_driver(client: Client) -> None:
    chance = random.Random(6)
    added = 0
    for add in list(ADDS.values()) * 15:
        resource = None
        with anyio.move_on_after(chance.choice([0, 0.001, 0.01, 0.05]) * chance.random()):
            resource = await add(client)
        if resource is not None:
            added += 1
            await resource.aclose()
    assert 0 < added < 15 * len(ADDS)
    await works_and_holds_nothing_else(client)


async def test_adds_cancelled_together_leave_nothing_in_the_driver(client: Client) -> None:
    chance = random.Random(7)
    for _ in range(20):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                for add in ADDS.values():
                    tasks.start_soon(_add_and_close, add, client)
                await anyio.sleep(0.002 * chance.random())
                scope.cancel()
    await works_and_holds_nothing_else(client)


async def _add_and_close(add: Add, client: Client) -> None:
    async with await add(client):
        await anyio.lowlevel.checkpoint()


async def test_an_add_that_timed_out_leaves_nothing_in_the_driver(client: Client) -> None:
    chance = random.Random(8)
    for add in list(ADDS.values()) * 10:
        with suppress(AddTimeoutError):
            async with await add(client, timeout=chance.choice([0, 0.0005, 0.01]) * chance.random()):
                pass
    await works_and_holds_nothing_else(client)


async def test_answers_that_come_after_the_end_of_an_add_are_taken_back(client: Client, driver: MediaDriver) -> None:
    os.kill(driver.pid, signal.SIGSTOP)
    try:
        for add in ADDS.values():
            with pytest.raises(AddTimeoutError, match="0"):
                await add(client, timeout=0)
            with anyio.move_on_after(0.01) as scope:
                await add(client)
            assert scope.cancelled_caught
    finally:
        os.kill(driver.pid, signal.SIGCONT)
    await works_and_holds_nothing_else(client)


async def test_a_cancelled_close_of_a_resource_is_done_all_the_same(client: Client) -> None:
    for add in ADDS.values():
        resource = await add(client)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await resource.aclose()
        assert resource.is_closed
    await works_and_holds_nothing_else(client)


@pytest.mark.parametrize("channel", [IPC, UDP], ids=["ipc", "udp"])
async def test_a_publish_appends_or_is_cancelled_never_both(client: Client, channel: str) -> None:
    publication, subscription = await open_pair(client, channel, 1003)
    chance = random.Random(9)
    published: list[int] = []
    cancelled = 0
    received: list[int] = []

    async def read() -> None:
        async for payload in subscription.payloads():
            received.append(unseal(payload)[1])
            # Now and then so slow that the publisher has to wait.
            if len(received) % 20 == 0:
                await anyio.sleep(0.004)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        for number in range(600):
            with anyio.CancelScope(deadline=anyio.current_time() + 0.002 * chance.random()):
                await publication.publish(sealed(0, number, 4000), timeout=LIMIT)
                published.append(number)
                continue
            cancelled += 1
        await eventually(lambda: len(received) >= len(published))
        # What comes now would be one too many.
        await anyio.sleep(0.05)
        tasks.cancel_scope.cancel()
    assert cancelled > 0
    assert received == published


@pytest.mark.parametrize("channel", [IPC, UDP], ids=["ipc", "udp"])
@pytest.mark.parametrize("kind", ["messages", "payloads", "batches"])
async def test_cancelled_readers_lose_and_repeat_nothing(client: Client, channel: str, kind: str) -> None:
    publication, subscription = await open_pair(client, channel, 1004)
    chance = random.Random(10)
    total = 1500
    received: list[bytes] = []
    cancelled = 0

    async def publish() -> None:
        for number in range(total):
            await publication.publish(sealed(0, number, 3000 if number % 40 == 0 else number % 100), timeout=LIMIT)
            if number % 3 == 0:
                await anyio.sleep(0.002 * chance.random())

    async def read() -> None:
        nonlocal received
        if kind == "messages":
            async for message in subscription:
                received += (message.payload,)
        elif kind == "payloads":
            async for payload in subscription.payloads():
                received += (payload,)
        else:
            async for batch in subscription.batches():
                received += batch

    with anyio.fail_after(2 * LIMIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(publish)
            while len(received) < total:
                with anyio.move_on_after(0.004 * chance.random()) as scope:
                    await read()
                cancelled += scope.cancelled_caught
    assert cancelled > 50
    assert [unseal(payload) for payload in received] == [(0, number) for number in range(total)]


async def test_a_reader_cancelled_by_another_task_hands_over_to_the_next(client: Client) -> None:
    publication, subscription = await open_pair(client, IPC, 1005)
    received: list[bytes] = []

    async def read() -> None:
        async for payload in subscription.payloads():
            received.append(payload)

    for number in range(200):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.lowlevel.checkpoint()
            # The message and the cancellation reach the reader in the same turn, in either order.
            if number % 2:
                publication.offer(b"%d" % number)
                tasks.cancel_scope.cancel()
            else:
                tasks.cancel_scope.cancel()
                publication.offer(b"%d" % number)
    received += subscription.poll_batch()
    assert list(map(int, received)) == list(range(200))

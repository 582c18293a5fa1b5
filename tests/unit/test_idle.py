"""Idle strategies: what they take, and that a task that waits by any of them is woken."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import anyio
import pytest

import aeron_async
from aeron_async import Backoff, BusySpin, IdleStrategy, Parking, Sleeping, Yielding
from tests.fakes import FakeDriver
from tests.unit.rig import IPC, STREAM_ID, Bench, until

STRATEGIES = [
    BusySpin(),
    Yielding(),
    Sleeping(0.001),
    Backoff(max_spins=2, max_yields=2, min_park=0.0005, max_park=0.002),
    Parking(),
    Parking(spin=0),
]


@pytest.fixture(params=STRATEGIES, ids=repr)
def idle(request: pytest.FixtureRequest) -> IdleStrategy:
    """Each strategy in turn."""
    strategy: IdleStrategy = request.param
    return strategy


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sleeping(0), "period=0 "),
        (lambda: Sleeping(math.nan), "period=nan"),
        (lambda: Backoff(max_spins=-1), "max_spins=-1 is negative"),
        (lambda: Backoff(max_yields=-1), "max_yields=-1 is negative"),
        (lambda: Backoff(min_park=0), "min_park=0 "),
        (lambda: Backoff(max_park=math.inf), "max_park=inf"),
        (lambda: Backoff(min_park=0.2, max_park=0.1), "min_park=0.2 is longer than max_park=0.1"),
        (lambda: Parking(spin=-1e-6), "spin=-1e-06"),
        (lambda: Parking(spin=math.inf), "spin=inf"),
    ],
)
def test_times_that_cannot_be_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_strategies_are_values_that_say_what_they_are(idle: IdleStrategy) -> None:
    assert dataclasses.replace(idle) == idle  # type: ignore[type-var]
    assert repr(Parking()) == "Parking(spin=5e-05)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        Sleeping(0.1).period = 0.2  # type: ignore[misc]


@pytest.mark.anyio
async def test_a_reader_is_woken_by_each_message(client: aeron_async.Client, bench: Bench, idle: IdleStrategy) -> None:
    subscription = bench.add_subscription(idle=idle)
    stream = bench.add_image(subscription)
    received: list[bytes] = []

    async def receive() -> None:
        async for payload in subscription.payloads():
            received.append(payload)  # noqa: PERF401 (seen while it goes on)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        for number in range(20):
            await anyio.sleep(0.002 if number % 2 else 0)
            stream.log.append(b"%d" % number)
            await until(lambda count=number + 1: len(received) == count)
        subscription._close()
    assert received == [b"%d" % number for number in range(20)]


@pytest.mark.anyio
async def test_a_reader_without_images_waits_for_the_first(
    client: aeron_async.Client, bench: Bench, idle: IdleStrategy
) -> None:
    subscription = bench.add_subscription(idle=idle)
    received: list[bytes] = []

    async def receive() -> None:
        received.append(await anext(subscription.payloads()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        await anyio.sleep(0.005)
        stream = bench.add_image(subscription)
        await anyio.sleep(0.005)
        assert received == []
        stream.log.append(b"first")
    assert received == [b"first"]


@pytest.mark.anyio
async def test_cancelling_a_reader_that_waits_loses_nothing(
    client: aeron_async.Client, bench: Bench, idle: IdleStrategy
) -> None:
    subscription = bench.add_subscription(idle=idle)
    stream = bench.add_image(subscription)
    received: list[bytes] = []
    for number in range(20):
        with anyio.move_on_after(0.001 * (number % 3)):
            received.append(await anext(subscription.payloads()))
        stream.log.append(b"%d" % number)
    with anyio.fail_after(30):
        async for payload in subscription.payloads():
            received.append(payload)
            if len(received) == 20:
                break
    assert received == [b"%d" % number for number in range(20)]


@pytest.mark.anyio
async def test_closing_wakes_whoever_waits_however_long_the_sleep(client: aeron_async.Client, bench: Bench) -> None:
    for idle in (Sleeping(3600), Backoff(min_park=3600, max_park=3600), *STRATEGIES):
        subscription = bench.add_subscription(idle=idle)
        bench.add_image(subscription)
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_read_to_the_end, subscription)
                await anyio.sleep(0.002)
                subscription._close()


async def _read_to_the_end(subscription: aeron_async.Subscription) -> None:
    assert [payload async for payload in subscription.payloads()] == []


@pytest.mark.anyio
async def test_other_tasks_run_while_a_reader_waits(
    client: aeron_async.Client, bench: Bench, idle: IdleStrategy
) -> None:
    subscription = bench.add_subscription(idle=idle)
    bench.add_image(subscription)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read_to_the_end, subscription)
        for _ in range(10):
            await anyio.sleep(0.001)
        subscription._close()


@pytest.mark.anyio
async def test_a_publisher_waits_by_the_strategy_of_its_client(driver: FakeDriver, idle: IdleStrategy) -> None:
    driver.beat()
    async with aeron_async.connect(driver.aeron_dir, driver_timeout=60.0, idle=idle) as client:
        bench = Bench(driver, client._session.conductor)
        log = driver.create_log()
        log.is_connected = False
        publication, _, limit = bench.add_publication(log, limit=0)
        positions: list[int] = []

        async def publish() -> None:
            await publication.wait_connected()
            positions.append(await publication.publish(b"message"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(publish)
            await anyio.sleep(0.005)
            log.is_connected = True
            await anyio.sleep(0.005)
            assert positions == []
            limit.value = 64
        assert positions == [64]


@pytest.mark.anyio
async def test_what_is_no_strategy_is_refused(client: aeron_async.Client, anyio_backend: Any) -> None:
    strategy: Any = Parking
    with pytest.raises(TypeError, match="idle must be an IdleStrategy"):
        aeron_async.connect(client.aeron_dir, idle=strategy)
    with pytest.raises(TypeError, match="idle must be an IdleStrategy"):
        await client.add_subscription(IPC, STREAM_ID, idle=strategy)

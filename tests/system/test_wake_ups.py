"""Waking parked readers: by publishers of this library, in any process, and by the watcher where nobody signals."""

from __future__ import annotations

import os
import signal
import stat
import struct
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

import aeron_async
from aeron_async import (
    Backoff,
    BusySpin,
    Client,
    CounterInfo,
    IdleStrategy,
    Parking,
    Publication,
    Sleeping,
    Subscription,
    Yielding,
)
from aeron_async._native import lib
from tests.support import LIMIT, RUNNERS, Program, eventually, running_driver, scratch_folder

pytestmark = pytest.mark.anyio

IPC = "aeron:ipc"
WAKE_TYPE_ID = 20861

STRATEGIES = [Parking(), Parking(spin=0), BusySpin(), Yielding(), Sleeping(0.001), Backoff()]

# Gives every message back, now and then after a little while.
ECHO = """
import random, sys, anyio, aeron_async
from aeron_async import *

async def main():
    aeron_dir, stream_id, count, idle = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), eval(sys.argv[4])
    async with (
        aeron_async.connect(aeron_dir, idle=idle) as client,
        await client.add_subscription("aeron:ipc", stream_id) as requests,
        await client.add_publication("aeron:ipc", stream_id + 1) as replies,
    ):
        await replies.wait_connected(30)
        random.seed(3)
        async for request in requests.payloads():
            if random.random() < 0.1:
                await anyio.sleep(random.random() * 0.0005)
            await replies.publish(request)
            if int(request) == count - 1:
                break
        while replies.is_connected:
            await anyio.sleep(0.01)

"""

# Waits for messages that never come.
READER = """
import sys, anyio, aeron_async

async def main():
    async with (
        aeron_async.connect(sys.argv[1], idle=aeron_async.Parking(spin=0)) as client,
        await client.add_subscription("aeron:ipc", int(sys.argv[2])) as subscription,
    ):
        async for _ in subscription:
            pass

"""

# Publishes so many messages as fast as they are taken.
FLOOD = """
import sys, anyio, aeron_async

async def main():
    async with (
        aeron_async.connect(sys.argv[1]) as client,
        await client.add_publication("aeron:ipc", int(sys.argv[2])) as publication,
    ):
        await publication.wait_connected(30)
        await publication.publish_many((b"%d" % number for number in range(int(sys.argv[3]))), timeout=100)
        while publication.is_connected:
            await anyio.sleep(0.01)

"""


@pytest.fixture
def runner(anyio_backend: tuple[str, dict[str, Any]]) -> str:
    """How a program runs its `main` on the loop that the test has."""
    name, options = anyio_backend
    return RUNNERS["uvloop" if options.get("use_uvloop") else name]


@pytest.fixture
def stream_id(stream_id: int) -> int:
    """A stream id that no other test uses, nor the next one."""
    return 2 * stream_id


def wake_counters(client: Client, stream_id: int) -> list[CounterInfo]:
    key = struct.pack("<i", stream_id)
    return [info for info in client.counters.find(type_id=WAKE_TYPE_ID) if info.key[:4] == key]


def is_parked(client: Client, stream_id: int) -> bool:
    """Whether a reader of the stream asks to be woken."""
    return any(info.value == info.registration_id for info in wake_counters(client, stream_id))


def fifos(aeron_dir: Path) -> set[str]:
    folder = aeron_dir.with_name(f"{aeron_dir.name}.wake")
    return set(os.listdir(folder)) if folder.exists() else set()


def writes_so_far() -> int:
    """How many system calls of this process were of the kind of `write`."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["syscw"])


async def read_one(subscription: Subscription, received: list[bytes]) -> None:
    received.append(await anext(subscription.payloads()))


async def is_signalled_by(publication: Publication, subscription: Subscription, client: Client) -> bool:
    """Whether a message of the publication takes the wake counter of the parked reader down."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_one, subscription, [])
        await eventually(lambda: is_parked(client, subscription.stream_id))
        assert publication.offer(b"message") > 0
        return not is_parked(client, subscription.stream_id)


# --- no message waits for ever ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("idle", STRATEGIES, ids=repr)
async def test_messages_between_processes_meet_their_readers_in_every_moment(
    aeron_dir: Path, stream_id: int, idle: IdleStrategy, runner: str
) -> None:
    count = 3000 if isinstance(idle, Parking) else 200
    with Program(ECHO + runner, aeron_dir, stream_id, count, repr(idle)):
        async with (
            aeron_async.connect(aeron_dir, idle=idle) as client,
            await client.add_subscription(IPC, stream_id + 1) as replies,
            await client.add_publication(IPC, stream_id) as requests,
        ):
            await requests.wait_connected(LIMIT)
            received = replies.payloads()
            with anyio.fail_after(100):
                for number in range(count):
                    await requests.publish(b"%d" % number)
                    assert await anext(received) == b"%d" % number


@pytest.mark.parametrize("is_direct", [True, False], ids=["direct", "unsignalled"])
async def test_a_reader_is_woken_also_by_who_signals_nobody(client: Client, stream_id: int, is_direct: bool) -> None:
    async with (
        await client.add_subscription(IPC, stream_id, idle=Parking(spin=0)) as subscription,
        await client.add_publication(IPC, stream_id) as publication,
    ):
        for _ in range(50):
            received: list[bytes] = []
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read_one, subscription, received)
                await eventually(lambda: is_parked(client, stream_id))
                if not is_direct:
                    # As publishers of other libraries are.
                    lib.aa_publication_remove_waiter(publication._handle, 0)
                assert publication.offer(b"message") > 0
                assert is_parked(client, stream_id) is not is_direct
            assert received == [b"message"]


@pytest.mark.parametrize("idle", [Parking(), Parking(spin=0)])
async def test_c10_a_reader_waits_for_a_second_without_burning_a_core_and_is_woken(
    client: Client, stream_id: int, idle: IdleStrategy
) -> None:
    async with (
        await client.add_subscription(IPC, stream_id, idle=idle) as subscription,
        await client.add_publication(IPC, stream_id) as publication,
    ):
        received: list[bytes] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read_one, subscription, received)
            await eventually(lambda: is_parked(client, stream_id))
            # Of all threads of this process: somebody who spins uses a second of it.
            used = time.process_time()
            await anyio.sleep(1)
            assert time.process_time() - used < 0.5
            await publication.publish(b"message", timeout=LIMIT)
        assert received == [b"message"]


async def test_many_readers_wait_at_once(client: Client, stream_id: int) -> None:
    received: list[bytes] = []
    subscriptions = [await client.add_subscription(IPC, stream_id + number % 2) for number in range(20)]
    publications = [await client.add_publication(IPC, stream_id + number) for number in range(2)]
    for number in range(20):
        async with anyio.create_task_group() as tasks:
            for subscription in subscriptions:
                await subscription.wait_connected(LIMIT)
                tasks.start_soon(read_one, subscription, received)
            await anyio.sleep(0.002 * (number % 3))
            for publication in publications:
                assert publication.offer(b"%d" % number) > 0
        assert received == [b"%d" % number] * 20
        received.clear()
    for resource in (*subscriptions, *publications):
        await resource.aclose()


# --- wake counters ----------------------------------------------------------------------------------------------------


async def test_a_stream_that_is_waited_for_has_one_wake_counter_a_client(
    client: Client, other_client: Client, stream_id: int
) -> None:
    publication = await client.add_publication(IPC, stream_id)
    first = await client.add_subscription(IPC, stream_id, idle=Parking(spin=0))
    second = await client.add_subscription(IPC, stream_id, idle=Parking(spin=0))
    received: list[bytes] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_one, first, received)
        tasks.start_soon(read_one, second, received)
        await eventually(lambda: is_parked(other_client, stream_id))
        (info,) = wake_counters(other_client, stream_id)
        assert info.label == f"aeron_async wake: {stream_id}"
        assert info.owner_id == client.client_id
        assert publication.offer(b"message") > 0
    assert [info.value for info in wake_counters(other_client, stream_id)] == [0]
    await first.aclose()
    assert [info.id for info in wake_counters(other_client, stream_id)] == [info.id]
    await second.aclose()
    await eventually(lambda: not wake_counters(other_client, stream_id))
    await publication.aclose()


async def test_who_never_waits_has_no_wake_counter_and_no_fifo(aeron_dir: Path, stream_id: int) -> None:
    async with (
        aeron_async.connect(aeron_dir) as client,
        await client.add_subscription(IPC, stream_id) as subscription,
        await client.add_publication(IPC, stream_id) as publication,
    ):
        await publication.wait_connected()
        assert publication.offer(b"message") > 0
        await eventually(lambda: subscription.poll_batch())
        assert wake_counters(client, stream_id) == []
        assert str(client.client_id) not in fifos(aeron_dir)


async def test_other_clients_handlers_hear_of_wake_counters(aeron_dir: Path, client: Client, stream_id: int) -> None:
    seen: list[str] = []
    gone: list[CounterInfo] = []
    async with (
        aeron_async.connect(
            aeron_dir,
            on_available_counter=lambda info: seen.append(info.label),
            on_unavailable_counter=gone.append,
        ),
        await client.add_publication(IPC, stream_id),
    ):
        async with await client.add_subscription(IPC, stream_id) as subscription:
            with anyio.move_on_after(0.05):
                await anext(aiter(subscription))
            await eventually(lambda: f"aeron_async wake: {stream_id}" in seen)
        await eventually(lambda: gone)


async def test_a_publication_knows_readers_that_came_before_it(
    client: Client, other_client: Client, stream_id: int
) -> None:
    async with (
        await client.add_subscription(IPC, stream_id, idle=Parking(spin=0)) as subscription,
        await other_client.add_publication(IPC, stream_id) as first,
    ):
        with anyio.fail_after(LIMIT):
            # Until the news of the counter has reached the publisher, the reader's watcher wakes it.
            while not await is_signalled_by(first, subscription, client):
                await anyio.sleep(0.01)
        later = await other_client.add_exclusive_publication(IPC, stream_id)
        await eventually(lambda: subscription.image_count == 2)
        assert await is_signalled_by(later, subscription, client)


async def test_a_dead_reader_costs_one_signal(aeron_dir: Path, client: Client, stream_id: int, runner: str) -> None:
    async with await client.add_publication(IPC, stream_id) as publication:
        with Program(READER + runner, aeron_dir, stream_id) as program:
            await publication.wait_connected(LIMIT)
            await eventually(lambda: is_parked(client, stream_id))
            await anyio.sleep(0.1)
            program.signal(signal.SIGKILL)
            program.finish()
            before = writes_so_far()
            for _ in range(100):
                assert publication.offer(b"message") > 0
            assert writes_so_far() == before + 1


async def test_publishing_makes_no_system_call_where_nobody_waits(client: Client, stream_id: int) -> None:
    async with (
        await client.add_subscription(IPC, stream_id) as subscription,
        await client.add_publication(IPC, stream_id) as publication,
    ):
        await publication.wait_connected()
        with anyio.move_on_after(0.05):
            await anext(aiter(subscription))
        await eventually(lambda: wake_counters(client, stream_id))
        before = writes_so_far()
        for _ in range(200):
            assert publication.offer(b"message") > 0
            assert len(subscription.poll_batch()) == 1
        assert writes_so_far() == before


# --- the folder of the FIFOs ------------------------------------------------------------------------------------------


async def test_the_folder_is_private_and_goes_with_the_last_client(stream_id: int) -> None:
    with running_driver() as driver:
        folder = driver.aeron_dir.with_name(f"{driver.aeron_dir.name}.wake")
        async with aeron_async.connect(driver.aeron_dir) as client:
            await wait_a_moment(client, stream_id)
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            assert stat.filemode((folder / str(client.client_id)).stat().st_mode) == "prw-------"
            (folder / "4711").touch()
            os.mkfifo(folder / "4712", 0o600)
            async with aeron_async.connect(driver.aeron_dir) as other:
                await wait_a_moment(other, stream_id)
                assert fifos(driver.aeron_dir) == {str(client.client_id), str(other.client_id), "4711"}
            (folder / "4711").unlink()
            assert fifos(driver.aeron_dir) == {str(client.client_id)}
        assert not folder.exists()


async def test_a_shared_driver_takes_the_folder_of_killed_clients_with_it(stream_id: int, runner: str) -> None:
    with scratch_folder() as folder:
        aeron_dir = folder / "driver"
        reader = READER.replace("sys.argv[1],", "sys.argv[1], driver='shared',")
        with Program(reader + runner, aeron_dir, stream_id) as program:
            async with (
                aeron_async.connect(aeron_dir, driver="shared") as client,
                await client.add_publication(IPC, stream_id) as publication,
            ):
                await publication.wait_connected(LIMIT)
                await eventually(lambda: is_parked(client, stream_id))
            program.signal(signal.SIGKILL)
            program.finish()
        assert fifos(aeron_dir)
        await eventually(lambda: os.listdir(folder) == [])


@pytest.mark.parametrize("obstacle", ["file", "link", "open to others"])
async def test_where_the_folder_cannot_be_had_the_watcher_wakes_everybody(
    stream_id: int, tmp_path: Path, obstacle: str
) -> None:
    with running_driver() as driver:
        folder = driver.aeron_dir.with_name(f"{driver.aeron_dir.name}.wake")
        match obstacle:
            case "file":
                folder.touch()
            case "link":
                folder.symlink_to(tmp_path)
            case _:
                folder.mkdir()
                folder.chmod(0o755)
        async with (
            aeron_async.connect(driver.aeron_dir) as client,
            await client.add_subscription(IPC, stream_id) as subscription,
            await client.add_publication(IPC, stream_id) as publication,
        ):
            received: list[bytes] = []
            for number in range(3):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(read_one, subscription, received)
                    await anyio.sleep(0.01)
                    await publication.publish(b"%d" % number)
            assert received == [b"0", b"1", b"2"]
            assert wake_counters(client, stream_id) == []
        assert list(tmp_path.iterdir()) == []


async def wait_a_moment(client: Client, stream_id: int) -> None:
    async with (
        await client.add_subscription(IPC, stream_id) as subscription,
        await client.add_publication(IPC, stream_id),
    ):
        with anyio.move_on_after(0.05):
            await anext(aiter(subscription))


# --- fairness ---------------------------------------------------------------------------------------------------------


class Ticks:
    """A task that would run every 10 ms."""

    def __init__(self) -> None:
        self.count = 0

    async def run(self) -> None:
        while True:
            await anyio.sleep(0.01)
            self.count += 1


async def test_other_tasks_run_while_a_million_messages_arrive(aeron_dir: Path, stream_id: int, runner: str) -> None:
    count, received, ticks = 1_000_000, 0, Ticks()
    with Program(FLOOD + runner, aeron_dir, stream_id, count):
        async with (
            aeron_async.connect(aeron_dir) as client,
            await client.add_subscription(IPC, stream_id) as subscription,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(ticks.run)
            async for payload in subscription.payloads():
                assert payload == b"%d" % received
                received += 1
                if received == count:
                    break
            tasks.cancel_scope.cancel()
    assert ticks.count > 10


@pytest.mark.parametrize("idle", [BusySpin(), Yielding(), Parking(spin=3600)], ids=repr)
async def test_other_tasks_run_while_one_spins(client: Client, stream_id: int, idle: IdleStrategy) -> None:
    ticks = Ticks()
    async with (
        await client.add_subscription(IPC, stream_id, idle=idle) as subscription,
        await client.add_publication(IPC, stream_id) as publication,
        anyio.create_task_group() as tasks,
    ):
        await subscription.wait_connected()
        received: list[bytes] = []
        tasks.start_soon(read_one, subscription, received)
        tasks.start_soon(ticks.run)
        await eventually(lambda: ticks.count > 10)
        assert publication.offer(b"message") > 0
        await eventually(lambda: received)
        tasks.cancel_scope.cancel()


async def test_readers_that_answer_each_other_at_once_let_others_run(client: Client, stream_id: int) -> None:
    ticks = Ticks()
    async with (
        await client.add_subscription(IPC, stream_id) as requests,
        await client.add_subscription(IPC, stream_id + 1) as replies,
        await client.add_publication(IPC, stream_id) as to_server,
        await client.add_publication(IPC, stream_id + 1) as to_client,
        anyio.create_task_group() as tasks,
    ):
        await requests.wait_connected()
        await replies.wait_connected()
        answered = 0

        async def answer(requests: Subscription, publication: Publication) -> None:
            async for request in requests.payloads():
                await publication.publish(request)

        tasks.start_soon(answer, requests, to_client)
        tasks.start_soon(ticks.run)
        await to_server.publish(b"ball")
        async for ball in replies.payloads():
            answered += 1
            await to_server.publish(ball)
            if ticks.count > 10:
                break
        tasks.cancel_scope.cancel()
    assert answered > 10

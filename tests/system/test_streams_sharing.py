"""Many publishers on one stream, and many tasks on one event loop."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count

import anyio
import anyio.to_thread
import pytest

from aeron_async import Client, Publication, Subscription
from tests.support import LIMIT, Program, open_pair, sealed, take, unseal

pytestmark = pytest.mark.anyio

PUBLISHERS = 3
MESSAGES = 400


def lengths(publisher: int) -> Iterator[int]:
    """The lengths of a publisher's messages; some are fragmented."""
    return iter([3000 if (number + publisher) % 20 == 0 else number % 200 for number in range(MESSAGES)])


async def check_all(subscription: Subscription) -> None:
    """Reads what all publishers send: every message of each once, in order, and whole."""
    expected = [count() for _ in range(PUBLISHERS)]
    for payload in await take(subscription.payloads(), PUBLISHERS * MESSAGES):
        publisher, number = unseal(payload)
        assert number == next(expected[publisher])
    assert [next(numbers) for numbers in expected] == [MESSAGES] * PUBLISHERS
    assert len(subscription.poll_batch()) == 0


async def test_tasks_share_a_publication(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)

    async def publish(publisher: int) -> None:
        for number, length in enumerate(lengths(publisher)):
            await publication.publish(sealed(publisher, number, length), timeout=LIMIT)

    async with anyio.create_task_group() as tasks:
        for publisher in range(PUBLISHERS):
            tasks.start_soon(publish, publisher)
        await check_all(subscription)


async def test_threads_share_a_publication(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    give_up = threading.Event()

    def publish(publisher: int) -> None:
        for number, length in enumerate(lengths(publisher)):
            message = sealed(publisher, number, length)
            while publication.offer(message) < 0 and not give_up.is_set():
                time.sleep(0.0005)

    async with anyio.create_task_group() as tasks:
        for publisher in range(PUBLISHERS):
            tasks.start_soon(anyio.to_thread.run_sync, publish, publisher)
        try:
            await check_all(subscription)
        finally:
            give_up.set()


PUBLISH = """
    import sys
    import anyio
    from aeron_async import connect
    from tests.support import LIMIT, sealed
    from tests.system.test_streams_sharing import lengths

    async def main():
        aeron_dir, channel, stream_id, publisher = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
        async with connect(aeron_dir) as client:
            publication = await client.add_publication(channel, stream_id)
            await publication.wait_connected(LIMIT)
            print("ready", publication.session_id, flush=True)
            sys.stdin.readline()
            for number, length in enumerate(lengths(publisher)):
                await publication.publish(sealed(publisher, number, length), timeout=LIMIT)
            print("done", flush=True)
            sys.stdin.readline()

    anyio.run(main)
"""


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_processes_share_a_publication(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    with ExitStack() as programs:
        publishers = [
            programs.enter_context(Program(PUBLISH, client.aeron_dir, channel, stream_id, publisher))
            for publisher in range(PUBLISHERS)
        ]
        for publisher in publishers:
            assert await anyio.to_thread.run_sync(publisher.line) == f"ready {publication.session_id}"
        for publisher in publishers:
            publisher.tell("go")
        await check_all(subscription)
        for publisher in publishers:
            assert await anyio.to_thread.run_sync(publisher.line) == "done"
            publisher.tell("end")
        for publisher in publishers:
            assert await anyio.to_thread.run_sync(publisher.finish) == 0, publisher.errors


async def test_other_tasks_get_their_turns_beside_a_busy_stream(client: Client, stream_id: int) -> None:
    publication, subscription = await open_pair(client, "aeron:ipc", stream_id)
    turns = 0

    async def publish_without_end() -> None:
        while True:
            await publication.publish(b"busy", timeout=None)

    async def read_without_end() -> None:
        async for _ in subscription:
            pass

    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(publish_without_end)
            tasks.start_soon(read_without_end)
            # Timers too: 100 of these turns come through the clock.
            while turns < 100:
                await anyio.sleep(0.001)
                turns += 1
            tasks.cancel_scope.cancel()
    assert turns == 100
    assert publication.position > 100_000


async def test_a_busy_reader_alone_lets_others_run(client: Client, stream_id: int) -> None:
    publication, subscription = await open_pair(client, "aeron:ipc", stream_id)
    stop = threading.Event()

    def publish_from_a_thread(publication: Publication) -> None:
        while not stop.is_set():
            publication.offer_many([b"busy"] * 50)

    async def read_without_end() -> None:
        async for _ in subscription.payloads():
            pass

    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, publish_from_a_thread, publication)
            tasks.start_soon(read_without_end)
            try:
                for _ in range(50):
                    await anyio.sleep(0.001)
            finally:
                stop.set()
            tasks.cancel_scope.cancel()
    assert subscription.images[0].position > 0

"""Claims beside offers on one publication, from many threads and processes, some of them given up."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from itertools import count

import anyio
import anyio.to_thread
import pytest

from aeron_async import BufferClaim, Client, OfferResult, Publication, Subscription
from tests.support import Program, open_pair, sealed, take, unseal

pytestmark = pytest.mark.anyio

PUBLISHERS = 3
MESSAGES = 400


def try_claim(publication: Publication, length: int, give_up: threading.Event) -> BufferClaim | None:
    while not give_up.is_set():
        claim = publication.try_claim(length)
        if isinstance(claim, BufferClaim):
            return claim
        assert claim in (OfferResult.BACK_PRESSURED, OfferResult.ADMIN_ACTION)
        time.sleep(0.0005)
    return None


def publish(publication: Publication, publisher: int, give_up: threading.Event) -> None:
    """Publishes sealed messages, most of them by claims, and gives up claims with nonsense in between."""
    for number in range(MESSAGES):
        message = sealed(publisher, number, number % 500)
        if number % 5 == 0:
            nonsense = try_claim(publication, len(message), give_up)
            if nonsense is not None:
                nonsense.buffer[:] = b"?" * len(message)
                if number % 10 == 0:
                    nonsense.abort()
                del nonsense
        if number % 3 == 0:
            while publication.offer(message) < 0 and not give_up.is_set():
                time.sleep(0.0005)
        else:
            claim = try_claim(publication, len(message), give_up)
            if claim is not None:
                with claim:
                    claim.buffer[:] = message


async def check_all(subscription: Subscription) -> None:
    """Every message of each publisher once, in order, and whole; and none that was given up."""
    expected = [count() for _ in range(PUBLISHERS)]
    for payload in await take(subscription.payloads(), PUBLISHERS * MESSAGES):
        publisher, number = unseal(payload)
        assert number == next(expected[publisher])
    assert [next(numbers) for numbers in expected] == [MESSAGES] * PUBLISHERS
    assert len(subscription.poll_batch()) == 0


async def test_threads_claim_on_a_shared_publication(client: Client, channel: str, stream_id: int) -> None:
    publication, subscription = await open_pair(client, channel, stream_id)
    give_up = threading.Event()
    async with anyio.create_task_group() as tasks:
        for publisher in range(PUBLISHERS):
            tasks.start_soon(anyio.to_thread.run_sync, publish, publication, publisher, give_up)
        try:
            await check_all(subscription)
        finally:
            give_up.set()


PUBLISH = """
    import sys
    import threading
    import anyio
    from aeron_async import connect
    from tests.support import LIMIT
    from tests.system.test_claims_sharing import publish

    async def main():
        aeron_dir, channel, stream_id, publisher = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
        async with connect(aeron_dir) as client:
            publication = await client.add_publication(channel, stream_id)
            await publication.wait_connected(LIMIT)
            print("ready", flush=True)
            await anyio.to_thread.run_sync(sys.stdin.readline)
            await anyio.to_thread.run_sync(publish, publication, publisher, threading.Event())
            print("done", flush=True)
            await anyio.to_thread.run_sync(sys.stdin.readline)

    anyio.run(main)
"""


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_processes_claim_on_a_shared_publication(client: Client, channel: str, stream_id: int) -> None:
    _, subscription = await open_pair(client, channel, stream_id)
    with ExitStack() as programs:
        publishers = [
            programs.enter_context(Program(PUBLISH, client.aeron_dir, channel, stream_id, publisher))
            for publisher in range(PUBLISHERS)
        ]
        for publisher in publishers:
            assert await anyio.to_thread.run_sync(publisher.line) == "ready"
        for publisher in publishers:
            publisher.tell("go")
        await check_all(subscription)
        for publisher in publishers:
            assert await anyio.to_thread.run_sync(publisher.line) == "done"
            publisher.tell("end")
        for publisher in publishers:
            assert await anyio.to_thread.run_sync(publisher.finish) == 0, publisher.errors

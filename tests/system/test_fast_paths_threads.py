"""Threads that publish runs of messages at once, and threads that read: each thread's messages come once, in order."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import anyio
import anyio.to_thread
import numpy as np
import pytest

from aeron_async import Client, Publication, Subscription
from tests.support import LIMIT, open_pair

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]

MESSAGES = 2000
RECORD = struct.Struct("<HI26x")

# --- publishing -------------------------------------------------------------------------------------------------------

OfferSome = Callable[[Publication, list[bytes]], int]
"""Offers messages; how many were appended, or an `OfferResult`."""


def by_claim(publication: Publication, messages: list[bytes]) -> int:
    claim = publication.try_claim(len(messages[0]))
    if isinstance(claim, int):
        return claim
    with claim:
        claim.buffer[:] = messages[0]
    return 1


OFFERS: list[OfferSome] = [
    lambda publication, messages: min(1, publication.offer(messages[0])),
    lambda publication, messages: publication.offer_many(messages),
    lambda publication, messages: publication.offer_many(list(map(bytearray, messages))),
    lambda publication, messages: publication.offer_array(np.array(messages, dtype=f"V{RECORD.size}")),
    lambda publication, messages: publication.offer_repeated(messages[0], 1),
    by_claim,
]


@contextmanager
def publishing(publication: Publication) -> Iterator[None]:
    """Each of the offers in a thread of its own."""
    give_up = threading.Event()
    errors: list[BaseException] = []

    def publish(publisher: int, offer: OfferSome) -> None:
        rest = [RECORD.pack(publisher, number) for number in range(MESSAGES)]
        try:
            while rest and not give_up.is_set():
                taken = offer(publication, rest[: 1 + len(rest) % 100])
                if taken < 0:
                    time.sleep(0.0002)
                del rest[: max(0, taken)]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=publish, args=pair) for pair in enumerate(OFFERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        give_up.set()
        for thread in threads:
            thread.join()
    assert errors == []


def numbers_of(received: list[bytes]) -> list[list[int]]:
    """The numbers of each thread's messages."""
    numbers: list[list[int]] = [[] for _ in OFFERS]
    for payload in received:
        publisher, number = RECORD.unpack(payload)
        numbers[publisher].append(number)
    return numbers


EVERYTHING = [list(range(MESSAGES))] * len(OFFERS)


TOTAL = MESSAGES * len(OFFERS)

# --- reading ----------------------------------------------------------------------------------------------------------


async def by_payloads(subscription: Subscription) -> list[bytes]:
    received: list[bytes] = []
    async for payload in subscription.payloads():
        received.append(payload)
        if len(received) == TOTAL:
            break
    return received


async def by_batches(subscription: Subscription) -> list[bytes]:
    received: list[bytes] = []
    async for batch in subscription.batches():
        received += batch
        if len(received) == TOTAL:
            break
    return received


def in_thread(read: Callable[[Subscription, list[bytes]], object]) -> Callable[[Subscription], Awaitable[list[bytes]]]:
    """Reads in another thread than the client's loop, until everything is there."""

    def work(subscription: Subscription) -> list[bytes]:
        received: list[bytes] = []
        deadline = time.monotonic() + LIMIT
        while len(received) < TOTAL and time.monotonic() < deadline:
            read(subscription, received)
        return received

    return lambda subscription: anyio.to_thread.run_sync(work, subscription)


READS: dict[str, Callable[[Subscription], Awaitable[list[bytes]]]] = {
    "payloads": by_payloads,
    "batches": by_batches,
    "poll_batch in a thread": in_thread(lambda subscription, received: received.extend(subscription.poll_batch(100))),
    "poll in a thread": in_thread(
        lambda subscription, received: subscription.poll(lambda payload, _: received.append(bytes(payload)), 100)
    ),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_threads_publish_runs_while_another_reads(
    client: Client, stream_id: int, read: Callable[[Subscription], Awaitable[list[bytes]]]
) -> None:
    publication, subscription = await open_pair(client, "aeron:ipc", stream_id)
    with anyio.fail_after(2 * LIMIT), publishing(publication):
        received = await read(subscription)
    assert numbers_of(received) == EVERYTHING
    assert subscription.images[0].position == publication.position
    assert len(subscription.poll_batch()) == 0


async def test_of_threads_that_read_at_once_one_does_and_the_others_are_refused(client: Client, stream_id: int) -> None:
    publication, subscription = await open_pair(client, "aeron:ipc", stream_id)
    received: list[tuple[int, bytes]] = []
    errors: list[BaseException] = []

    def poll() -> None:
        subscription.poll(lambda payload, header: received.append((header.position, bytes(payload))), 50)

    def poll_batch() -> None:
        batch = subscription.poll_batch(50)
        received.extend(zip(batch.stream_positions.tolist(), batch, strict=True))

    def work(read: Callable[[], None]) -> None:
        deadline = time.monotonic() + LIMIT
        while len(received) < TOTAL and time.monotonic() < deadline:
            try:
                read()
            except RuntimeError as error:
                if "only one may read" not in str(error):
                    errors.append(error)
                    return

    with anyio.fail_after(2 * LIMIT), publishing(publication):
        async with anyio.create_task_group() as tasks:
            for read in (poll, poll_batch):
                tasks.start_soon(anyio.to_thread.run_sync, work, read)
    assert errors == []
    assert numbers_of([payload for _, payload in sorted(received)]) == EVERYTHING
    assert len({position for position, _ in received}) == TOTAL


def read_until(stop: threading.Event, subscription: Subscription, received: list[bytes]) -> None:
    while not stop.is_set():
        received.extend(subscription.poll_batch(100))
        subscription.poll(lambda payload, _: received.append(bytes(payload)), 100)


async def test_closing_while_threads_publish_and_read_is_safe(client: Client, stream_id: int) -> None:
    for turn in range(5):
        publication, subscription = await open_pair(client, "aeron:ipc", stream_id)
        received: list[bytes] = []
        stop = threading.Event()
        thread = threading.Thread(target=read_until, args=(stop, subscription, received))
        thread.start()
        try:
            with publishing(publication):
                await anyio.sleep(0.005 * turn)
                first, second = (subscription, publication) if turn % 2 else (publication, subscription)
                await first.aclose()
                await second.aclose()
        finally:
            stop.set()
            thread.join()
        assert all(numbers == list(range(len(numbers))) for numbers in numbers_of(received))

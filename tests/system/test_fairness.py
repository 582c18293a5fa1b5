"""A stream that never pauses leaves the event loop to others in between. Measured in messages, not in time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from aeron_async import Client, Publication, Subscription
from tests.support import LIMIT, Program

pytestmark = pytest.mark.anyio

MILLION = 1_000_000

CHANNEL = "aeron:ipc?term-length=4m"

MESSAGE = b"no message waits for any other.."

# More than what is delivered or published in a turn of the loop, and far less than what an unfair stream would.
TURN_MESSAGES = 4096

# What passes in 10 ms on the fastest machine, and half of what an unfair stream would let pass.
HEARTBEAT_MESSAGES = MILLION // 2

PUBLISHER = """
    import sys, time
    import anyio
    import aeron_async

    async def main(aeron_dir, channel, stream_id, message, count):
        async with (
            aeron_async.connect(aeron_dir) as client,
            await client.add_exclusive_publication(channel, int(stream_id)) as publication,
        ):
            await publication.wait_connected(30)
            left = int(count)
            while left:
                taken = publication.offer_repeated(message.encode(), min(left, 256))
                left -= max(0, taken)
                if taken < 0:
                    time.sleep(0)

    anyio.run(main, *sys.argv[1:])
"""

CONSUMER = """
    import sys, time
    import anyio
    import aeron_async

    async def main(aeron_dir, channel, stream_id, count):
        async with (
            aeron_async.connect(aeron_dir) as client,
            await client.add_subscription(channel, int(stream_id)) as subscription,
        ):
            print("subscribed", flush=True)
            await subscription.wait_connected(30)
            left = int(count)
            while left:
                taken = len(subscription.poll_batch())
                left -= taken
                if not taken:
                    time.sleep(0)

    anyio.run(main, *sys.argv[1:])
"""


class Stream:
    """How far a stream has come, and how far it came at most from one look of another task at it to the next."""

    def __init__(self) -> None:
        self.messages = 0
        self.longest_run = 0
        self._seen = 0

    def look(self) -> None:
        self.longest_run = max(self.longest_run, self.messages - self._seen)
        self._seen = self.messages

    async def run(self, work: Awaitable[None], pause: Callable[[], Awaitable[object]]) -> None:
        """Runs `work`, beside a task that looks after each `pause`."""

        async def watch() -> None:
            while True:
                await pause()
                self.look()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await work
            tasks.cancel_scope.cancel()
        self.look()


async def receive_messages(subscription: Subscription, stream: Stream, count: int) -> None:
    async for _ in subscription:
        stream.messages += 1
        if stream.messages == count:
            break


async def receive_payloads(subscription: Subscription, stream: Stream, count: int) -> None:
    async for _ in subscription.payloads():
        stream.messages += 1
        if stream.messages == count:
            break


async def receive_batches(subscription: Subscription, stream: Stream, count: int) -> None:
    async for batch in subscription.batches():
        stream.messages += len(batch)
        if stream.messages == count:
            break


async def publish_each(publication: Publication, stream: Stream, count: int) -> None:
    for _ in range(count):
        await publication.publish(MESSAGE, timeout=LIMIT)
        stream.messages += 1


async def publish_many(publication: Publication, stream: Stream, count: int) -> None:
    def messages() -> Iterator[bytes]:
        for _ in range(count):
            stream.messages += 1
            yield MESSAGE

    await publication.publish_many(messages(), timeout=LIMIT)


async def publish_arrays(publication: Publication, stream: Stream, count: int) -> None:
    records = MESSAGE * 100
    for _ in range(count // 100):
        await publication.publish_array(records, itemsize=len(MESSAGE), timeout=LIMIT)
        stream.messages += 100


heartbeat = partial(anyio.sleep, 0.01)
turn = anyio.lowlevel.checkpoint

RECEIVE = [receive_messages, receive_payloads, receive_batches]
PUBLISH = [publish_each, publish_many, publish_arrays]

Receive = Callable[[Subscription, Stream, int], Awaitable[None]]
Publish = Callable[[Publication, Stream, int], Awaitable[None]]


async def received(
    client: Client, stream_id: int, receive: Receive, count: int, pause: Callable[[], Awaitable[object]]
) -> Stream:
    """The stream that another process publishes flat out, once it has been received."""
    stream = Stream()
    async with await client.add_subscription(CHANNEL, stream_id) as subscription:
        with Program(PUBLISHER, client.aeron_dir, CHANNEL, stream_id, MESSAGE.decode(), count) as publisher:
            await stream.run(receive(subscription, stream, count), pause)
            assert await anyio.to_thread.run_sync(publisher.finish) == 0, publisher.errors
    assert stream.messages == count
    return stream


async def published(
    client: Client, stream_id: int, publish: Publish, count: int, pause: Callable[[], Awaitable[object]]
) -> Stream:
    """The stream that another process receives, once it has been published flat out."""
    stream = Stream()
    with Program(CONSUMER, client.aeron_dir, CHANNEL, stream_id, count) as consumer:
        assert await anyio.to_thread.run_sync(consumer.line) == "subscribed"
        async with await client.add_publication(CHANNEL, stream_id) as publication:
            await stream.run(publish(publication, stream, count), pause)
            assert await anyio.to_thread.run_sync(consumer.finish) == 0, consumer.errors
    assert stream.messages == count
    return stream


@pytest.mark.parametrize("receive", RECEIVE)
async def test_a_heartbeat_goes_on_while_a_million_messages_are_received(
    client: Client, stream_id: int, receive: Receive
) -> None:
    stream = await received(client, stream_id, receive, MILLION, heartbeat)
    assert stream.longest_run < HEARTBEAT_MESSAGES


@pytest.mark.parametrize("receive", RECEIVE)
async def test_a_ready_task_runs_again_after_a_few_messages_were_received(
    client: Client, stream_id: int, receive: Receive
) -> None:
    stream = await received(client, stream_id, receive, MILLION // 20, turn)
    assert stream.longest_run < TURN_MESSAGES


async def test_a_heartbeat_goes_on_while_a_million_messages_are_published(client: Client, stream_id: int) -> None:
    stream = await published(client, stream_id, publish_each, MILLION, heartbeat)
    assert stream.longest_run < HEARTBEAT_MESSAGES


@pytest.mark.parametrize("publish", PUBLISH)
async def test_a_ready_task_runs_again_after_a_few_messages_were_published(
    client: Client, stream_id: int, publish: Publish
) -> None:
    stream = await published(client, stream_id, publish, MILLION // 20, turn)
    assert stream.longest_run < TURN_MESSAGES

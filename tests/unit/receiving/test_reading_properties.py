"""Whatever is read how, and wherever a reader stops: a stream is delivered once, whole, in order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aeron_async
from aeron_async.action import Action
from aeron_async.block import Block
from aeron_async.protocol.frames import (
    FRAME_ALIGNMENT,
    TERM_MIN_LENGTH,
    DataHeader,
    FrameFlags,
    compute_fragmented_length,
)
from aeron_async.protocol.records import align
from aeron_async.subscription import Header, Image, Subscription
from tests.fakes import FakeDriver, FakeLog
from tests.unit.rig import Bench, until

# The shortest frames make the most of fragments and of the ends of terms.
MTUS = [64, 96, 1408, 4096]

Source = Subscription | Image


class Stream:
    """A stream, everything that was sent on it, and everything that was received of it."""

    def __init__(self, subscription: Subscription, image: Image, log: FakeLog) -> None:
        self.subscription = subscription
        self.image = image
        self.log = log
        self.sent: list[bytes] = []
        self.received: list[bytes] = []
        self._rest: list[tuple[bytes, FrameFlags]] = []

    def send(self, length: int, hold_back: int) -> None:
        """Appends a message, but for its last `hold_back` fragments; before it those that were held back."""
        self.finish()
        if self._has_room(length):
            message = (len(self.sent) % 251).to_bytes(1, "little") * length
            self.sent.append(message)
            self.log.begin_term_for(length)
            step = self.log.max_payload_length
            fragments = [message[start : start + step] for start in range(0, length, step)] or [b""]
            frames = [(fragment, FrameFlags(0)) for fragment in fragments]
            frames[0] = (fragments[0], FrameFlags.BEGIN)
            frames[-1] = (fragments[-1], frames[-1][1] | FrameFlags.END)
            now = max(len(frames) - hold_back, 0)
            self._append(frames[:now])
            self._rest = frames[now:]

    def finish(self) -> None:
        """Appends what was held back."""
        self._append(self._rest)
        self._rest = []

    def check(self) -> None:
        """What was received is the beginning of what was sent, and the position has not gone past the next message."""
        assert self.received == self.sent[: len(self.received)]
        if len(self.received) == len(self.sent):
            assert self.image.position <= self.log.position

    def _append(self, frames: list[tuple[bytes, FrameFlags]]) -> None:
        for payload, flags in frames:
            self.log.append_frame(payload, flags)

    def _has_room(self, length: int) -> bool:
        """As the driver's flow control: never more than a term ahead of the reader."""
        end = self.log.position + compute_fragmented_length(length, self.log.max_payload_length) + max(MTUS)
        return end - self.image.position < TERM_MIN_LENGTH // 2


Step = Callable[[Stream], Awaitable[None]]


def source_of(stream: Stream, alone: bool) -> Source:
    return stream.image if alone else stream.subscription


def sends(count: int, length: int, hold_back: int) -> Step:
    async def step(stream: Stream) -> None:
        for _ in range(count):
            stream.send(length, hold_back)

    return step


def polls(alone: bool, fragment_limit: int) -> Step:
    async def step(stream: Stream) -> None:
        source_of(stream, alone).poll(lambda payload, _: stream.received.append(bytes(payload)), fragment_limit)

    return step


def polls_and_raises(alone: bool, after: int) -> Step:
    async def step(stream: Stream) -> None:
        until_raise = after

        def handler(payload: memoryview, header: object) -> None:
            nonlocal until_raise
            stream.received.append(bytes(payload))
            until_raise -= 1
            if until_raise == 0:
                raise ZeroDivisionError

        with suppress(ZeroDivisionError):
            source_of(stream, alone).poll(handler, 50)

    return step


def receiver(stream: Stream, actions: list[Action | None]) -> Callable[[memoryview, Header], Action | None]:
    """A handler that answers with one action after the other, and receives what it does not abort."""
    rest = iter(actions)

    def handler(payload: memoryview, header: Header) -> Action | None:
        action = next(rest, None)
        if action is not Action.ABORT:
            stream.received.append(bytes(payload))
        return action

    return handler


def polls_controlled(alone: bool, actions: list[Action | None], fragment_limit: int) -> Step:
    async def step(stream: Stream) -> None:
        source_of(stream, alone).controlled_poll(receiver(stream, actions), fragment_limit)

    return step


def polls_bounded(actions: list[Action | None] | None, length: int, fragment_limit: int) -> Step:
    """A bounded poll, controlled where there are actions."""

    async def step(stream: Stream) -> None:
        image = stream.image
        poll = image.bounded_poll if actions is None else image.bounded_controlled_poll
        poll(receiver(stream, actions or []), image.position + length, fragment_limit)

    return step


class Refused(Exception):
    """A block that was not wanted."""


def whole_messages(block: Block) -> list[bytes]:
    """The messages of a block; one that ends within a message is refused."""
    messages: list[bytes] = []
    offset = 0
    flags = FrameFlags.UNFRAGMENTED
    for payload in block.payloads():
        header = DataHeader.decode(block.buffer[offset:])
        flags = header.flags
        if flags & FrameFlags.BEGIN:
            messages.append(b"")
        messages[-1] += payload
        offset += align(header.frame_length, FRAME_ALIGNMENT)
    if not flags & FrameFlags.END:
        raise Refused
    return messages


def takes_block(limit: int, refuses: bool) -> Step:
    """A block in place, which is taken or left by an exception."""

    async def step(stream: Stream) -> None:
        messages: list[bytes] = []
        try:
            with stream.image.block(limit) as block:
                messages = whole_messages(block)
                if refuses:
                    raise Refused
        except Refused:
            return
        except RuntimeError as error:
            if "read in part" not in str(error):
                raise
        stream.received += messages

    return step


def polls_batch(alone: bool, limit: int, max_bytes: int) -> Step:
    async def step(stream: Stream) -> None:
        stream.received += source_of(stream, alone).poll_batch(limit, max_bytes=max_bytes)

    return step


async def read(stream: Stream, alone: bool, kind: str, count: int) -> None:
    """Iterates over `count` items."""
    source = source_of(stream, alone)
    if count == 0:
        return
    match kind:
        case "messages":
            async for message in source:
                stream.received.append(bytes(message))
                count -= 1
                if count == 0:
                    break
        case "payloads":
            async for payload in source.payloads():
                stream.received.append(payload)
                count -= 1
                if count == 0:
                    break
        case "batches":
            async for batch in source.batches(3, max_bytes=200):
                stream.received += batch
                count -= 1
                if count == 0:
                    break


def iterates(alone: bool, kind: str, count: int, patience: int) -> Step:
    """An iteration that is left after `count` items, or cancelled after so many turns of the loop."""

    async def step(stream: Stream) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read, stream, alone, kind, count)
            for _ in range(patience):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

    return step


def waits(alone: bool, kind: str, length: int, turns: int) -> Step:
    """An iteration that waits for a message whose fragments come one by one, and is cancelled when it has come."""

    async def step(stream: Stream) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read, stream, alone, kind, -1)
            stream.send(length, 2)
            for _ in range(turns):
                await anyio.lowlevel.checkpoint()
            stream.finish()
            await until(lambda: len(stream.received) == len(stream.sent))
            tasks.cancel_scope.cancel()

    return step


# Around the ends of fragments, whatever the MTU.
lengths = st.sampled_from([0, 1, 31, 32, 33, 63, 64, 65, 192, 500, 1376, 1377, 4064, 8192]) | st.integers(0, 2000)
kinds = st.sampled_from(["messages", "payloads", "batches"])
actions = st.lists(st.sampled_from([None, *Action]), max_size=4)
steps = st.one_of(
    st.builds(sends, st.integers(1, 30), lengths, st.integers(0, 3)),
    st.builds(sends, st.integers(1, 5), lengths, st.just(0)),
    st.builds(polls, st.booleans(), st.integers(0, 40)),
    st.builds(polls_and_raises, st.booleans(), st.integers(1, 4)),
    st.builds(polls_controlled, st.booleans(), actions, st.integers(0, 40)),
    st.builds(polls_bounded, st.none() | actions, st.integers(-64, 3000), st.integers(0, 40)),
    st.builds(takes_block, st.integers(0, 5000), st.booleans()),
    st.builds(polls_batch, st.booleans(), st.integers(0, 40), st.integers(0, 3000)),
    st.builds(iterates, st.booleans(), kinds, st.integers(0, 20), st.integers(0, 5)),
    st.builds(waits, st.booleans(), kinds, lengths, st.integers(0, 3)),
)


@asynccontextmanager
async def streams(mtu_length: int, term_length: int, initial_term_id: int, position: int) -> AsyncIterator[Stream]:
    with TemporaryDirectory() as directory:
        driver = FakeDriver(Path(directory))
        driver.beat()
        try:
            async with aeron_async.connect(directory, driver_timeout=60.0) as client:
                bench = Bench(driver, client._session.conductor)
                subscription = bench.add_subscription()
                log = driver.create_log(
                    mtu_length=mtu_length,
                    term_length=term_length,
                    initial_term_id=initial_term_id,
                    position=position,
                )
                image = bench.add_image(subscription, log, join_position=position).image
                yield Stream(subscription, image, log)
        finally:
            driver.close()


@pytest.mark.anyio
@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(steps, max_size=25),
    mtu_length=st.sampled_from(MTUS),
    term_length=st.sampled_from([TERM_MIN_LENGTH, 2 * TERM_MIN_LENGTH]),
    initial_term_id=st.sampled_from([0, -1, (1 << 31) - 2, -(1 << 31)]) | st.integers(-(1 << 31), (1 << 31) - 1),
    position=st.sampled_from([0, 96, 2 * TERM_MIN_LENGTH - 64, (1 << 40) + TERM_MIN_LENGTH - 32]),
)
async def test_a_stream_is_delivered_once_whole_and_in_order(
    steps: list[Step], mtu_length: int, term_length: int, initial_term_id: int, position: int
) -> None:
    async with streams(mtu_length, term_length, initial_term_id, position) as stream:
        for step in steps:
            await step(stream)
            stream.check()
        stream.finish()
        while batch := stream.subscription.poll_batch():
            stream.received += batch
        assert stream.received == stream.sent
        assert stream.image.position == stream.log.position

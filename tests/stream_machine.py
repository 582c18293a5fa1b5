"""A state machine that publishes to one stream and reads it, in every way there is and in any order.

Whatever was used and wherever a reader stopped: what comes out is what was accepted, once, whole, in order, byte for
byte, with the header that arithmetic gives it, and the position has not gone past a message that nobody was given.
"""

from __future__ import annotations

import asyncio
import random
import sys
from abc import ABC, abstractmethod
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from aeron_async import (
    Action,
    BackPressuredError,
    Block,
    Header,
    Image,
    Message,
    MessageBatch,
    OfferResult,
    Publication,
    Subscription,
)
from aeron_async.claim import BufferClaim
from aeron_async.protocol.frames import (
    DATA_HEADER_LENGTH,
    FRAME_ALIGNMENT,
    TERM_MIN_LENGTH,
    DataHeader,
    FrameFlags,
    FrameType,
    compute_fragmented_length,
    compute_term_id,
    compute_term_offset,
    position_bits_to_shift,
)
from aeron_async.protocol.records import align
from aeron_async.publication import ExclusivePublication
from tests.support import LIMIT

T = TypeVar("T")

Source = Subscription | Image
Item = Message | bytes | MessageBatch

NO_LIMIT = 1 << 30


# --- what is received, whatever it was read by ------------------------------------------------------------------------


class Row(NamedTuple):
    """A message, and the header that it came with."""

    payload: bytes
    header: Header


def rows_of_batch(batch: MessageBatch) -> list[Row]:
    """The messages of a batch, once all its columns and all ways to look at it are known to say the same."""
    rows = [Row(bytes(message), message.header) for message in batch.messages()]
    payloads = [row.payload for row in rows]
    headers = [row.header for row in rows]
    assert list(batch) == payloads
    assert [batch[index] for index in range(len(batch))] == payloads
    assert batch.buffer == b"".join(payloads)
    assert batch.nbytes == len(batch.buffer)
    assert batch.offsets.tolist() == [0, *accumulate(map(len, payloads))]
    assert batch.session_ids.tolist() == [header.session_id for header in headers]
    assert batch.stream_positions.tolist() == [header.position for header in headers]
    assert batch.reserved_values.tolist() == [header.reserved_value for header in headers]
    return rows


def rows_of_block(block: Block, image: Image, begin: int) -> tuple[list[Row], bool]:
    """The messages in a block that starts at the position `begin` and with a message, and whether it ends with one."""
    bits = position_bits_to_shift(image.term_buffer_length)
    payloads = block.payloads()
    rows: list[Row] = []
    fragments: list[bytes] = []
    first: DataHeader | None = None
    offset = 0
    while offset < len(block.buffer):
        frame = DataHeader.decode(block.buffer[offset:])
        assert frame.term_offset == compute_term_offset(begin + offset, bits)
        offset += align(frame.frame_length, FRAME_ALIGNMENT)
        if frame.type == FrameType.PAD:
            continue
        if frame.flags & FrameFlags.BEGIN:
            first = frame
        assert first is not None, "the block begins within a message"
        fragments.append(bytes(next(payloads)))
        if frame.flags & FrameFlags.END:
            payload = b"".join(fragments)
            fragments.clear()
            header = Header(
                session_id=frame.session_id,
                stream_id=frame.stream_id,
                term_id=first.term_id,
                term_offset=first.term_offset,
                initial_term_id=image.initial_term_id,
                flags=first.flags | frame.flags,
                type=frame.type,
                version=frame.version,
                frame_length=DATA_HEADER_LENGTH + len(payload),
                reserved_value=frame.reserved_value,
                position=begin + offset,
            )
            rows.append(Row(payload, header))
    assert next(payloads, None) is None
    return rows, not fragments


# --- what is expected -------------------------------------------------------------------------------------------------


class Model:
    """A stream as it must be: where Aeron's rules for frames and terms put each message."""

    def __init__(self, publication: Publication) -> None:
        self.rows: list[Row] = []
        self.position = publication.position
        self._publication = publication
        self._bits = position_bits_to_shift(publication.term_buffer_length)

    def append(self, payload: bytes, reserved_value: int = 0) -> int:
        """Puts a message behind what is there; the position after it."""
        publication = self._publication
        frames = compute_fragmented_length(len(payload), publication.max_payload_length)
        begin = self._take_room(frames or DATA_HEADER_LENGTH)
        header = Header(
            session_id=publication.session_id,
            stream_id=publication.stream_id,
            term_id=compute_term_id(begin, self._bits, publication.initial_term_id),
            term_offset=compute_term_offset(begin, self._bits),
            initial_term_id=publication.initial_term_id,
            flags=FrameFlags.UNFRAGMENTED,
            type=FrameType.DATA,
            version=0,
            frame_length=DATA_HEADER_LENGTH + len(payload),
            reserved_value=reserved_value,
            position=self.position,
        )
        self.rows.append(Row(payload, header))
        return self.position

    def pad(self, length: int) -> int:
        """Puts one frame of `length` bytes that carries no message behind what is there; the position after it."""
        self._take_room(align(DATA_HEADER_LENGTH + length, FRAME_ALIGNMENT))
        return self.position

    def rotated(self) -> None:
        """An offer that was refused may have turned to the next term all the same."""
        position = self._publication.position
        assert position in (self.position, self._end_of_term())
        self.position = position

    def _end_of_term(self) -> int:
        return align(self.position + 1, self._publication.term_buffer_length)

    def _take_room(self, length: int) -> int:
        """Takes so many bytes, behind padding where the term has not so many left; where they begin."""
        if self.position + length > self._end_of_term():
            self.position = self._end_of_term()
        begin = self.position
        self.position += length
        return begin


# --- what is drawn ----------------------------------------------------------------------------------------------------


class Shape(NamedTuple):
    """What a stream looks like, and where it begins."""

    is_exclusive: bool
    mtu_length: int
    term_length: int
    initial_term_id: int
    begin: int


class Length(NamedTuple):
    """The length of a message, in maximum payloads and bytes; never more than the longest message."""

    payloads: int
    extra: int

    def of(self, publication: Publication) -> int:
        longest = publication.max_message_length
        return min(max(min(self.payloads * publication.max_payload_length, longest) + self.extra, 0), longest)


SHAPES = st.builds(
    Shape,
    is_exclusive=st.booleans(),
    # The shortest frames make the most of fragments.
    mtu_length=st.sampled_from([1408, 64, 96, 4096]),
    term_length=st.sampled_from([TERM_MIN_LENGTH, 2 * TERM_MIN_LENGTH]),
    initial_term_id=st.sampled_from([0, -1, (1 << 31) - 2, -(1 << 31)]),
    begin=st.sampled_from([0, 2 * TERM_MIN_LENGTH - 64, 200 * TERM_MIN_LENGTH + 96]),
)

# Around the ends of fragments and frames; the last is the longest message.
LENGTHS = st.builds(
    Length,
    st.sampled_from([0, 0, 0, 0, 0, 1, 1, 2, 5, 1000]),
    st.sampled_from([-1, 0, 1, 31, 32, 33]) | st.integers(0, 400),
)

# Mostly such as a window has room for.
COUNTS = st.integers(0, 3) | st.integers(0, 60) | st.just(1500)

RESERVED_VALUES = st.sampled_from([0, 1, -1, (1 << 63) - 1, -(1 << 63)])

FORMS: dict[str, Callable[[bytes], Any]] = {
    "bytes": bytes,
    "bytearray": bytearray,
    "array": lambda data: array("B", data),
    "numpy": lambda data: np.array(bytearray(data), dtype=np.uint8),
    "numpy of one record": lambda data: np.array([data], dtype=f"V{len(data)}") if data else np.array([], dtype="V1"),
}
"""What a message may be given as."""
if sys.version_info >= (3, 12, 3):
    # Older ones crash where their collector meets a memoryview in a cycle, such as a task's error and its traceback
    # are (CPython's issue 77894).
    FORMS["memoryview"] = lambda data: memoryview(b"<" + data + b">")[1:-1]

FORM = st.sampled_from(sorted(FORMS))
LIMITS = st.integers(0, 3) | st.integers(0, 40) | st.just(1024)
ACTIONS = st.lists(st.sampled_from([None, *Action]), max_size=4)
KINDS = st.sampled_from(["messages", "payloads", "batches"])
TURNS = st.integers(0, 5)


class Left(Exception):
    """What leaves an iteration, a handler or a block."""


class Stream(ABC):
    """A publication, the only subscription that reads it, and the loop that both belong to."""

    publication: Publication
    subscription: Subscription

    @abstractmethod
    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs something in the loop."""

    @abstractmethod
    def go_on(self) -> None:
        """Sees to it that the driver's part is done: what was read makes room."""

    @abstractmethod
    async def finish(self, awaitable: Awaitable[T]) -> T:
        """Waits for what needs the driver meanwhile."""

    @abstractmethod
    def close(self) -> None:
        """Closes both."""


# --- the machine ------------------------------------------------------------------------------------------------------


class StreamMachine(RuleBasedStateMachine):
    """Publishes and reads; `open_stream` gives it a stream of its own."""

    iterations = Bundle("iterations")

    def __init__(self, open_stream: Callable[[Shape], Stream]) -> None:
        super().__init__()
        self._open = open_stream
        self._stream: Stream | None = None
        self._made = 0
        self._received: list[tuple[bytes, Header | None]] = []
        self._checked = 0
        self._kept_batches: list[tuple[MessageBatch, int]] = []
        self._kept_messages: list[tuple[Message, int]] = []
        self._kept_views: list[memoryview] = []

    @initialize(shape=SHAPES)
    def open(self, shape: Shape) -> None:
        self._stream = self._open(shape)
        self.publication = self._stream.publication
        self.subscription = self._stream.subscription
        (self.image,) = self.subscription.images
        assert self.publication.position == shape.begin
        assert self.publication.max_payload_length == shape.mtu_length - DATA_HEADER_LENGTH
        self.model = Model(self.publication)

    # --- publishing ------------------------------------------------------------------------------------------------

    @rule(length=LENGTHS, form=FORM, reserved_value=RESERVED_VALUES)
    def offer(self, length: Length, form: str, reserved_value: int) -> None:
        payload = self._payload(length)
        self._offered(
            lambda: self.publication.offer(FORMS[form](payload), reserved_value=reserved_value), payload, reserved_value
        )

    @rule(length=LENGTHS, form=FORM, reserved_value=RESERVED_VALUES, cuts=st.lists(st.integers(0, 9000), max_size=4))
    def offer_vectored(self, length: Length, form: str, reserved_value: int, cuts: list[int]) -> None:
        payload = self._payload(length)
        bounds = [0, *sorted(min(cut, len(payload)) for cut in cuts), len(payload)]
        parts = [FORMS[form](payload[begin:end]) for begin, end in pairwise(bounds)]
        self._offered(
            lambda: self.publication.offer_vectored(parts, reserved_value=reserved_value), payload, reserved_value
        )

    @rule(lengths=st.lists(LENGTHS, max_size=40), form=FORM, as_type=st.sampled_from([list, tuple]))
    def offer_many(self, lengths: list[Length], form: str, as_type: Callable[[Iterable[Any]], Any]) -> None:
        payloads = [self._payload(length) for length in lengths]
        messages = as_type(map(FORMS[form], payloads))
        self._offered_many(lambda: self.publication.offer_many(messages), payloads)

    @rule(length=LENGTHS, count=COUNTS, is_numpy=st.booleans())
    def offer_array(self, length: Length, count: int, is_numpy: bool) -> None:
        payloads = self._records(length, count)
        itemsize = max(1, length.of(self.publication))
        if is_numpy:
            rows = np.array(payloads, dtype=f"V{itemsize}")
            self._offered_many(lambda: self.publication.offer_array(rows), payloads)
        else:
            records = b"".join(payloads)
            self._offered_many(lambda: self.publication.offer_array(records, itemsize=itemsize), payloads)

    @rule(length=LENGTHS, count=COUNTS, form=FORM)
    def offer_repeated(self, length: Length, count: int, form: str) -> None:
        payload = self._payload(length)
        self._offered_many(lambda: self.publication.offer_repeated(FORMS[form](payload), count), [payload] * count)

    @rule(length=LENGTHS, reserved_value=RESERVED_VALUES, is_committed=st.booleans())
    def claim(self, length: Length, reserved_value: int, is_committed: bool) -> None:
        payload = self._payload(length)[: self.publication.max_payload_length]
        claim = through_rotation(lambda: self.publication.try_claim(len(payload)))
        if not isinstance(claim, BufferClaim):
            self.model.rotated()
            return
        with suppress(Left), claim:
            claim.buffer[:] = payload
            claim.reserved_value = reserved_value
            if not is_committed:
                raise Left
        expected = self.model.append(payload, reserved_value) if is_committed else self.model.pad(len(payload))
        assert claim.position == expected

    @rule(length=LENGTHS)
    def append_padding(self, length: Length) -> None:
        if isinstance(self.publication, ExclusivePublication):
            publication, padding = self.publication, length.of(self.publication)
            result = through_rotation(lambda: publication.append_padding(padding))
            if result > 0:
                assert result == self.model.pad(padding)
            self.model.rotated()

    @rule(length=LENGTHS, form=FORM, reserved_value=RESERVED_VALUES, is_vectored=st.booleans())
    def publish(self, length: Length, form: str, reserved_value: int, is_vectored: bool) -> None:
        payload = self._payload(length)
        data = FORMS[form](payload)
        if is_vectored:
            work = self.publication.publish_vectored([data], reserved_value=reserved_value, timeout=0)
        else:
            work = self.publication.publish(data, reserved_value=reserved_value, timeout=0)
        with suppress(BackPressuredError):
            assert self._run(work) == self.model.append(payload, reserved_value)
        self.model.rotated()

    @rule(lengths=st.lists(LENGTHS, max_size=60), form=FORM)
    def publish_many(self, lengths: list[Length], form: str) -> None:
        payloads = [self._payload(length) for length in lengths]
        self._published_many(self.publication.publish_many(map(FORMS[form], payloads), timeout=0), payloads)

    @rule(length=LENGTHS, count=COUNTS)
    def publish_array(self, length: Length, count: int) -> None:
        payloads = self._records(length, count)
        records, itemsize = b"".join(payloads), max(1, length.of(self.publication))
        self._published_many(self.publication.publish_array(records, itemsize=itemsize, timeout=0), payloads)

    @rule(length=LENGTHS, turns=TURNS)
    def publish_cancelled(self, length: Length, turns: int) -> None:
        payload = self._payload(length)
        if self._cancelled(self.publication.publish(payload, timeout=None), turns) is not None:
            self.model.append(payload)
        self.model.rotated()

    # --- reading, in one call --------------------------------------------------------------------------------------

    @rule(alone=st.booleans(), fragment_limit=LIMITS, raises_at=st.none() | st.integers(1, 4))
    def poll(self, alone: bool, fragment_limit: int, raises_at: int | None) -> None:
        before = self.image.position
        with suppress(Left):
            assert self._source(alone).poll(self._handler(raises_at=raises_at), fragment_limit) <= fragment_limit
        assert fragment_limit == 0 or before == self.model.position or self.image.position > before

    @rule(alone=st.booleans(), actions=ACTIONS, fragment_limit=LIMITS)
    def controlled_poll(self, alone: bool, actions: list[Action | None], fragment_limit: int) -> None:
        fragments = self._source(alone).controlled_poll(self._handler(actions), fragment_limit)
        assert fragments <= fragment_limit

    @rule(actions=ACTIONS, length=st.integers(-64, 3000), fragment_limit=LIMITS, is_controlled=st.booleans())
    def bounded_poll(self, actions: list[Action | None], length: int, fragment_limit: int, is_controlled: bool) -> None:
        limit_position = self.image.position + length
        if is_controlled:
            fragments = self.image.bounded_controlled_poll(self._handler(actions), limit_position, fragment_limit)
        else:
            fragments = self.image.bounded_poll(self._handler(), limit_position, fragment_limit)
        assert fragments <= fragment_limit

    @rule(alone=st.booleans(), limit=LIMITS, max_bytes=st.integers(0, 3000) | st.just(4 << 20))
    def poll_batch(self, alone: bool, limit: int, max_bytes: int) -> None:
        batch = self._source(alone).poll_batch(limit, max_bytes=max_bytes)
        assert len(batch) <= limit
        assert batch.nbytes <= max_bytes or len(batch) == 1
        assert batch or limit == 0 or self._waiting() == 0
        self._receive(batch)

    @rule(limit=st.integers(0, 5000) | st.just(NO_LIMIT), by_handler=st.booleans(), is_refused=st.booleans())
    def block(self, limit: int, by_handler: bool, is_refused: bool) -> None:
        """Frames in place: looked at and left by an exception, and then taken where they are whole messages."""
        begin = self.image.position
        if self._is_within_message():
            with pytest.raises(RuntimeError, match="read in part"), self.image.block(limit):
                pass
            return
        with suppress(Left), self.image.block(limit) as block:
            self._kept_views.append(block.buffer)
            frames = bytes(block.buffer)
            rows, is_whole = rows_of_block(block, self.image, begin)
            assert len(frames) <= limit or not rows
            raise Left
        assert self.image.position == begin
        if is_refused or not is_whole:
            return
        taken: list[bytes] = []
        if by_handler:
            length = self.image.block_poll(lambda view, session_id, term_id: taken.append(bytes(view)), limit)
            assert length == len(frames)
        else:
            with self.image.block(limit) as block:
                taken.append(bytes(block.buffer))
        assert b"".join(taken) == frames
        assert self.image.position == begin + len(frames)
        self._received += rows

    # --- reading, by iteration -------------------------------------------------------------------------------------

    @rule(target=iterations, alone=st.booleans(), kind=KINDS)
    def begin_iteration(self, alone: bool, kind: str) -> AsyncIterator[Item]:
        return self._iteration(alone, kind)

    @rule(iteration=iterations, count=st.sampled_from([1, 2, 5, 300]))
    def go_on(self, iteration: AsyncIterator[Item], count: int) -> None:
        self._take(iteration, count)

    @rule(
        iteration=iterations,
        other=iterations,
        count=st.integers(1, 3),
        way=st.sampled_from(["block", "batch", "poll", "other"]),
    )
    def go_on_behind_others(
        self, iteration: AsyncIterator[Item], other: AsyncIterator[Item], count: int, way: str
    ) -> None:
        """What an iteration has read ahead is not its own before it gives it."""
        self._take(iteration, count)
        match way:
            case "block":
                self.block(limit=500, by_handler=True, is_refused=False)
            case "batch":
                self.poll_batch(alone=True, limit=1, max_bytes=0)
            case "poll":
                self.poll(alone=False, fragment_limit=1, raises_at=None)
            case _:
                self._take(other, 1)
        self._take(iteration, count)

    @rule(alone=st.booleans(), kind=KINDS, count=st.integers(1, 20), is_broken=st.booleans())
    def leave_iteration(self, alone: bool, kind: str, count: int, is_broken: bool) -> None:
        async def work() -> None:
            rest = min(count, self._waiting())
            async for item in self._iteration(alone, kind):
                rest -= self._receive(item)
                if rest <= 0:
                    if is_broken:
                        break
                    raise Left

        if self._waiting():
            with suppress(Left):
                self._run(asyncio.wait_for(work(), LIMIT))

    @rule(iteration=iterations, turns=TURNS)
    def cancel_anext(self, iteration: AsyncIterator[Item], turns: int) -> None:
        item = self._cancelled(anext(iteration), turns)
        if item is not None:
            self._receive(item)

    @rule(iteration=iterations)
    def close_anext(self, iteration: AsyncIterator[Item]) -> None:
        """Asking for an item does nothing before it is awaited."""
        ask: Any = iteration.__anext__()
        ask.close()

    @rule(iteration=iterations, seconds=st.sampled_from([0, 0.0001, 0.001]))
    def time_out_anext(self, iteration: AsyncIterator[Item], seconds: float) -> None:
        async def work() -> None:
            with suppress(TimeoutError):
                self._receive(await asyncio.wait_for(anext(iteration), seconds))

        self._run(work())

    @rule(iteration=iterations, other=iterations, length=LENGTHS, is_many=st.booleans(), turns=TURNS)
    def wait_for_message(
        self, iteration: AsyncIterator[Item], other: AsyncIterator[Item], length: Length, is_many: bool, turns: int
    ) -> None:
        """A reader waits, and nobody else may read, until a message comes."""
        self._drain()
        payload = self._payload(length)

        async def work() -> None:
            reader = asyncio.ensure_future(anext(iteration))
            await asyncio.sleep(0)
            for read in (self.subscription.poll_batch, self.image.poll_batch):
                with pytest.raises(RuntimeError, match="only one may read"):
                    read()
            with pytest.raises(RuntimeError, match="only one may read"):
                await anext(other)
            for _ in range(turns):
                await asyncio.sleep(0)
            publish = self.publication.publish_many([payload]) if is_many else self.publication.publish(payload)
            assert await self._finish(publish) == self.model.append(payload)
            self._receive(await self._finish(reader))

        self._run(work())

    @rule(
        kind=KINDS,
        alone=st.booleans(),
        lengths=st.lists(LENGTHS, min_size=1, max_size=100),
        way=st.sampled_from(["one by one", "many", "array"]),
    )
    def read_while_publishing(self, kind: str, alone: bool, lengths: list[Length], way: str) -> None:
        """More than a window takes, and more than a run: one task publishes what another one reads meanwhile."""
        self._drain()
        if way == "array":
            payloads = [number.to_bytes(8, "little") for number in range(30 * len(lengths))]
        else:
            payloads = [self._payload(length) for length in lengths]

        async def read() -> None:
            rest = len(payloads)
            async for item in self._iteration(alone, kind):
                rest -= self._receive(item)
                if rest == 0:
                    break

        async def publish() -> int:
            match way:
                case "many":
                    return await self.publication.publish_many(payloads, timeout=LIMIT)
                case "array":
                    return await self.publication.publish_array(b"".join(payloads), itemsize=8, timeout=LIMIT)
                case _:
                    return [await self.publication.publish(payload, timeout=LIMIT) for payload in payloads][-1]

        async def work() -> None:
            position, _ = await self._finish(asyncio.gather(publish(), read()))
            assert position == [self.model.append(payload) for payload in payloads][-1]

        self._run(work())

    # --- what must always hold -------------------------------------------------------------------------------------

    @invariant()
    def is_received_as_accepted(self) -> None:
        if self._stream is None:
            return
        assert self.publication.position == self.model.position
        expected = self.model.rows
        assert len(self._received) <= len(expected)
        for index in range(self._checked, len(self._received)):
            payload, header = self._received[index]
            assert payload == expected[index].payload, f"message {index}"
            assert header in (None, expected[index].header), f"message {index}"
        self._checked = len(self._received)

        position = self.image.position
        if self._checked:
            assert position >= expected[self._checked - 1].header.position
        if self._waiting():
            assert position < expected[self._checked].header.position
        else:
            assert position <= self.model.position
        self._stream.go_on()

    def teardown(self) -> None:
        if self._stream is None:
            return
        try:
            self._drain()
            self.is_received_as_accepted()
        finally:
            self._stream.close()
        for batch, first in self._kept_batches:
            assert rows_of_batch(batch) == self.model.rows[first : first + len(batch)]
        for message, index in self._kept_messages:
            assert (bytes(message), message.header) == self.model.rows[index]
        for view in self._kept_views:
            assert len(bytes(view)) == len(view)

    # --- publishing ------------------------------------------------------------------------------------------------

    def _payload(self, length: Length) -> bytes:
        self._made += 1
        return random.Random(self._made).randbytes(length.of(self.publication))

    def _records(self, length: Length, count: int) -> list[bytes]:
        """Messages of one length, which is at least 1."""
        return [self._payload(length) or b"." for _ in range(count)]

    def _offered(self, attempt: Callable[[], int], payload: bytes, reserved_value: int) -> None:
        limit = self.publication.position_limit
        result = through_rotation(attempt)
        if result > 0:
            assert result == self.model.append(payload, reserved_value)
        else:
            assert result is OfferResult.BACK_PRESSURED
            assert self.publication.position >= limit
        self.model.rotated()

    def _offered_many(self, attempt: Callable[[], int], payloads: list[bytes]) -> None:
        limit = self.publication.position_limit
        result = through_rotation(attempt)
        assert result is OfferResult.BACK_PRESSURED or min(1, len(payloads)) <= result <= len(payloads)
        assert result == len(payloads) or self.publication.position >= limit
        for payload in payloads[: max(0, result)]:
            self.model.append(payload)
        self.model.rotated()

    def _published_many(self, work: Coroutine[Any, Any, int], payloads: list[bytes]) -> None:
        """A publish that does not wait."""
        position = None
        taken: int | None = len(payloads)
        try:
            position = self._run(work)
        except BackPressuredError as error:
            taken = error.appended
        for payload in payloads[:taken]:
            self.model.append(payload)
        assert position in (None, self.model.position)
        self.model.rotated()

    # --- reading ---------------------------------------------------------------------------------------------------

    def _source(self, alone: bool) -> Source:
        return self.image if alone else self.subscription

    def _waiting(self) -> int:
        """How many whole messages are in the stream that nobody has received."""
        return len(self.model.rows) - len(self._received)

    def _is_within_message(self) -> bool:
        """Whether the beginning of the next message has been read already."""
        if not self._waiting():
            return False
        payload, header = self.model.rows[len(self._received)]
        begin = header.position - compute_fragmented_length(len(payload), self.publication.max_payload_length)
        return len(payload) > 0 and self.image.position > begin

    def _iteration(self, alone: bool, kind: str) -> AsyncIterator[Item]:
        source = self._source(alone)
        match kind:
            case "messages":
                return aiter(source)
            case "payloads":
                return source.payloads()
            case _:
                return source.batches(7, max_bytes=5000)

    def _handler(
        self, actions: Iterable[Action | None] = (), raises_at: int | None = None
    ) -> Callable[[memoryview, Header], Any]:
        """Receives what it does not abort, answers with one action after the other, and raises at a message."""
        rest = iter(actions)
        countdown = raises_at

        def handler(payload: memoryview, header: Header) -> Action | None:
            nonlocal countdown
            action = next(rest, None)
            if action is not Action.ABORT:
                self._received.append((bytes(payload), header))
            if countdown is not None:
                countdown -= 1
                if countdown == 0:
                    raise Left
            return action

        return handler

    def _receive(self, item: Item) -> int:
        """Keeps what an iteration or a batch has given; how many messages that is."""
        first = len(self._received)
        match item:
            case MessageBatch():
                self._received += rows_of_batch(item)
                self._kept_batches.append((item, first))
            case Message():
                # Its header is looked at in the end.
                self._received.append((bytes(item), None))
                self._kept_messages.append((item, first))
            case bytes():
                self._received.append((item, None))
        return len(self._received) - first

    def _take(self, iteration: AsyncIterator[Item], count: int) -> None:
        """Takes so many items of an iteration, as far as they are there."""

        async def work() -> None:
            for _ in range(count):
                if not self._waiting():
                    break
                self._receive(await asyncio.wait_for(anext(iteration), LIMIT))

        self._run(work())

    def _drain(self) -> None:
        while batch := self.subscription.poll_batch():
            self._receive(batch)
        assert self._waiting() == 0

    # --- the loop --------------------------------------------------------------------------------------------------

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._stream is not None
        return self._stream.run(work)

    async def _finish(self, awaitable: Awaitable[T]) -> T:
        assert self._stream is not None
        async with asyncio.timeout(LIMIT):
            return await self._stream.finish(awaitable)

    def _cancelled(self, awaitable: Awaitable[T], turns: int) -> T | None:
        """Cancels a task after so many turns of the loop; what it gives, or None where it gives nothing."""

        async def work() -> T | None:
            task = asyncio.ensure_future(awaitable)
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                return await task
            return None

        return self._run(work())


def through_rotation(attempt: Callable[[], T]) -> T:
    """Makes an attempt, and again where it has turned to the next term."""
    result = attempt()
    return attempt() if result is OfferResult.ADMIN_ACTION else result

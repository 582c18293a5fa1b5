"""The ways to read that a subscription and an image have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sized
from typing import Generic, Self, TypeVar

import anyio.lowlevel

from aeron_async._reader import Handles, Reader
from aeron_async.action import Action
from aeron_async.batch import Header, Message, MessageBatch

DEFAULT_FRAGMENT_LIMIT = 10
DEFAULT_BATCH_LIMIT = 1024
DEFAULT_BATCH_BYTES = 4 << 20

# How much an iteration delivers before other tasks get a turn: messages, and KiB.
TURN = 256

T = TypeVar("T")


class Iteration(Generic[T]):
    """An iteration over what a source delivers; leaving it in any way loses and repeats nothing."""

    def __init__(self, source: Readable, take: Callable[[Reader], T | None], weight: Callable[[T], int]) -> None:
        """`weight` tells how much of a turn of the loop an item is: 1 a message, and 1 a KiB."""
        self._source = source
        self._take = take
        self._weight = weight
        self._delivered = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        reader = self._source._reader
        reader.claim(self)
        try:
            if self._delivered >= TURN:
                self._delivered = 0
                await anyio.lowlevel.checkpoint()
            while not reader.is_at_end(self._source):
                item = self._take(reader)
                if item is not None:
                    self._delivered += self._weight(item)
                    return item
                self._delivered = 0
                await reader.park(self._source)
        finally:
            reader.release()
        raise StopAsyncIteration


class Readable(ABC):
    """The ways to read that a subscription and an image have in common."""

    _reader: Reader
    _handles: Handles
    """The images that are read now."""

    @property
    @abstractmethod
    def is_closed(self) -> bool:
        """Whether nothing more can be read."""

    def poll(self, handler: Callable[[memoryview, Header], None], fragment_limit: int = DEFAULT_FRAGMENT_LIMIT) -> int:
        """Hands messages to `handler(payload, header)`, fragments reassembled.

        At most `fragment_limit` fragments are read. A payload is valid during the call only. Where the handler raises,
        the exception comes out of here and the message counts as delivered.

        Returns the number of fragments read; 0 once closed. Raises `RuntimeError` while another read is under way,
        `CorruptFileError`, `ForkedClientError`. Source: `Subscription.poll` with a `FragmentAssembler`.
        """
        return self._reader.poll(self, handler, fragment_limit)

    def controlled_poll(
        self, handler: Callable[[memoryview, Header], Action | None], fragment_limit: int = DEFAULT_FRAGMENT_LIMIT
    ) -> int:
        """As `poll`, but the handler decides by its `Action` what becomes of the position and of the poll.

        BREAK and ABORT end the poll of the image that the message came from; a subscription's other images are still
        read, up to the limit. A message that was fragmented is aborted, and comes again, as a whole. None means
        CONTINUE, and anything else raises `TypeError`. Where the handler raises, the message counts as taken, as in
        `poll`, and those before it as well.

        Returns the number of fragments of the messages that were taken, and of those that wait for their end. Raises
        as `poll`. Source: `Subscription.controlledPoll` with a `ControlledFragmentAssembler`.
        """
        return self._reader.poll_images(self, handler, fragment_limit, is_controlled=True)

    def poll_batch(self, limit: int = DEFAULT_BATCH_LIMIT, *, max_bytes: int = DEFAULT_BATCH_BYTES) -> MessageBatch:
        """Takes what is there: at most `limit` whole messages of at most `max_bytes` bytes together.

        At least one message is taken where there is one, however long. Empty once closed. Raises as `poll`.
        """
        reader = self._reader
        reader.claim(self)
        try:
            return reader.read_batch(self, limit, max_bytes)
        finally:
            reader.release()

    def __aiter__(self) -> AsyncIterator[Message]:
        """The messages as they come.

        Ends when this is closed by `aclose`; raises the client's reason where that closed it. Leaving the iteration by
        break, an exception or cancellation loses and repeats nothing for the next reader.
        """

        def take(reader: Reader) -> Message | None:
            ahead = reader.next_ahead(self)
            if ahead is None:
                return None
            index = reader.take(ahead)
            return Message(ahead.data[ahead.offsets[index] : ahead.offsets[index + 1]], ahead.batch, index)

        return Iteration(self, take, _message_weight)

    def payloads(self) -> AsyncIterator[bytes]:
        """The payloads as they come; otherwise as `__aiter__`."""

        def take(reader: Reader) -> bytes | None:
            ahead = reader.next_ahead(self)
            if ahead is None:
                return None
            index = reader.take(ahead)
            return ahead.data[ahead.offsets[index] : ahead.offsets[index + 1]]

        return Iteration(self, take, _message_weight)

    def batches(
        self, limit: int = DEFAULT_BATCH_LIMIT, *, max_bytes: int = DEFAULT_BATCH_BYTES
    ) -> AsyncIterator[MessageBatch]:
        """Batches as `poll_batch` gives them, none of them empty; otherwise as `__aiter__`.

        Raises `ValueError` for a limit below 1.
        """

        def take(reader: Reader) -> MessageBatch | None:
            return reader.read_batch(self, limit, max_bytes) or None

        if limit < 1:
            raise ValueError(f"batches of at most {limit} messages would never come")
        return Iteration(self, take, lambda batch: len(batch) + (batch.nbytes >> 10))


def _message_weight(message: Sized) -> int:
    return 1 + (len(message) >> 10)

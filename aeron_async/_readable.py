"""The ways to read that a subscription and an image have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable

from aeron_async._face import ReadablePath
from aeron_async.action import Action
from aeron_async.batch import Header, Message, MessageBatch

DEFAULT_FRAGMENT_LIMIT = 10
DEFAULT_BATCH_LIMIT = 1024
DEFAULT_BATCH_BYTES = 4 << 20


class Readable(ReadablePath, ABC):
    """The ways to read that a subscription and an image have in common."""

    __slots__ = ()

    @property
    @abstractmethod
    def is_closed(self) -> bool:
        """Whether nothing more can be read."""

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

    def __aiter__(self) -> AsyncIterator[Message]:
        """The messages as they come.

        Ends when this is closed by `aclose`; raises the client's reason where that closed it. Leaving the iteration by
        break, an exception or cancellation loses and repeats nothing for the next reader.
        """
        return self._iterate_messages()

    def payloads(self) -> AsyncIterator[bytes]:
        """The payloads as they come; otherwise as `__aiter__`."""
        return self._iterate_payloads()

    def batches(
        self, limit: int = DEFAULT_BATCH_LIMIT, *, max_bytes: int = DEFAULT_BATCH_BYTES
    ) -> AsyncIterator[MessageBatch]:
        """Batches as `poll_batch` gives them, none of them empty; otherwise as `__aiter__`.

        Raises `ValueError` for a limit below 1.
        """
        if limit < 1:
            raise ValueError(f"batches of at most {limit} messages would never come")
        return self._iterate_batches(limit, max_bytes)

"""The message path of publications over `_native`: what stands in for the class of the same name in `_speedups`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from aeron_async._buffers import BytesLike, all_bytes_of, view_of
from aeron_async._control import CLIENT_TIMEOUT, Timeout
from aeron_async._native import ffi, lib

if TYPE_CHECKING:
    from aeron_async.publication import OfferResult

# A publish loop that never waits lets other tasks run after this many messages or bytes.
_TURN_MESSAGES = 256
_TURN_BYTES = 1 << 20


class PublicationPath(ABC):
    """The message path of a publication, over the `aa_publication_t` at an address.

    It makes the attempts; what they come to where they do not succeed is the subclass's.
    """

    __slots__ = ("_offer", "_path", "_turn_bytes", "_turn_messages")

    def __init__(self, address: int) -> None:
        # The subclass keeps alive what it points to.
        self._path = ffi.cast("aa_publication_t *", address)
        self._offer = lib.aa_publication_offer
        self._turn_messages = 0
        self._turn_bytes = 0

    def offer(self, data: BytesLike, *, reserved_value: int = 0) -> int:
        """Appends one message, in one attempt.

        `data` is read in place; longer than `max_payload_length` bytes, it is fragmented. `reserved_value` is a signed
        64-bit value that travels in the header of each frame.

        Returns the stream position after the message, or an `OfferResult` (negative) where nothing was appended.
        Raises `MessageTooLongError`; `TypeError` for str; `BufferError` for a strided buffer; `ForkedClientError`.
        Source: `Publication.offer`.
        """
        view: Any = data if type(data) is bytes else view_of(data)
        result: int = self._offer(self._path, view, len(view), reserved_value)
        return result if result > 0 else self._refused(result, len(view))

    def offer_many(self, messages: Sequence[BytesLike]) -> int:
        """Appends messages in order, in one native call and one attempt.

        Returns how many were appended (0 for an empty list; fewer than given where back-pressure set in part way), or
        an `OfferResult` where none was. Raises as `offer`; `MessageTooLongError` before anything is appended.
        """
        return 0 if len(messages) == 0 else self._offer_joined(all_bytes_of(messages), ffi.NULL)

    def offer_array(self, records: Any, *, itemsize: int | None = None) -> int:
        """Appends the records of a buffer in order, one message each, in one native call and one attempt.

        `records` is anything with a C-contiguous buffer, read in place: a numpy array, an `array.array`, a memoryview.
        A record has `itemsize` bytes; left out, it is an item (of a numpy array: of its dtype), or a row along the
        first axis where there are several. A buffer of single bytes needs `itemsize`.

        Returns as `offer_many`. Raises as `offer`; `ValueError` where `itemsize` is needed, or does not divide the
        buffer's length. The messages are in the order of the buffer, all of equal length.
        """
        return self._offer_array_anyhow(records, itemsize)

    async def publish(self, data: BytesLike, *, reserved_value: int = 0, timeout: Timeout = CLIENT_TIMEOUT) -> int:
        """Appends one message, waiting while the publication is back-pressured or not connected.

        `timeout` is in seconds; None waits without limit. Cancelling a wait appends nothing.

        Returns the stream position after the message. Raises what stopped it when the time ran out
        (`NotConnectedError`, `BackPressuredError`), `MaxPositionExceededError`, `PublicationClosedError` or the
        client's reason, and as `offer`.
        """
        view: Any = data if type(data) is bytes else view_of(data)
        length = len(view)
        if self._is_turn_over(length):
            return await self._publish_when_possible(data, reserved_value, timeout, None)
        result: int = self._offer(self._path, view, length, reserved_value)
        if result > 0:
            return result
        return await self._publish_when_possible(data, reserved_value, timeout, self._refused(result, length))

    def _is_turn_over(self, length: int, messages: int = 1) -> bool:
        """Counts messages; whether so many were published that it is other tasks' turn."""
        self._turn_messages += messages
        self._turn_bytes += length
        if self._turn_messages <= _TURN_MESSAGES and self._turn_bytes <= _TURN_BYTES:
            return False
        self._turn_messages = self._turn_bytes = 0
        return True

    def _offer_rest(self, messages: Sequence[bytes], start: int) -> tuple[int, int] | OfferResult:
        """Offers the messages from `start` on: how many were appended, and the position after the last of them."""
        position = ffi.new("int64_t *")
        appended = self._offer_joined(messages[start:], position)
        return (appended, position[0]) if appended >= 0 else cast("OfferResult", appended)

    def _offer_joined(self, messages: Sequence[bytes], position: Any) -> int:
        """Offers messages; how many were appended, or an `OfferResult`."""
        lengths = list(map(len, messages))
        data = b"".join(messages)
        result: int = lib.aa_publication_offer_many(self._path, data, len(data), lengths, len(lengths), position)
        return result if result >= 0 else self._refused(result, max(lengths))

    @abstractmethod
    def _refused(self, result: int, length: int) -> OfferResult:
        """What an attempt with this result, of a message of this length, comes to; raises where that is an error."""

    @abstractmethod
    def _offer_array_anyhow(self, records: Any, itemsize: int | None) -> int:
        """`offer_array`, with every case and every error."""

    @abstractmethod
    async def _publish_when_possible(
        self, data: BytesLike, reserved_value: int, timeout: Timeout, refusal: OfferResult | None
    ) -> int:
        """`publish` from where it has to wait: for an attempt that was refused, or because it is other tasks' turn."""

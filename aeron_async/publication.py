"""Publications: where messages enter a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import partial
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.lowlevel

from aeron_async._control import CLIENT_TIMEOUT, Control, Timeout
from aeron_async._core import log_info
from aeron_async._native import ffi, lib
from aeron_async.errors import (
    AeronError,
    BackPressuredError,
    MaxPositionExceededError,
    MessageTooLongError,
    NotConnectedError,
    PublicationClosedError,
)

BytesLike = bytes | bytearray | memoryview
"""Anything with a C-contiguous buffer; arrays of the standard library and numpy count too."""

# A publish loop that never waits lets other tasks run after this many messages or bytes.
_TURN_MESSAGES = 256
_TURN_BYTES = 1 << 20


def _view(data: BytesLike) -> Any:
    """The bytes of `data`, in place. Raises `TypeError` and `BufferError`."""
    try:
        return ffi.from_buffer("uint8_t[]", data)
    except ValueError as error:
        # numpy's word for what others call a BufferError.
        raise BufferError(str(error)) from None


class OfferResult(IntEnum):
    """Why an offer appended nothing."""

    NOT_CONNECTED = lib.AA_NOT_CONNECTED
    """No subscriber is connected."""
    BACK_PRESSURED = lib.AA_BACK_PRESSURED
    """Subscribers, or the flow control of the network, are behind."""
    ADMIN_ACTION = lib.AA_ADMIN_ACTION
    """A term was rotated; offer again."""
    CLOSED = lib.AA_CLOSED
    """The publication is closed."""
    MAX_POSITION_EXCEEDED = lib.AA_MAX_POSITION_EXCEEDED
    """The stream has reached its maximum position."""
    ERROR = lib.AA_ERROR
    """The log buffer holds what cannot be true."""


class Publication:
    """A publication that any number of clients may share, by channel and stream id.

    Obtained from `Client.add_publication`. `offer` and `offer_many` may be called from any thread; what is awaited
    belongs to the client's loop. Source: Aeron's `ConcurrentPublication`.
    """

    is_exclusive = False
    """Whether only this object appends to its session."""

    def __init__(
        self,
        handle: Any,
        log: Any,
        control: Control,
        *,
        channel: str,
        stream_id: int,
        session_id: int,
        registration_id: int,
        original_registration_id: int,
    ) -> None:
        info = log_info(log)
        self._handle = handle
        self._log = log
        self._control = control
        self._offer = lib.aa_publication_offer
        self._turn_messages = 0
        self._turn_bytes = 0
        self.channel = channel
        """The channel URI as it was given."""
        self.stream_id = stream_id
        self.session_id = session_id
        """The session that the driver chose, or that the channel asked for."""
        self.registration_id = registration_id
        """The correlation id of the command that added this publication."""
        self.original_registration_id = original_registration_id
        """The registration id of the first publication of this session; its log buffer carries it."""
        self.initial_term_id: int = info.initial_term_id
        self.term_buffer_length: int = info.term_length
        """Length of one of the three term buffers, in bytes."""
        self.max_payload_length: int = lib.aa_publication_max_payload_length(handle)
        """The longest message, in bytes, that goes out in one frame; longer ones are fragmented."""
        self.max_message_length: int = lib.aa_publication_max_message_length(handle)
        """The longest message in bytes: an eighth of the term buffer length, at most 16 MiB."""

    @property
    def is_connected(self) -> bool:
        """Whether at least one subscriber is there; False once closed."""
        return bool(lib.aa_publication_is_connected(self._handle))

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, by itself or with its client."""
        return bool(lib.aa_publication_is_closed(self._handle))

    @property
    def position(self) -> int:
        """The stream position in bytes that the next message starts at; after close the last one."""
        return int(lib.aa_publication_position(self._handle))

    @property
    def position_limit(self) -> int:
        """The stream position in bytes up to which offers are taken now; after close the last one."""
        return int(lib.aa_publication_position_limit(self._handle))

    @property
    def channel_status(self) -> int:
        """The channel's status: 1 active, 0 initialising, -1 errored, -2 closing (Aeron's `ChannelEndpointStatus`)."""
        return int(lib.aa_publication_channel_status(self._handle))

    def offer(self, data: BytesLike, *, reserved_value: int = 0) -> int:
        """Appends one message, in one attempt.

        `data` is read in place; longer than `max_payload_length` bytes, it is fragmented. `reserved_value` is a signed
        64-bit value that travels in the header of each frame.

        Returns the stream position after the message, or an `OfferResult` (negative) where nothing was appended.
        Raises `MessageTooLongError`; `TypeError` for str; `BufferError` for a strided buffer; `ForkedClientError`.
        Source: `Publication.offer`.
        """
        if type(data) is not bytes:
            data = _view(data)
        result: int = self._offer(self._handle, data, len(data), reserved_value)
        return result if result > 0 else self._refused(result, len(data))

    def offer_vectored(self, parts: Sequence[BytesLike], *, reserved_value: int = 0) -> int:
        """Appends one message made of several pieces, in one attempt; nothing is joined on the way.

        An empty sequence is an empty message. Returns and raises as `offer`. Source: `Publication.offer` with
        `DirectBufferVector`s.
        """
        views = [_view(part) for part in parts]
        slices = ffi.new("aa_slice_t[]", [(view, len(view)) for view in views])
        result: int = lib.aa_publication_offer_vectored(self._handle, slices, len(views), reserved_value)
        return result if result > 0 else self._refused(result, sum(map(len, views)))

    def offer_many(self, messages: Sequence[BytesLike]) -> int:
        """Appends messages in order, in one native call and one attempt.

        Returns how many were appended (0 for an empty list; fewer than given where back-pressure set in part way), or
        an `OfferResult` where none was. Raises as `offer`; `MessageTooLongError` before anything is appended.
        """
        if not messages:
            return 0
        if any(type(message) is not bytes for message in messages):
            messages = [bytes(ffi.buffer(_view(message))) for message in messages]
        lengths = list(map(len, messages))
        data = b"".join(messages)
        result: int = lib.aa_publication_offer_many(self._handle, data, len(data), lengths, len(lengths))
        return result if result > 0 else self._refused(result, max(lengths))

    async def publish(self, data: BytesLike, *, reserved_value: int = 0, timeout: Timeout = CLIENT_TIMEOUT) -> int:
        """Appends one message, waiting while the publication is back-pressured or not connected.

        `timeout` is in seconds; None waits without limit. Cancelling a wait appends nothing.

        Returns the stream position after the message. Raises what stopped it when the time ran out
        (`NotConnectedError`, `BackPressuredError`), `MaxPositionExceededError`, `PublicationClosedError` or the
        client's reason, and as `offer`.
        """
        if self._is_turn_over(len(data)):
            await anyio.lowlevel.checkpoint()
        result = self.offer(data, reserved_value=reserved_value)
        if result > 0:
            return result
        return await self._retry(partial(self.offer, data, reserved_value=reserved_value), result, timeout)

    async def publish_vectored(
        self, parts: Sequence[BytesLike], *, reserved_value: int = 0, timeout: Timeout = CLIENT_TIMEOUT
    ) -> int:
        """As `publish`, for one message made of several pieces."""
        if self._is_turn_over(sum(map(len, parts))):
            await anyio.lowlevel.checkpoint()
        result = self.offer_vectored(parts, reserved_value=reserved_value)
        if result > 0:
            return result
        return await self._retry(partial(self.offer_vectored, parts, reserved_value=reserved_value), result, timeout)

    async def wait_connected(self, timeout: Timeout = CLIENT_TIMEOUT) -> None:
        """Returns when a subscriber is connected.

        `timeout` is in seconds; None waits without limit. Raises `NotConnectedError` when it runs out,
        `PublicationClosedError` or the client's reason.
        """
        with anyio.move_on_after(self._control.seconds(timeout)):
            while not self.is_connected:
                if self.is_closed:
                    raise self._error(OfferResult.CLOSED)
                await self._control.wait_publication(self._handle, lib.AA_WATCH_CONNECTED)
            return
        raise self._error(OfferResult.NOT_CONNECTED)

    async def aclose(self) -> None:
        """Closes the publication and waits for the driver's answer; again it does nothing.

        Subscribers read on to its end.
        """
        await self._control.close_resource(self.registration_id)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} channel={self.channel!r} stream_id={self.stream_id} "
            f"session_id={self.session_id} is_closed={self.is_closed}>"
        )

    def _close(self) -> None:
        lib.aa_publication_close(self._handle)

    def _refused(self, result: int, length: int) -> OfferResult:
        if result == lib.AA_MESSAGE_TOO_LONG:
            raise MessageTooLongError(length, self.max_message_length)
        if result == lib.AA_CLOSED:
            self._control.check_process()
        return OfferResult(result)

    def _error(self, result: int) -> AeronError:
        where = f"channel={self.channel!r} stream_id={self.stream_id}"
        match result:
            case OfferResult.NOT_CONNECTED:
                return NotConnectedError(f"no subscriber is connected: {where}")
            case OfferResult.BACK_PRESSURED | OfferResult.ADMIN_ACTION:
                return BackPressuredError(f"subscribers are too slow, or one has stopped reading: {where}")
            case OfferResult.MAX_POSITION_EXCEEDED:
                return MaxPositionExceededError(
                    f"the stream is at its maximum position ({self.position}); add a new publication: {where}"
                )
            case OfferResult.CLOSED:
                return self._control.closed_error(PublicationClosedError)
            case _:
                return AeronError(f"the log buffer cannot be appended to: {where}")

    def _is_turn_over(self, length: int) -> bool:
        self._turn_messages += 1
        self._turn_bytes += length
        if self._turn_messages <= _TURN_MESSAGES and self._turn_bytes <= _TURN_BYTES:
            return False
        self._turn_messages = self._turn_bytes = 0
        return True

    async def _retry(self, attempt: Callable[[], int], result: int, timeout: Timeout) -> int:
        with anyio.move_on_after(self._control.seconds(timeout)):
            while True:
                if result == OfferResult.ADMIN_ACTION:
                    await anyio.lowlevel.checkpoint()
                elif result in (OfferResult.NOT_CONNECTED, OfferResult.BACK_PRESSURED):
                    await self._control.wait_publication(self._handle, lib.AA_WATCH_WRITABLE)
                else:
                    raise self._error(result)
                result = attempt()
                if result > 0:
                    return result
        raise self._error(result)


class ExclusivePublication(Publication):
    """A publication whose session only this object appends to, from one thread at a time; cheaper for it.

    Obtained from `Client.add_exclusive_publication`. Source: Aeron's `ExclusivePublication`.
    """

    is_exclusive = True

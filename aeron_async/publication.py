"""Publications: where messages enter a stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.lowlevel

from aeron_async._buffers import BytesLike as BytesLike
from aeron_async._buffers import Records, bytes_of, length_of, view_of
from aeron_async._closing import ClosedOnExit
from aeron_async._control import CLIENT_TIMEOUT, Control, Timeout
from aeron_async._core import address_of, log_info
from aeron_async._face import PublicationPath
from aeron_async._native import ffi, lib
from aeron_async.channel import ChannelUri
from aeron_async.claim import BufferClaim
from aeron_async.errors import (
    AeronError,
    BackPressuredError,
    MaxPositionExceededError,
    MessageTooLongError,
    NotConnectedError,
    PublicationClosedError,
)

# What one native call of publish_many or publish_array takes.
_RUN_MESSAGES = 1024
_RUN_BYTES = 1 << 20

T = TypeVar("T")

_Run = Callable[[int], "tuple[int, int] | OfferResult"]
"""Offers messages from an index on, in one native call: how many were appended, and the position after the last."""


class OfferResult(IntEnum):
    """Why an offer appended nothing."""

    def __str__(self) -> str:
        return self.name

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


class Publication(PublicationPath, ClosedOnExit):
    """A publication that any number of clients may share, by channel and stream id.

    Obtained from `Client.add_publication`. Offers and claims may be made from any thread; what is awaited belongs to
    the client's loop. Source: Aeron's `ConcurrentPublication`.
    """

    # Without a dict, CPython finds the methods at once.
    __slots__ = (
        "__weakref__",
        "_channel_status_id",
        "_control",
        "_handle",
        "_log",
        "channel",
        "initial_term_id",
        "max_message_length",
        "max_payload_length",
        "original_registration_id",
        "registration_id",
        "session_id",
        "stream_id",
        "term_buffer_length",
    )

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
        channel_status_id: int,
    ) -> None:
        super().__init__(address_of(handle))
        info = log_info(log)
        self._handle = handle
        self._log = log
        self._control = control
        self._channel_status_id = channel_status_id
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
    def available_window(self) -> int:
        """How many bytes, frame headers included, may be appended before back-pressure; 0 once closed.

        Source: `Publication.availableWindow`.
        """
        return 0 if self.is_closed else max(0, self.position_limit - self.position)

    @property
    def channel_status(self) -> int:
        """The channel's status: 1 active, 0 initialising, -1 errored, -2 closing (Aeron's `ChannelEndpointStatus`)."""
        return int(lib.aa_publication_channel_status(self._handle))

    @property
    def local_socket_addresses(self) -> list[str]:
        """The addresses, as `host:port`, that the channel sends from.

        None for IPC, before the channel is active, and once closed. Source: `Publication.localSocketAddresses`.
        """
        return [] if self.is_closed else self._control.local_socket_addresses(self._channel_status_id)

    def offer_vectored(self, parts: Sequence[BytesLike], *, reserved_value: int = 0) -> int:
        """Appends one message made of several pieces, in one attempt; nothing is joined on the way.

        An empty sequence is an empty message. Returns and raises as `offer`. Source: `Publication.offer` with
        `DirectBufferVector`s.
        """
        views = [view_of(part) for part in parts]
        slices = ffi.new("aa_slice_t[]", [(view, len(view)) for view in views])
        result: int = lib.aa_publication_offer_vectored(self._handle, slices, len(views), reserved_value)
        return result if result > 0 else self._refused(result, sum(map(len, views)))

    def offer_repeated(self, data: BytesLike, count: int) -> int:
        """Appends the same message `count` times, in one native call and one attempt.

        Returns as `offer_many`. Raises as `offer`; `ValueError` for a negative count.
        """
        if count < 0:
            raise ValueError(f"count={count} is negative")
        view = view_of(data)
        length = len(view)
        return self._appended(
            lib.aa_publication_offer_equal(self._handle, view, length, length, 0, count, ffi.NULL), length
        )

    def try_claim(self, length: int) -> BufferClaim | OfferResult:
        """Reserves room for one message of `length` bytes in the log buffer itself, in one attempt.

        Returns a `BufferClaim` to fill and commit, or an `OfferResult` where there is no room now. Raises
        `MessageTooLongError` past `max_payload_length`: a claim is a single frame; `ValueError` for a negative length;
        `ForkedClientError`. Source: `Publication.tryClaim`.
        """
        if length < 0:
            raise ValueError(f"length={length} is negative")
        if length > self.max_payload_length:
            raise MessageTooLongError(length, self.max_payload_length, "max_payload_length")
        claim = ffi.new("aa_claim_t **")
        result: int = lib.aa_publication_try_claim(self._handle, length, claim)
        if result == lib.AA_SYSTEM:
            raise MemoryError("no memory for a claim")
        if result > 0:
            return BufferClaim(claim[0], self._control, length=length, position=result)
        return self._refused(result, length)

    async def claim(self, length: int, *, timeout: Timeout = CLIENT_TIMEOUT) -> BufferClaim:
        """Reserves room for one message, waiting while the publication is back-pressured or not connected.

        ``with await publication.claim(40) as claim: claim.buffer[:] = ...`` commits it at the end of the block.
        `timeout` as for `publish`. Cancelling a wait claims nothing.

        Raises as `try_claim`, and what stopped it as `publish`.
        """
        if self._is_turn_over(length):
            await anyio.lowlevel.checkpoint()
        return await self._until_taken(partial(self.try_claim, length), self._deadline(timeout))

    async def publish_vectored(
        self, parts: Sequence[BytesLike], *, reserved_value: int = 0, timeout: Timeout = CLIENT_TIMEOUT
    ) -> int:
        """As `publish`, for one message made of several pieces."""
        if self._is_turn_over(sum(map(length_of, parts))):
            await anyio.lowlevel.checkpoint()
        attempt = partial(self.offer_vectored, parts, reserved_value=reserved_value)
        return await self._until_taken(attempt, self._deadline(timeout))

    async def publish_many(self, messages: Iterable[BytesLike], *, timeout: Timeout = CLIENT_TIMEOUT) -> int:
        """Appends messages in order, many in one native call, waiting where `publish` would.

        `messages` may be any iterable; it is taken in pieces, and those that could change are copied. `timeout`, in
        seconds, is for all of them: once it has run out, the next wait that would be needed ends the call. Other tasks
        run in between. Cancelling a wait leaves those in the stream that were appended before.

        Returns the stream position after the last message (where there is none, the publication's). Raises as
        `publish`; the error's `appended` is how many messages went before it.
        """
        runs = ((len(run), length, partial(self._offer_rest, run)) for run, length in _in_runs(messages))
        return await self._publish_runs(runs, timeout)

    async def publish_array(
        self, records: Any, *, itemsize: int | None = None, timeout: Timeout = CLIENT_TIMEOUT
    ) -> int:
        """Appends the records of a buffer as `offer_array` does, waiting where `publish` would.

        The buffer must not change meanwhile. `timeout`, cancellation, result and errors as `publish_many`, and
        `ValueError` as `offer_array`.
        """
        array = Records(records, itemsize)
        step = max(1, min(_RUN_MESSAGES, _RUN_BYTES // max(1, array.itemsize)))
        bounds = ((begin, min(begin + step, array.count)) for begin in range(0, array.count, step))
        runs = (
            (end - begin, (end - begin) * array.itemsize, partial(self._offer_rest_of_array, array, begin, end))
            for begin, end in bounds
        )
        return await self._publish_runs(runs, timeout)

    async def add_destination(self, uri: str | ChannelUri, *, timeout: Timeout = CLIENT_TIMEOUT) -> int:
        """Adds a destination to a publication on a channel with `control-mode=manual`: multi-destination cast.

        All who share the publication send there, from now on. `timeout` is in seconds. Cancelled or late, the
        destination is removed again.

        Returns the destination's registration id, for `remove_destination`. Raises `RegistrationError`,
        `AddTimeoutError`, `PublicationClosedError` or the client's reason. Source: `Publication.addDestination`.
        """
        self._check_open()
        return await self._control.add_destination(self.registration_id, uri, timeout)

    async def remove_destination(
        self, uri_or_registration_id: str | ChannelUri | int, *, timeout: Timeout = CLIENT_TIMEOUT
    ) -> None:
        """Removes a destination, by the channel it was added with or by its registration id.

        The driver does not tell whether there was one. `timeout` is in seconds; cancelled or late, it may still be
        done. Raises as `add_destination`. Source: `Publication.removeDestination`.
        """
        self._check_open()
        await self._control.remove_destination(self.registration_id, uri_or_registration_id, timeout)

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

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} channel={self.channel!r} stream_id={self.stream_id} "
            f"session_id={self.session_id} is_closed={self.is_closed}>"
        )

    def _close(self) -> None:
        lib.aa_publication_close(self._handle)

    def _check_open(self) -> None:
        self._control.check_process()
        if self.is_closed:
            raise self._error(OfferResult.CLOSED)

    def _offer_array_anyhow(self, records: Any, itemsize: int | None) -> int:
        array = Records(records, itemsize)
        return self._appended(self._offer_records(array, 0, array.count, ffi.NULL), array.itemsize)

    def _offer_rest_of_array(self, records: Records, begin: int, end: int, start: int) -> tuple[int, int] | OfferResult:
        position = ffi.new("int64_t *")
        result = self._offer_records(records, begin + start, end, position)
        return (result, position[0]) if result >= 0 else self._refused(result, records.itemsize)

    def _offer_records(self, records: Records, begin: int, end: int, position: Any) -> int:
        itemsize, count = records.itemsize, end - begin
        data = records.view + begin * itemsize if begin else records.view
        result: int = lib.aa_publication_offer_equal(
            self._handle, data, count * itemsize, itemsize, itemsize, count, position
        )
        return result

    def _appended(self, result: int, longest: int) -> int:
        return result if result >= 0 else self._refused(result, longest)

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

    async def _publish_when_possible(
        self, data: BytesLike, reserved_value: int, timeout: Timeout, refusal: OfferResult | None
    ) -> int:
        attempt = partial(self.offer, data, reserved_value=reserved_value)
        if refusal is None:
            await anyio.lowlevel.checkpoint()
        return await self._until_taken(attempt, self._deadline(timeout), refusal)

    def _deadline(self, timeout: Timeout) -> float:
        seconds = self._control.seconds(timeout)
        return math.inf if seconds is None else anyio.current_time() + seconds

    async def _until_taken(
        self, attempt: Callable[[], T | OfferResult], deadline: float, result: T | OfferResult | None = None
    ) -> T:
        """What `attempt` gives that is no `OfferResult`. `result` is what it gave before, where it was made already."""
        if result is None or result is OfferResult.ADMIN_ACTION:
            result = _through_rotation(attempt)
        while isinstance(result, OfferResult):
            with anyio.CancelScope(deadline=deadline) as scope:
                await self._wait(result)
            if scope.cancelled_caught:
                raise self._error(result)
            result = _through_rotation(attempt)
        return result

    async def _wait(self, result: OfferResult) -> None:
        """Returns when an offer that had this result may be made again; raises where none may."""
        if result == OfferResult.ADMIN_ACTION:
            await anyio.lowlevel.checkpoint()
        elif result in (OfferResult.NOT_CONNECTED, OfferResult.BACK_PRESSURED):
            await self._control.wait_publication(self._handle, lib.AA_WATCH_WRITABLE)
        else:
            raise self._error(result)

    async def _publish_runs(self, runs: Iterable[tuple[int, int, _Run]], timeout: Timeout) -> int:
        """Publishes runs of messages, each with their count and length, and how to offer them."""
        deadline = self._deadline(timeout)
        position = self.position
        appended = 0
        try:
            for count, length, run in runs:
                if self._is_turn_over(length, count):
                    await anyio.lowlevel.checkpoint()
                start = 0
                while start < count:
                    taken, position = await self._until_taken(partial(run, start), deadline)
                    start += taken
                    appended += taken
        except Exception as error:
            vars(error)["appended"] = appended
            raise
        return position


def _through_rotation(attempt: Callable[[], T | OfferResult]) -> T | OfferResult:
    """Makes the attempt, and again at once where it has turned to the next term."""
    result = attempt()
    return attempt() if result is OfferResult.ADMIN_ACTION else result


def _in_runs(messages: Iterable[BytesLike]) -> Iterator[tuple[Sequence[bytes], int]]:
    """Runs of messages with their length in bytes."""
    if not isinstance(messages, list | tuple):
        yield from _gathered(messages)
        return
    for begin in range(0, len(messages), _RUN_MESSAGES):
        run = messages[begin : begin + _RUN_MESSAGES]
        if set(map(type, run)) == {bytes} and (length := sum(map(len, run))) <= _RUN_BYTES:
            yield run, length
        else:
            yield from _gathered(run)


def _gathered(messages: Iterable[BytesLike]) -> Iterator[tuple[list[bytes], int]]:
    """Runs of messages that are taken, and copied where they could change, one by one."""
    run: list[bytes] = []
    length = 0
    for message in messages:
        run.append(bytes_of(message))
        length += len(run[-1])
        if len(run) == _RUN_MESSAGES or length >= _RUN_BYTES:
            yield run, length
            run, length = [], 0
    if run:
        yield run, length


class ExclusivePublication(Publication):
    """A publication whose session only this object appends to, from one thread at a time; cheaper for it.

    Obtained from `Client.add_exclusive_publication`. Source: Aeron's `ExclusivePublication`.
    """

    __slots__ = ("revoke_on_close",)

    is_exclusive = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.revoke_on_close = False
        """Whether closing it, or its client, revokes it; see `revoke`. May be set at any time."""

    def append_padding(self, length: int) -> int:
        """Appends a padding frame of `length` bytes and its header, which subscribers pass over, in one attempt.

        Returns the stream position after it, or an `OfferResult` where nothing was appended. Raises
        `MessageTooLongError` where it is longer than the longest message with its frame headers; `ValueError` for a
        negative length. Source: `ExclusivePublication.appendPadding`.
        """
        if length < 0:
            raise ValueError(f"length={length} is negative")
        longest = lib.aa_publication_max_padding_length(self._handle)
        if length > longest:
            raise MessageTooLongError(length, longest, "max_padding_length")
        result: int = lib.aa_publication_append_padding(self._handle, length)
        return result if result > 0 else self._refused(result, length)

    def offer_block(self, block: BytesLike) -> int:
        """Appends frames as they are, headers included, in one attempt.

        They must be such as this publication would have written at its position: with its session id and stream id, its
        term id and offset, one behind the other, and within the term. They are if they come from `Image.block_poll` of
        a stream that this one repeats frame by frame.

        Returns the stream position after them, or an `OfferResult` where nothing was appended. Raises `ValueError` for
        a block that does not belong there; `TypeError`, `BufferError`. Source: `ExclusivePublication.offerBlock`.
        """
        view = view_of(block)
        error = ffi.new("aa_error_t *")
        result: int = lib.aa_publication_offer_block(self._handle, view, len(view), error)
        if result == lib.AA_ARGUMENT:
            raise ValueError(ffi.string(error.text).decode())
        return result if result > 0 else self._refused(result, len(view))

    async def revoke(self) -> None:
        """Closes the publication at once: subscribers lose their image, read or not, and nothing is sent again.

        For when all subscribers have everything, or it does not matter. Closed already, it does nothing. Raises as
        `aclose`. Source: `ExclusivePublication.revoke`.
        """
        self.revoke_on_close = True
        await self.aclose()

"""Subscriptions and images: where messages leave a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from struct import calcsize
from types import TracebackType
from typing import Any, Generic, Literal, NamedTuple, Self, TypeVar, overload

import anyio
import anyio.lowlevel

from aeron_async._control import CLIENT_TIMEOUT, Control, Timeout
from aeron_async._core import log_info, raise_for
from aeron_async._native import ffi, lib
from aeron_async.errors import NotConnectedError, SubscriptionClosedError

DEFAULT_FRAGMENT_LIMIT = 10
DEFAULT_BATCH_LIMIT = 1024
DEFAULT_BATCH_BYTES = 4 << 20

# What an iteration reads ahead of its caller, and so also how much it delivers before other tasks get a turn.
_AHEAD_MESSAGES = 256
_AHEAD_BYTES = 256 << 10

CHANNEL_ACTIVE = 1

_NO_LIMIT = (1 << 31) - 1


class Header(NamedTuple):
    """The header of a message; of a fragmented one: its first fragment's place, its last fragment's reserved value.

    Source: Aeron's `Header` and data frame header.
    """

    session_id: int
    stream_id: int
    term_id: int
    term_offset: int
    """Where the message starts in its term, in bytes."""
    initial_term_id: int
    flags: int
    type: int
    version: int
    frame_length: int
    """Length of header and payload in bytes."""
    reserved_value: int
    position: int
    """The stream position in bytes after the message."""


class Message:
    """One message: its payload, and the header it came with."""

    __slots__ = ("_batch", "_index", "payload")

    def __init__(self, payload: bytes, batch: MessageBatch, index: int) -> None:
        self.payload = payload
        self._batch = batch
        self._index = index

    @property
    def header(self) -> Header:
        """The header that the payload came with."""
        return self._batch._header(self._index)

    def __bytes__(self) -> bytes:
        return self.payload

    def __len__(self) -> int:
        return len(self.payload)

    def __repr__(self) -> str:
        return f"<Message {len(self.payload)} bytes, {self.header}>"


class MessageBatch(Sequence[bytes]):
    """Whole messages in columns; it owns its memory. As a sequence it is the payloads, each as bytes."""

    __slots__ = ("_columns", "_count", "_data", "_offsets")

    def __init__(self, native: Any) -> None:
        count: int = native.count
        self._count = count
        self._data: bytes = bytes(ffi.buffer(native.data, native.nbytes)) if native.nbytes else b""
        columns = bytearray(48 * count + 4)
        lib.aa_batch_copy_columns(native, ffi.from_buffer("uint8_t[]", columns))
        self._columns = memoryview(columns).toreadonly()
        self._offsets = self._column(16, count + 1, "i")

    def _column(self, start: int, count: int, typecode: Literal["q", "i", "h", "B"]) -> memoryview:
        """The column that starts after `start` bytes a message (and, past the offsets, their extra entry)."""
        begin = start * self._count + (4 if start > 16 else 0)
        return self._columns[begin : begin + calcsize(typecode) * count].cast(typecode)

    @property
    def nbytes(self) -> int:
        """Payload bytes of all messages together."""
        return len(self._data)

    @property
    def buffer(self) -> memoryview:
        """All payloads back to back, as uint8."""
        return memoryview(self._data)

    @property
    def offsets(self) -> memoryview:
        """Where each payload starts in `buffer`, in bytes, and where the last ends: int32, n + 1 entries."""
        return self._offsets

    @property
    def stream_positions(self) -> memoryview:
        """The stream position in bytes after each message: int64, n entries."""
        return self._column(0, self._count, "q")

    @property
    def reserved_values(self) -> memoryview:
        """int64, n entries."""
        return self._column(8, self._count, "q")

    @property
    def session_ids(self) -> memoryview:
        """int32, n entries."""
        return self._column(20, self._count, "i")

    def messages(self) -> Iterator[Message]:
        """The messages with their headers."""
        for index in range(self._count):
            yield Message(self[index], self, index)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[bytes]:
        data = self._data
        ends = iter(self._offsets.tolist())
        begin = next(ends)
        for end in ends:
            yield data[begin:end]
            begin = end

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._count))]
        place = index + self._count if index < 0 else index
        if not 0 <= place < self._count:
            raise IndexError("message index out of range")
        return self._data[self._offsets[place] : self._offsets[place + 1]]

    def __repr__(self) -> str:
        return f"<MessageBatch of {self._count} messages, {self.nbytes} bytes>"

    def _header(self, index: int) -> Header:
        def at(start: int, typecode: Literal["q", "i", "h", "B"]) -> int:
            return self._column(start, self._count, typecode)[index]

        return Header(
            session_id=at(20, "i"),
            stream_id=at(40, "i"),
            term_id=at(24, "i"),
            term_offset=at(28, "i"),
            initial_term_id=at(36, "i"),
            flags=at(46, "B"),
            type=at(44, "h"),
            version=at(47, "B"),
            frame_length=at(32, "i"),
            reserved_value=at(8, "q"),
            position=at(0, "q"),
        )


class _Handles:
    """Handles of images, as the array that the C core takes."""

    __slots__ = ("_kept", "array", "count")

    def __init__(self, handles: Sequence[Any] = ()) -> None:
        self.count = len(handles)
        self.array = ffi.new("aa_image_t *[]", handles)
        # The array itself keeps nothing alive.
        self._kept = handles


class _ReadAhead:
    """Messages that an iteration has copied and not yet delivered."""

    __slots__ = ("batch", "count", "data", "index", "offsets", "source")

    def __init__(self, batch: MessageBatch, source: _Readable) -> None:
        self.batch = batch
        self.source = source
        self.count = len(batch)
        self.data = batch._data
        self.offsets: list[int] = batch.offsets.tolist()
        self.index = 0


class _Reader:
    """The one reader of a subscription: its native batch, its turn among the images, its read-ahead.

    Every way to read starts from the committed positions, so that calls of different kinds may follow each other.
    """

    def __init__(self, control: Control) -> None:
        self._control = control
        self._error = ffi.new("aa_error_t *")
        self._native = ffi.gc(lib.aa_batch_create(), lib.aa_batch_release)
        self._start = 0
        self._ahead: _ReadAhead | None = None
        self._owner: object | None = None
        self._wake: anyio.Event | None = None

    def claim(self, owner: object) -> None:
        """Makes `owner` the one who reads; raises where somebody else is in the middle of it."""
        if self._owner is not None:
            raise RuntimeError(
                "another iteration or poll of this subscription is under way; only one may read at a time"
            )
        self._owner = owner

    def release(self) -> None:
        self._owner = None

    def scan(self, images: _Handles, fragments: int, messages: int, max_bytes: int) -> Any:
        """Reads on from the committed positions; what it finds is committed by `commit`."""
        self._ahead = None
        count = images.count
        if count > 1:
            self._start = (self._start + 1) % count
        start = self._start if count > 1 else 0
        code = lib.aa_batch_scan(self._native, images.array, count, start, fragments, messages, max_bytes, self._error)
        if code != lib.AA_OK and self._native.count == 0:
            raise_for(self._error)
        return self._native

    def commit(self, count: int) -> None:
        lib.aa_batch_commit(self._native, count)

    def clear(self) -> None:
        lib.aa_batch_clear(self._native)

    def read_batch(self, source: _Readable, limit: int, max_bytes: int) -> MessageBatch:
        native = self.scan(source._handles, _NO_LIMIT, limit, max_bytes)
        batch = MessageBatch(native)
        self.commit(native.count)
        self.clear()
        if not batch and source.is_closed:
            self._control.check_process()
        return batch

    def poll(self, source: _Readable, handler: Callable[[memoryview, Header], Any], fragment_limit: int) -> int:
        self.claim(source)
        delivered = 0
        try:
            native = self.scan(source._handles, fragment_limit, _NO_LIMIT, DEFAULT_BATCH_BYTES)
            fragments: int = native.fragments
            if native.count:
                batch = MessageBatch(native)
                data = batch.buffer
                offsets = batch.offsets
                for index in range(len(batch)):
                    delivered += 1
                    with data[offsets[index] : offsets[index + 1]] as payload:
                        handler(payload, batch._header(index))
        finally:
            self.commit(delivered)
            self.clear()
            self.release()
        if not fragments and source.is_closed:
            self._control.check_process()
        return fragments

    def next_ahead(self, source: _Readable) -> _ReadAhead | None:
        """The read-ahead that `source` may take its next message from, or None where there is none now."""
        ahead = self._ahead
        if ahead is not None and ahead.source is source:
            return ahead
        native = self.scan(source._handles, _NO_LIMIT, _AHEAD_MESSAGES, _AHEAD_BYTES)
        if not native.count:
            self.clear()
            return None
        self._ahead = _ReadAhead(MessageBatch(native), source)
        return self._ahead

    def is_at_end(self, source: _Readable) -> bool:
        """Whether an iteration over `source` is over; raises the client's reason where that is why."""
        if not source.is_closed or (self._ahead is not None and self._ahead.source is source):
            return False
        self._control.check_process()
        error = self._control.closed_error(SubscriptionClosedError)
        if isinstance(error, SubscriptionClosedError):
            return True
        raise error

    def take(self, ahead: _ReadAhead) -> int:
        """Marks the next message of the read-ahead as delivered; its index."""
        index = ahead.index
        ahead.index = index + 1
        self.commit(index + 1)
        if ahead.index == ahead.count:
            self._ahead = None
            self.clear()
        return index

    async def park(self, source: _Readable) -> None:
        """Returns when `source` may have something to read, or its images or its state have changed."""
        images = source._handles
        self._wake = anyio.Event()
        unwatch = self._control.watch_images(images.array, images.count, self._wake.set) if images.count else None
        try:
            await self._wake.wait()
        finally:
            self._wake = None
            if unwatch is not None:
                unwatch()

    def wake(self) -> None:
        if self._wake is not None:
            self._wake.set()


T = TypeVar("T")


class _Iterator(Generic[T]):
    """An iteration over what a source delivers; leaving it in any way loses and repeats nothing."""

    def __init__(self, source: _Readable, take: Callable[[_Reader], T | None]) -> None:
        self._source = source
        self._take = take
        self._delivered = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        reader = self._source._reader
        reader.claim(self)
        try:
            if self._delivered >= _AHEAD_MESSAGES:
                self._delivered = 0
                await anyio.lowlevel.checkpoint()
            while not reader.is_at_end(self._source):
                item = self._take(reader)
                if item is not None:
                    self._delivered += 1
                    return item
                self._delivered = 0
                await reader.park(self._source)
        finally:
            reader.release()
        raise StopAsyncIteration


class _Readable(ABC):
    """The ways to read that a subscription and an image have in common."""

    _reader: _Reader
    _handles: _Handles
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

        def take(reader: _Reader) -> Message | None:
            ahead = reader.next_ahead(self)
            if ahead is None:
                return None
            index = reader.take(ahead)
            return Message(ahead.data[ahead.offsets[index] : ahead.offsets[index + 1]], ahead.batch, index)

        return _Iterator(self, take)

    def payloads(self) -> AsyncIterator[bytes]:
        """The payloads as they come; otherwise as `__aiter__`."""

        def take(reader: _Reader) -> bytes | None:
            ahead = reader.next_ahead(self)
            if ahead is None:
                return None
            index = reader.take(ahead)
            return ahead.data[ahead.offsets[index] : ahead.offsets[index + 1]]

        return _Iterator(self, take)

    def batches(
        self, limit: int = DEFAULT_BATCH_LIMIT, *, max_bytes: int = DEFAULT_BATCH_BYTES
    ) -> AsyncIterator[MessageBatch]:
        """Batches as `poll_batch` gives them, none of them empty; otherwise as `__aiter__`."""

        def take(reader: _Reader) -> MessageBatch | None:
            return reader.read_batch(self, limit, max_bytes) or None

        return _Iterator(self, take)


class Image(_Readable):
    """One publisher's session as its subscriber sees it.

    Source: Aeron's `Image`. Closed, it keeps its last values.
    """

    def __init__(
        self,
        handle: Any,
        log: Any,
        reader: _Reader,
        *,
        session_id: int,
        correlation_id: int,
        subscription_registration_id: int,
        source_identity: str,
    ) -> None:
        info = log_info(log)
        self._handle = handle
        self._log = log
        self._reader = reader
        self._handles = _Handles((handle,))
        self.session_id = session_id
        self.correlation_id = correlation_id
        """The driver's id of the image; for IPC the publication's registration id."""
        self.subscription_registration_id = subscription_registration_id
        self.source_identity = source_identity
        """Where it comes from: the source's address and port, or `aeron:ipc`."""
        self.initial_term_id: int = info.initial_term_id
        self.term_buffer_length: int = info.term_length
        self.mtu_length: int = info.mtu_length
        self.join_position: int = lib.aa_image_join_position(handle)
        """The stream position in bytes that reading started at."""

    @property
    def position(self) -> int:
        """The stream position in bytes up to which messages were delivered."""
        return int(lib.aa_image_position(self._handle))

    @property
    def is_closed(self) -> bool:
        """Whether the publisher has gone, or the subscription was closed."""
        return bool(lib.aa_image_is_closed(self._handle))

    @property
    def is_end_of_stream(self) -> bool:
        """Whether the publisher has ended the stream and all of it was read."""
        return bool(lib.aa_image_is_end_of_stream(self._handle))

    @property
    def end_of_stream_position(self) -> int:
        """The stream position in bytes of the end; the largest 64-bit value while it is not known."""
        return int(lib.aa_image_end_of_stream_position(self._handle))

    @property
    def active_transport_count(self) -> int:
        """How many transports the image comes in on."""
        return int(lib.aa_image_active_transport_count(self._handle))

    @property
    def is_publication_revoked(self) -> bool:
        """Whether the publisher has revoked the publication."""
        return bool(lib.aa_image_is_publication_revoked(self._handle))

    def __repr__(self) -> str:
        return (
            f"<Image session_id={self.session_id} source_identity={self.source_identity!r} "
            f"position={self.position} is_closed={self.is_closed}>"
        )

    def _close(self) -> None:
        lib.aa_image_close(self._handle)


class Subscription(_Readable):
    """A subscription: the images of all publishers of a channel and stream id.

    Obtained from `Client.add_subscription`. One reader at a time. Source: Aeron's `Subscription`.
    """

    def __init__(
        self, control: Control, *, channel: str, stream_id: int, registration_id: int, channel_status: Any | None
    ) -> None:
        self._control = control
        self._reader = _Reader(control)
        self._images: tuple[Image, ...] = ()
        self._handles = _Handles()
        self._closed = False
        self._channel_status = channel_status
        self._images_changed = anyio.Event()
        self.channel = channel
        """The channel URI as it was given."""
        self.stream_id = stream_id
        self.registration_id = registration_id
        """The correlation id of the command that added this subscription."""

    @property
    def images(self) -> tuple[Image, ...]:
        """The images that are there now."""
        return self._images

    @property
    def image_count(self) -> int:
        """How many images are there now."""
        return len(self._images)

    def image_by_session_id(self, session_id: int) -> Image | None:
        """The image of that session, or None."""
        return next((image for image in self.images if image.session_id == session_id), None)

    @property
    def is_connected(self) -> bool:
        """Whether a publisher is there: an image that is open."""
        return any(not image.is_closed for image in self.images)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, by itself or with its client."""
        return self._closed

    @property
    def channel_status(self) -> int:
        """The channel's status: 1 active, 0 initialising, -1 errored, -2 closing (Aeron's `ChannelEndpointStatus`)."""
        return int(lib.aa_counter_value(self._channel_status)) if self._channel_status is not None else CHANNEL_ACTIVE

    async def wait_connected(self, timeout: Timeout = CLIENT_TIMEOUT) -> None:
        """Returns when a publisher is connected.

        `timeout` is in seconds; None waits without limit. Raises `NotConnectedError` when it runs out,
        `SubscriptionClosedError` or the client's reason.
        """
        with anyio.move_on_after(self._control.seconds(timeout)):
            while not self.is_connected:
                if self._closed:
                    raise self._control.closed_error(SubscriptionClosedError)
                await self._images_changed.wait()
            return
        raise NotConnectedError(f"no publisher is connected: channel={self.channel!r} stream_id={self.stream_id}")

    async def aclose(self) -> None:
        """Closes the subscription and waits for the driver's answer; again it does nothing."""
        await self._control.close_resource(self.registration_id)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return (
            f"<Subscription channel={self.channel!r} stream_id={self.stream_id} "
            f"images={self.image_count} is_closed={self._closed}>"
        )

    def _add_image(self, image: Image) -> None:
        self._change_images((*self.images, image))

    def _remove_image(self, image: Image) -> None:
        self._change_images(tuple(other for other in self.images if other is not image))
        image._close()

    def _close(self) -> None:
        self._closed = True
        if self._channel_status is not None:
            lib.aa_counter_close(self._channel_status)
        for image in self.images:
            image._close()
        self._change_images(())

    def _change_images(self, images: tuple[Image, ...]) -> None:
        self._images = images
        self._handles = _Handles([image._handle for image in images])
        self._reader.wake()
        changed, self._images_changed = self._images_changed, anyio.Event()
        changed.set()

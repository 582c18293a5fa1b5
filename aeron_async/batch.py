"""Messages that own their memory: one by one, and in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import calcsize
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from aeron_async._arrays import array_over, dtype_of
from aeron_async._native import ffi, lib

if TYPE_CHECKING:
    from numpy import ndarray
    from numpy.typing import DTypeLike


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

    def as_array(self, dtype: DTypeLike) -> ndarray[Any, Any]:
        """The payloads as an array of records: shape (n,), a read-only view of `buffer`.

        Raises `ValueError` where a payload has not the size of `dtype`, `ImportError` without numpy.
        """
        record = dtype_of(dtype)
        ends = array_over(self._offsets, dtype_of("i4"), self._count + 1)
        others = (ends[1:] - ends[:-1] != record.itemsize).nonzero()[0]
        if len(others):
            first = int(others[0])
            raise ValueError(f"message {first} has {len(self[first])} bytes, a record {record.itemsize} ({record})")
        return array_over(self._data, record, self._count)

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

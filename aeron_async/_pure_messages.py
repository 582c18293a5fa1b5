"""Messages over `_native`: what stands in for the classes of the same names in `_speedups`."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, overload

from aeron_async._core import pinned
from aeron_async._native import ffi, lib

# The layout of aa_row_t.
_ROW = struct.Struct("=iBBhiiiiqqii")
_ROW_LENGTH = _ROW.size
_unpack: Callable[[bytes], tuple[int, ...]] = _ROW.unpack

# More bytes are not turned into objects at once.
_AT_ONCE = 1 << 20

AHEAD_MESSAGES = 256
"""What an iteration reads ahead of its caller at most; for so many, what cuts them up is kept."""


class Header:
    """The header of a message; of a fragmented one: its first fragment's place, its last fragment's reserved value.

    Source: Aeron's `Header` and data frame header.
    """

    __slots__ = ("_row",)

    _row: bytes

    def __init__(
        self,
        session_id: int,
        stream_id: int,
        term_id: int,
        term_offset: int,
        initial_term_id: int,
        flags: int,
        type: int,
        version: int,
        frame_length: int,
        reserved_value: int,
        position: int,
    ) -> None:
        place = (term_offset, session_id, stream_id, term_id, reserved_value, position, initial_term_id)
        try:
            self._row = _ROW.pack(frame_length, version, flags, type, *place, 0)
        except struct.error:
            raise OverflowError("a value is too large for its field of the header") from None

    @property
    def session_id(self) -> int:
        """The publication's session."""
        return _unpack(self._row)[5]

    @property
    def stream_id(self) -> int:
        """The stream within the channel."""
        return _unpack(self._row)[6]

    @property
    def term_id(self) -> int:
        """The term that the message starts in."""
        return _unpack(self._row)[7]

    @property
    def term_offset(self) -> int:
        """Where the message starts in its term, in bytes."""
        return _unpack(self._row)[4]

    @property
    def initial_term_id(self) -> int:
        """The first term of the stream."""
        return _unpack(self._row)[10]

    @property
    def flags(self) -> int:
        """BEGIN (0x80), END (0x40) and what the publisher has set of the others."""
        return _unpack(self._row)[2]

    @property
    def type(self) -> int:
        """The type of the frame: 1, data."""
        return _unpack(self._row)[3]

    @property
    def version(self) -> int:
        """The version of the frame's layout."""
        return _unpack(self._row)[1]

    @property
    def frame_length(self) -> int:
        """Length of header and payload in bytes."""
        return _unpack(self._row)[0]

    @property
    def reserved_value(self) -> int:
        """What the publisher has put beside the payload."""
        return _unpack(self._row)[8]

    @property
    def position(self) -> int:
        """The stream position in bytes after the message."""
        return _unpack(self._row)[9]

    def __eq__(self, other: object) -> bool:
        return self._fields() == other._fields() if isinstance(other, Header) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return (
            f"Header(session_id={self.session_id}, stream_id={self.stream_id}, term_id={self.term_id}, "
            f"term_offset={self.term_offset}, initial_term_id={self.initial_term_id}, flags={self.flags}, "
            f"type={self.type}, version={self.version}, frame_length={self.frame_length}, "
            f"reserved_value={self.reserved_value}, position={self.position})"
        )

    def _fields(self) -> tuple[int, ...]:
        return _unpack(self._row)[:-1]


def header_of(rows: bytes, index: int) -> Header:
    """The header that one of several rows (`aa_row_t`) tells."""
    header = Header.__new__(Header)
    header._row = rows[_ROW_LENGTH * index : _ROW_LENGTH * (index + 1)]
    return header


class Message:
    """One message: its payload, and the header it came with."""

    __slots__ = ("_row", "payload")

    def __init__(self, payload: bytes, header: Header) -> None:
        self.payload = payload
        self._row = header._row

    @property
    def header(self) -> Header:
        """The header that the payload came with."""
        return header_of(self._row, 0)

    def __bytes__(self) -> bytes:
        return self.payload

    def __len__(self) -> int:
        return len(self.payload)

    def __repr__(self) -> str:
        return f"<Message {len(self.payload)} bytes, {self.header}>"


class BatchPath:
    """What a batch is made of, over messages (`aa_received_t`) that were taken from a native batch."""

    __slots__ = ("_received", "_rows")

    _received: Any
    _rows: bytes | None

    @property
    def nbytes(self) -> int:
        """Payload bytes of all messages together."""
        return int(self._received.nbytes)

    @property
    def buffer(self) -> memoryview:
        """All payloads back to back, as uint8."""
        return self._view(self._received.data, self._received.nbytes)

    @property
    def offsets(self) -> memoryview:
        """Where each payload starts in `buffer`, in bytes, and where the last ends: int32, n + 1 entries."""
        received = self._received
        return self._view(ffi.cast("uint8_t *", received.offsets), 4 * (received.count + 1)).cast("i")

    @property
    def _payload_length(self) -> int:
        """The length of every payload; -1 where they differ or there is none."""
        return int(self._received.payload_length)

    def _column(self, field: int, size: int) -> bytes:
        """A field of every row, back to back: `size` bytes from `field` on."""
        column = ffi.new("uint8_t[]", size * self._received.count)
        lib.aa_received_copy_column(self._received, field, size, column)
        return bytes(ffi.buffer(column))

    def _header(self, index: int) -> Header:
        if self._rows is None:
            self._rows = rows_of(self._received)
        return header_of(self._rows, index)

    def _view(self, data: Any, length: int) -> memoryview:
        return pinned(data, length, self._received).toreadonly()

    def __len__(self) -> int:
        return int(self._received.count)

    def __iter__(self) -> Iterator[bytes]:
        if self._received.nbytes <= _AT_ONCE:
            return iter(payloads_of(self._received))
        return (self[index] for index in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        count = self._received.count
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(count))]
        place = index + count if index < 0 else index
        if not 0 <= place < count:
            raise IndexError("message index out of range")
        offsets = self._received.offsets
        return bytes(ffi.buffer(self._received.data + offsets[place], offsets[place + 1] - offsets[place]))


def batch_of(received: Any, batch_type: type[BatchPath]) -> Any:
    """A batch of messages that were taken from a native batch."""
    batch = batch_type.__new__(batch_type)
    batch._received = ffi.gc(received, lib.aa_received_release)
    batch._rows = None
    return batch


def rows_of(received: Any) -> bytes:
    """All rows."""
    return bytes(ffi.buffer(received.rows, _ROW_LENGTH * received.count))


@lru_cache(maxsize=32)
def _cutter(length: int, count: int) -> struct.Struct:
    return struct.Struct(f"{length}s" * count)


def payloads_of(received: Any) -> tuple[bytes, ...] | list[bytes]:
    """All payloads."""
    data = ffi.buffer(received.data, received.nbytes)
    if received.payload_length >= 0:
        # One call for all of them is several times as fast.
        cutter = _cutter if received.count <= AHEAD_MESSAGES else _cutter.__wrapped__
        return cutter(received.payload_length, received.count).unpack(data)
    offsets = ffi.unpack(received.offsets, received.count + 1)
    return [data[begin:end] for begin, end in pairwise(offsets)]

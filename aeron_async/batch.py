"""Messages that own their memory: one by one, and in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from aeron_async._arrays import array_over, dtype_of
from aeron_async._face import BatchPath, Header, Message
from aeron_async._native import ffi

if TYPE_CHECKING:
    from numpy import ndarray
    from numpy.typing import DTypeLike

__all__ = ["Header", "Message", "MessageBatch"]

_SESSION_ID, _POSITION, _RESERVED_VALUE = (
    ffi.offsetof("aa_row_t", field) for field in ("session_id", "position", "reserved_value")
)


class MessageBatch(BatchPath, Sequence[bytes]):
    """Whole messages in columns; it owns its memory. As a sequence it is the payloads, each as bytes."""

    __slots__ = ()

    @property
    def stream_positions(self) -> memoryview:
        """The stream position in bytes after each message: int64, n entries."""
        return memoryview(self._column(_POSITION, 8)).cast("q")

    @property
    def reserved_values(self) -> memoryview:
        """int64, n entries."""
        return memoryview(self._column(_RESERVED_VALUE, 8)).cast("q")

    @property
    def session_ids(self) -> memoryview:
        """int32, n entries."""
        return memoryview(self._column(_SESSION_ID, 4)).cast("i")

    def as_array(self, dtype: DTypeLike) -> ndarray[Any, Any]:
        """The payloads as an array of records: shape (n,), a read-only view of `buffer`.

        Raises `ValueError` where a payload has not the size of `dtype`, `ImportError` without numpy.
        """
        record = dtype_of(dtype)
        if self._payload_length != record.itemsize:
            for index, payload in enumerate(self):
                if len(payload) != record.itemsize:
                    raise ValueError(f"message {index} has {len(payload)} bytes, a record {record.itemsize} ({record})")
        return array_over(self.buffer, record, len(self))

    def messages(self) -> Iterator[Message]:
        """The messages with their headers."""
        for index, payload in enumerate(self):
            yield Message(payload, self._header(index))

    def __repr__(self) -> str:
        return f"<MessageBatch of {len(self)} messages, {self.nbytes} bytes>"

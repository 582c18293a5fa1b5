"""Messages as callers give them: anything with a C-contiguous buffer, read in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from aeron_async._native import ffi

if TYPE_CHECKING:
    # Known to type checkers wherever they run; collections.abc has it from Python 3.12 on.
    from typing_extensions import Buffer

BytesLike: TypeAlias = "Buffer"
"""Anything with a C-contiguous buffer; arrays of the standard library and numpy count too."""

_SINGLE_BYTES = frozenset("Bbc")


def view_of(data: BytesLike) -> Any:
    """The bytes of `data`, in place. Raises `TypeError` and `BufferError`."""
    try:
        return ffi.from_buffer("uint8_t[]", data)
    except TypeError:
        raise TypeError(f"a message is bytes-like, not {type(data).__name__}") from None
    except ValueError as error:
        # numpy's word for what others call a BufferError.
        raise BufferError(str(error)) from None


def length_of(data: BytesLike) -> int:
    """How many bytes `data` has, whatever its items are. Raises as `view_of`."""
    return len(data) if type(data) is bytes else len(view_of(data))


def bytes_of(data: BytesLike) -> bytes:
    """The bytes of `data`, copied where they could change. Raises as `view_of`."""
    return data if type(data) is bytes else bytes(ffi.buffer(view_of(data)))


def all_bytes_of(messages: Sequence[BytesLike]) -> Sequence[bytes]:
    """The messages as bytes; the sequence itself where they all are already. Raises as `view_of`."""
    if set(map(type, messages)) == {bytes}:
        return cast(Sequence[bytes], messages)
    return list(map(bytes_of, messages))


class Records:
    """Records of one length, back to back in a buffer.

    `itemsize` is their length in bytes. Where it is None, it is that of the buffer's items, or of the rows of a buffer
    with several dimensions.

    Raises `TypeError` for what is no buffer, `BufferError` for one that is strided, `ValueError` where the buffer has
    single bytes and no `itemsize` is given, or a length that `itemsize` does not divide.
    """

    __slots__ = ("count", "itemsize", "view")

    def __init__(self, data: Any, itemsize: int | None = None) -> None:
        self.view = view_of(data)
        """The bytes, in place."""
        length = len(self.view)
        if itemsize is None:
            self.itemsize, self.count = _layout_of(data, length)
            return
        if itemsize < 1:
            raise ValueError(f"itemsize={itemsize} is less than 1")
        self.itemsize = itemsize
        self.count, rest = divmod(length, itemsize)
        if rest:
            raise ValueError(f"a buffer of {length} bytes does not divide into records of itemsize={itemsize}")


def _layout_of(data: Any, length: int) -> tuple[int, int]:
    """The length of a record in a buffer that tells it itself, and how many there are."""
    try:
        shape = memoryview(data)
    except ValueError as error:
        # A dtype of numpy's that the buffer protocol has no word for, such as datetime64.
        raise BufferError(f"{error}; give itemsize=, or view it as another dtype") from None
    with shape:
        if shape.ndim == 1 and shape.format in _SINGLE_BYTES:
            raise ValueError("a buffer of single bytes needs itemsize=, the length of one record in bytes")
        rows = shape.shape[0] if shape.shape else 1
        return (length // rows if shape.ndim > 1 and rows else shape.itemsize), rows

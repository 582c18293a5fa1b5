"""Blocks: frames of an image as they lie in the log, without a copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from aeron_async._arrays import array_over, dtype_of
from aeron_async._core import check
from aeron_async._native import ffi, lib
from aeron_async.protocol.frames import DATA_HEADER_LENGTH, compute_aligned_frame_length

if TYPE_CHECKING:
    from numpy import ndarray
    from numpy.typing import DTypeLike


class Block:
    """Whole frames of one term, headers included, as they lie in the log.

    Obtained from `Image.block`. Fragments are frames of their own here. Every view stays safe to read as long as it
    lives, because it keeps the log mapped, but once the block is left its content may change.

    Source: Aeron's `BlockHandler`.
    """

    __slots__ = ("_image", "_is_left", "_native", "_terms", "session_id", "term_id")

    def __init__(self, native: Any, image: Any, terms: memoryview, session_id: int) -> None:
        """`terms` are those of the log that the block lies in."""
        self._native = native
        self._image = image
        self._is_left = False
        self._terms = terms
        self.session_id = session_id
        self.term_id: int = native.term_id

    @property
    def buffer(self) -> memoryview:
        """The frames, read-only: each with its header of 32 bytes and aligned to 32 bytes."""
        native = self._native
        return self._terms[native.log_offset : native.log_offset + native.length]

    def payloads(self) -> Iterator[memoryview]:
        """The payload of each frame, in place; padding has none.

        Raises `RuntimeError` once the block is left, `CorruptFileError` where its frames were overwritten.
        """
        self._check_here()
        count = self._native.frame_count
        begins = ffi.new("int32_t[]", count)
        ends = ffi.new("int32_t[]", count)
        error = ffi.new("aa_error_t *")
        check(lib.aa_block_index(self._image, self._native, begins, ends, error), error)
        buffer = self.buffer
        return (
            buffer[begin:end] for begin, end in zip(ffi.unpack(begins, count), ffi.unpack(ends, count), strict=True)
        )

    def as_array(self, dtype: DTypeLike) -> ndarray[Any, Any]:
        """The payloads as an array of records in place: shape (n,), read-only, strided over the log.

        Raises `ValueError` where a payload has not the size of `dtype`, `RuntimeError` once the block is left,
        `ImportError` without numpy.
        """
        self._check_here()
        record = dtype_of(dtype)
        native = self._native
        if native.frame_count == 0:
            return array_over(b"", record, 0)
        if native.payload_length != record.itemsize:
            found = "of different sizes" if native.payload_length < 0 else f"of {native.payload_length} bytes"
            raise ValueError(f"the payloads of this block are {found}, a record is of {record.itemsize} ({record})")
        return array_over(
            self._terms,
            record,
            native.frame_count,
            offset=native.log_offset + DATA_HEADER_LENGTH,
            stride=compute_aligned_frame_length(record.itemsize),
        )

    def __repr__(self) -> str:
        return f"<Block of {self._native.length} bytes, session_id={self.session_id} term_id={self.term_id}>"

    def _leave(self, is_taken: bool) -> None:
        self._is_left = True
        if is_taken:
            lib.aa_block_commit(self._image, self._native)

    def _check_here(self) -> None:
        if self._is_left:
            raise RuntimeError("the block was left, so its frames may have been overwritten")

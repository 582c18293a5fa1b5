"""Frames in a log buffer and on the wire, and what their term ids and offsets say about positions.

Term ids are int32 and wrap around, so they are only ever compared by their distance to the initial term id.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from struct import Struct

from aeron_async.protocol.records import Record, align

__all__ = [
    "DATA_HEADER_LENGTH",
    "FRAME_ALIGNMENT",
    "FRAME_HEADER_LENGTH",
    "MAX_MESSAGE_LENGTH",
    "PARTITION_COUNT",
    "TERM_MAX_LENGTH",
    "TERM_MIN_LENGTH",
    "DataHeader",
    "FrameFlags",
    "FrameType",
    "compute_aligned_frame_length",
    "compute_fragmented_length",
    "compute_max_message_length",
    "compute_position",
    "compute_term_id",
    "compute_term_offset",
    "partition_index",
    "position_bits_to_shift",
]

FRAME_ALIGNMENT = 32
FRAME_HEADER_LENGTH = 8
DATA_HEADER_LENGTH = 32
PARTITION_COUNT = 3
TERM_MIN_LENGTH = 64 * 1024
TERM_MAX_LENGTH = 1024 * 1024 * 1024
MAX_MESSAGE_LENGTH = 16 * 1024 * 1024
"""The longest message of a stream, whatever its term length."""


class FrameType(IntEnum):
    """What a frame is (`HDR_TYPE`)."""

    PAD = 0x00
    DATA = 0x01
    NAK = 0x02
    SM = 0x03
    ERR = 0x04
    SETUP = 0x05
    RTTM = 0x06
    RES = 0x07
    ATS_DATA = 0x08
    ATS_SETUP = 0x09
    ATS_SM = 0x0A
    RSP_SETUP = 0x0B
    EXT = -1


class FrameFlags(IntFlag):
    """The flags of a data frame."""

    BEGIN = 0x80
    """The first fragment of a message."""
    END = 0x40
    """The last fragment of a message."""
    EOS = 0x20
    """The stream ends here: only in heartbeats."""
    REVOKED = 0x10
    """The publication was revoked: only in heartbeats."""
    UNFRAGMENTED = BEGIN | END


@dataclass(frozen=True, slots=True)
class DataHeader(Record):
    """The header of every data and padding frame.

    ```
    0   int32   frame length, header included, alignment not; 0 or negative in a log: not yet written
    4   int8    version
    5   uint8   flags
    6   int16   type
    8   int32   term offset
    12  int32   session id
    16  int32   stream id
    20  int32   term id
    24  int64   reserved value
    ```
    """

    FIXED = Struct("<ibBhiiiiq")

    frame_length: int
    version: int
    flags: int
    type: int
    term_offset: int
    session_id: int
    stream_id: int
    term_id: int
    reserved_value: int


def position_bits_to_shift(term_length: int) -> int:
    """Return by how many bits a term count is shifted to become a position.

    Raises `ValueError` unless `term_length` is a power of two that Aeron allows.
    """
    if not TERM_MIN_LENGTH <= term_length <= TERM_MAX_LENGTH or term_length.bit_count() != 1:
        raise ValueError(f"term length is not a power of two from 64 KiB to 1 GiB: {term_length}")
    return term_length.bit_length() - 1


def compute_position(term_id: int, term_offset: int, bits_to_shift: int, initial_term_id: int) -> int:
    """Return the position in the stream, in bytes, of an offset in a term."""
    term_count = _wrap_int32(term_id - initial_term_id)
    return (term_count << bits_to_shift) + term_offset


def compute_term_id(position: int, bits_to_shift: int, initial_term_id: int) -> int:
    """Return the id of the term that holds a position."""
    return _wrap_int32((position >> bits_to_shift) + initial_term_id)


def compute_term_offset(position: int, bits_to_shift: int) -> int:
    """Return the offset, in bytes, of a position in its term."""
    return position & ((1 << bits_to_shift) - 1)


def partition_index(position: int, bits_to_shift: int) -> int:
    """Return which of the log's three partitions holds a position."""
    return (position >> bits_to_shift) % PARTITION_COUNT


def compute_max_message_length(term_length: int) -> int:
    """Return the longest message, in bytes, that a stream with this term length carries."""
    return min(term_length // 8, MAX_MESSAGE_LENGTH)


def compute_aligned_frame_length(payload_length: int) -> int:
    """Return how many bytes of a term a payload takes that fits into one frame."""
    return align(DATA_HEADER_LENGTH + payload_length, FRAME_ALIGNMENT)


def compute_fragmented_length(length: int, max_payload_length: int) -> int:
    """Return how many bytes of a term a message takes that is split into payloads of `max_payload_length`."""
    full, remaining = divmod(length, max_payload_length)
    return full * (max_payload_length + DATA_HEADER_LENGTH) + (
        compute_aligned_frame_length(remaining) if remaining else 0
    )


def _wrap_int32(value: int) -> int:
    return (value + 0x8000_0000 & 0xFFFF_FFFF) - 0x8000_0000

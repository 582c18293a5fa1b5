"""The frames of `aeron_async.rpc`: a header of 16 bytes, then the payload. Any language can speak them.

```
0   int64   correlation id, chosen by the caller and returned with the answer
8   uint8   kind: 1 request, 2 reply, 3 error (its payload is UTF-8 text)
9   uint8   version: 1
10  6 bytes zero; not looked at
```

All fields are little-endian.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

from aeron_async.protocol.records import MalformedRecord, unpack

__all__ = ["HEADER_LENGTH", "VERSION", "FrameKind", "decode_header", "encode_header"]

VERSION = 1

_HEADER = Struct("<qBB6x")
HEADER_LENGTH = _HEADER.size


class FrameKind(IntEnum):
    """What a frame is."""

    REQUEST = 1
    REPLY = 2
    ERROR = 3


def encode_header(correlation_id: int, kind: FrameKind) -> bytes:
    """Return the header of a frame."""
    return _HEADER.pack(correlation_id, kind, VERSION)


def decode_header(frame: bytes) -> tuple[int, FrameKind]:
    """Return the correlation id and the kind of a frame.

    Raises `MalformedRecord` for one that is too short, or of an unknown version or kind.
    """
    correlation_id, kind, version = unpack(_HEADER, memoryview(frame), 0, "rpc header")
    if version != VERSION:
        raise MalformedRecord(f"rpc header has the unknown version {version}")
    try:
        return correlation_id, FrameKind(kind)
    except ValueError:
        raise MalformedRecord(f"rpc header has the unknown kind {kind}") from None

"""The verified stream that crosses between this library and others: what its messages are.

A message is a piece of one long pattern without repetition, taken at a place that the message's number tells: lost,
repeated, swapped or torn messages and fragments all differ. `java/StreamPeer.java` derives the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

MAX_OFFSET = 4096

MTU = 1408
MAX_PAYLOAD = MTU - 32
CHANNEL_PARAMETERS = f"term-length=16m|mtu={MTU}"

# Around every edge: frame alignment, one, two and three fragments, the receiver's window, the longest there is.
LENGTHS = (
    *(0, 1, 31, 32, 33, 256),
    *(MAX_PAYLOAD - 1, MAX_PAYLOAD, MAX_PAYLOAD + 1),
    *(2 * MAX_PAYLOAD - 1, 2 * MAX_PAYLOAD, 2 * MAX_PAYLOAD + 1, 3 * MAX_PAYLOAD),
    *(65_504, 128 * 1024, 200_000, 1 << 20, 7),
    *range(100, 140),
    2 << 20,
)


def messages(lengths: Sequence[int] = LENGTHS) -> list[bytes]:
    """Return the messages of a stream."""
    needed = MAX_OFFSET + max(lengths)
    pattern = b"".join(hashlib.sha256(block.to_bytes(8)).digest() for block in range(needed // 32 + 1))
    offsets = (number * 37 % MAX_OFFSET for number in range(len(lengths)))
    return [pattern[offset : offset + length] for offset, length in zip(offsets, lengths, strict=True)]

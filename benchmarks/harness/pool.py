"""The payloads that every client sends: the same bytes in every language, entry by entry."""

from __future__ import annotations

import hashlib

import numpy as np

ENTRIES = 4096
SEED = 0x5EEDAE20


def splitmix64(count: int, seed: int = SEED) -> np.ndarray:
    """The first `count` numbers of the generator of that name: its state is a counter, so they come all at once."""
    mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def pool_bytes(size: int) -> bytes:
    """All entries of `size` bytes, back to back, before any tick."""
    length = ENTRIES * size
    return splitmix64(-(-length // 8)).astype("<u8").tobytes()[:length]


def pool_digest(size: int) -> str:
    """What the mode `pool` of every peer prints."""
    return hashlib.sha256(pool_bytes(size)).hexdigest()

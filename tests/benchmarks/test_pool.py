"""The payloads: the same in every implementation. What the native peers make of them is tested with those peers."""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.harness.peer import ROOT
from benchmarks.harness.pool import ENTRIES, SEED, pool_bytes, pool_digest, splitmix64
from benchmarks.harness.ticks import TICK, tick
from benchmarks.peers.python.columns import Records
from benchmarks.peers.python.messages import Messages

MASK = (1 << 64) - 1

SIZES = (32, 256, 1024)


def reference(size: int) -> bytes:
    """The pool, number by number as splitmix64 is defined."""
    state, numbers = SEED, []
    for _ in range(ENTRIES * size // 8):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        numbers.append(mixed ^ (mixed >> 31))
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def test_splitmix64_gives_the_published_numbers() -> None:
    assert splitmix64(3, seed=1234567).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@pytest.mark.parametrize("size", SIZES)
def test_the_pool_is_one_stream_cut_into_entries(size: int) -> None:
    assert pool_bytes(size) == reference(size)


def test_a_size_that_is_no_multiple_of_a_word_cuts_the_same_stream() -> None:
    assert pool_bytes(36) == reference(40)[: 36 * ENTRIES]


@pytest.mark.parametrize("peer", ["ours", "pyaeron_peer"])
def test_a_peer_in_python_has_the_same_pool(peer: str) -> None:
    if peer == "pyaeron_peer":
        pytest.importorskip("pyaeron", reason="pyaeron has no wheel for this Python")
    command = [sys.executable, "-m", f"benchmarks.peers.python.{peer}", "pool", "--size", "256"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(result.stdout) == {"sha256": pool_digest(256)}
    assert pool_digest(256) == hashlib.sha256(reference(256)).hexdigest()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("first", [0, 999, ENTRIES - 3, 3 * ENTRIES - 1, 1_234_567])
def test_messages_and_records_are_the_pool_with_the_ticks_of_their_numbers(size: int, first: int) -> None:
    pool = pool_bytes(size)
    expected = []
    for number in range(first, first + 10):
        start = number % ENTRIES * size
        expected.append(TICK.pack(*tick(number)) + pool[start + TICK.size : start + size])

    assert [bytes(message) for message in Messages(size, is_stamped=True).take(first, 10)] == expected
    assert Records(size, is_stamped=True).take(first, 10).tobytes() == b"".join(expected)


@pytest.mark.parametrize("size", SIZES)
def test_without_a_tick_each_entry_keeps_the_tick_of_its_own_number(size: int) -> None:
    messages, records = Messages(size, is_stamped=False), Records(size, is_stamped=False)
    first = 7 * ENTRIES - 2
    fields = [TICK.unpack_from(message) for message in messages.take(first, 4)]
    assert fields == [tick(number % ENTRIES) for number in range(first, first + 4)]
    assert np.frombuffer(b"".join(messages.take(first, 4)), records.take(0, 1).dtype).tobytes() == (
        records.take(first, 4).tobytes()
    )

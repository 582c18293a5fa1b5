"""Positions in a stream, and the frames that it is made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeron_async.protocol import frames

MIN_BITS, MAX_BITS = 16, 30


def test_a_data_header_is_laid_out_as_on_the_wire() -> None:
    header = frames.DataHeader(
        frame_length=37,
        version=0,
        flags=frames.FrameFlags.UNFRAGMENTED,
        type=frames.FrameType.DATA,
        term_offset=64,
        session_id=-2,
        stream_id=1001,
        term_id=7,
        reserved_value=-1,
    )
    encoded = (
        b"\x25\0\0\0" b"\0\xc0\x01\0" b"\x40\0\0\0" b"\xfe\xff\xff\xff" b"\xe9\x03\0\0" b"\x07\0\0\0"
        b"\xff\xff\xff\xff\xff\xff\xff\xff"
    )  # fmt: skip
    assert header.encode() == encoded
    assert frames.DataHeader.decode(encoded) == header


@pytest.mark.parametrize("term_length", [0, -65536, 65535, 65537, 32768, 3 << 16, 1 << 31])
def test_a_term_length_that_aeron_does_not_allow_is_refused(term_length: int) -> None:
    with pytest.raises(ValueError, match=f"power of two from 64 KiB to 1 GiB: {term_length}"):
        frames.position_bits_to_shift(term_length)


def test_term_ids_wrap_around() -> None:
    initial_term_id = 2**31 - 1
    position = frames.compute_position(-(2**31), 32, MIN_BITS, initial_term_id)
    assert position == 65536 + 32
    assert frames.compute_term_id(position, MIN_BITS, initial_term_id) == -(2**31)


@given(
    bits=st.integers(MIN_BITS, MAX_BITS),
    initial_term_id=st.integers(-(2**31), 2**31 - 1),
    term_count=st.integers(0, 2**31 - 1),
    term_offset=st.integers(0, 2**MIN_BITS - 1),
)
def test_a_position_tells_its_term_and_offset(
    bits: int, initial_term_id: int, term_count: int, term_offset: int
) -> None:
    position = (term_count << bits) + term_offset
    term_id = frames.compute_term_id(position, bits, initial_term_id)
    assert frames.compute_position(term_id, term_offset, bits, initial_term_id) == position
    assert frames.compute_term_offset(position, bits) == term_offset
    assert frames.partition_index(position, bits) == term_count % 3


@pytest.mark.parametrize(
    ("length", "max_payload_length", "needed"),
    [(0, 1376, 0), (1, 1376, 64), (1376, 1376, 1408), (1377, 1376, 1408 + 64), (2752, 1376, 2816)],
)
def test_a_message_takes_a_full_frame_for_each_fragment_but_the_last(
    length: int, max_payload_length: int, needed: int
) -> None:
    assert frames.compute_fragmented_length(length, max_payload_length) == needed


def test_a_message_is_at_most_an_eighth_of_a_term_and_16_mib() -> None:
    assert frames.compute_max_message_length(64 * 1024) == 8 * 1024
    assert frames.compute_max_message_length(128 * 1024 * 1024) == 16 * 1024 * 1024
    assert frames.compute_max_message_length(1024 * 1024 * 1024) == 16 * 1024 * 1024

"""The header of rpc frames: bytes as the contract has them, there and back, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeron_async.protocol.records import MalformedRecord
from aeron_async.protocol.rpc_frames import HEADER_LENGTH, VERSION, FrameKind, decode_header, encode_header

correlation_ids = st.integers(-(1 << 63), (1 << 63) - 1)
kinds = st.sampled_from(FrameKind)


def test_a_header_is_sixteen_bytes_little_endian() -> None:
    assert encode_header(0x0102030405060708, FrameKind.ERROR) == bytes.fromhex("0807060504030201 03 01 000000000000")


@given(correlation_ids, kinds, st.binary())
def test_a_header_comes_back_whatever_follows_it(correlation_id: int, kind: FrameKind, payload: bytes) -> None:
    assert decode_header(encode_header(correlation_id, kind) + payload) == (correlation_id, kind)


@given(correlation_ids, kinds, st.integers(0, HEADER_LENGTH - 1))
def test_a_short_header_is_refused(correlation_id: int, kind: FrameKind, length: int) -> None:
    with pytest.raises(MalformedRecord, match="too short"):
        decode_header(encode_header(correlation_id, kind)[:length])


@given(correlation_ids, st.integers(0, 255), st.integers(0, 255), st.binary(min_size=6, max_size=6))
def test_only_known_kinds_and_versions_are_taken(correlation_id: int, kind: int, version: int, reserved: bytes) -> None:
    frame = correlation_id.to_bytes(8, "little", signed=True) + bytes([kind, version]) + reserved
    if version == VERSION and kind in (1, 2, 3):
        assert decode_header(frame) == (correlation_id, FrameKind(kind))
    else:
        with pytest.raises(MalformedRecord, match=r"unknown (version|kind)"):
            decode_header(frame)

"""The CnC file: what is read from it, and that nothing untrue in it is believed."""

from __future__ import annotations

import dataclasses
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeron_async.protocol import cnc
from aeron_async.protocol.records import MalformedRecord

METADATA = cnc.CncMetadata(
    cnc_version=cnc.CNC_VERSION.pack(),
    to_driver_buffer_length=1024 + cnc.RING_BUFFER_TRAILER_LENGTH,
    to_clients_buffer_length=2048 + cnc.BROADCAST_TRAILER_LENGTH,
    counters_metadata_buffer_length=8 * cnc.COUNTER_METADATA_LENGTH,
    counters_values_buffer_length=8 * cnc.COUNTER_VALUE_LENGTH,
    error_log_buffer_length=512,
    client_liveness_timeout=10_000_000_000,
    start_timestamp=1_700_000_000_000,
    pid=4711,
    file_page_size=4096,
)


def file_of(metadata: cnc.CncMetadata) -> bytes:
    return metadata.encode().ljust(METADATA.file_length, b"\0")


def test_buffers_follow_the_metadata_in_order() -> None:
    metadata = cnc.read_cnc(file_of(METADATA))
    assert metadata == METADATA
    assert metadata.to_driver_buffer_offset == 128
    assert metadata.to_clients_buffer_offset == 128 + 1792
    assert metadata.counters_metadata_buffer_offset == 128 + 1792 + 2176
    assert metadata.counters_values_buffer_offset == 128 + 1792 + 2176 + 4096
    assert metadata.error_log_buffer_offset == 128 + 1792 + 2176 + 4096 + 1024
    assert metadata.file_length == 128 + 1792 + 2176 + 4096 + 1024 + 512
    assert metadata.max_counter_id == 7


@pytest.mark.parametrize(
    ("version", "compatible"),
    [((0, 2, 0), True), ((0, 1, 0), True), ((0, 3, 7), True), ((1, 0, 0), False), ((0, 0, 0), False)],
)
def test_only_the_major_version_decides_and_zero_is_not_ready(version: tuple[int, int, int], compatible: bool) -> None:
    packed = cnc.SemanticVersion(*version).pack()
    metadata = dataclasses.replace(METADATA, cnc_version=packed)
    assert metadata.is_compatible is compatible
    assert str(metadata.version) == ".".join(map(str, version))


@pytest.mark.parametrize("length", [0, 1, 51, 128, METADATA.file_length - 1])
def test_a_file_that_is_too_short_is_refused(length: int) -> None:
    with pytest.raises(MalformedRecord, match="too short"):
        cnc.read_cnc(file_of(METADATA)[:length])


def test_a_file_of_zeros_is_refused() -> None:
    with pytest.raises(MalformedRecord, match="to-driver buffer is not a power of two"):
        cnc.read_cnc(bytes(METADATA.file_length))


@pytest.mark.parametrize(
    "change",
    [
        {"to_driver_buffer_length": 1000 + 768},
        {"to_driver_buffer_length": 768},
        {"to_driver_buffer_length": -(2**31)},
        {"to_driver_buffer_length": 2**30 + 768},
        {"to_clients_buffer_length": 2049 + 128},
        {"to_clients_buffer_length": 0},
        {"counters_metadata_buffer_length": 8 * 512 - 1},
        {"counters_metadata_buffer_length": -1},
        {"counters_values_buffer_length": -1},
        {"counters_values_buffer_length": 2**31 - 1},
        {"error_log_buffer_length": -1},
        {"error_log_buffer_length": 2**31 - 1},
    ],
    ids=str,
)
def test_lengths_that_cannot_be_true_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(MalformedRecord):
        cnc.read_cnc(file_of(dataclasses.replace(METADATA, **change)))


@given(st.binary(min_size=128, max_size=256))
def test_no_bytes_make_it_raise_anything_else(content: bytes) -> None:
    with pytest.raises(MalformedRecord):
        cnc.read_cnc(content)


def counter_buffers(state: int, label_length: int) -> tuple[bytearray, bytearray]:
    metadata, values = bytearray(2 * 512), bytearray(2 * 128)
    struct.pack_into("<iiq", metadata, 512, state, 20861, -1)
    metadata[512 + 16 : 512 + 20] = b"key!"
    struct.pack_into("<i5s", metadata, 512 + 128, label_length, b"label")
    struct.pack_into("<qqqq", values, 128, -1, 2, 3, 4)
    return metadata, values


def test_a_counter_is_read_from_its_two_records() -> None:
    assert cnc.decode_counter(*counter_buffers(cnc.COUNTER_RECORD_ALLOCATED, 5), 1) == cnc.CounterRecord(
        counter_id=1,
        state=cnc.COUNTER_RECORD_ALLOCATED,
        type_id=20861,
        free_for_reuse_deadline=-1,
        key=b"key!".ljust(112, b"\0"),
        label="label",
        value=-1,
        registration_id=2,
        owner_id=3,
        reference_id=4,
    )


def test_an_unused_record_is_no_counter() -> None:
    assert cnc.decode_counter(*counter_buffers(cnc.COUNTER_RECORD_UNUSED, -1), 1) is None


@pytest.mark.parametrize("label_length", [-1, 381, 2**31 - 1])
def test_a_label_that_does_not_fit_its_room_is_refused(label_length: int) -> None:
    with pytest.raises(MalformedRecord, match=f"counter 1 has a label of {label_length} bytes"):
        cnc.decode_counter(*counter_buffers(cnc.COUNTER_RECORD_ALLOCATED, label_length), 1)


@pytest.mark.parametrize("counter_id", [-1, 2, 2**31 - 1])
def test_a_counter_id_out_of_range_is_refused(counter_id: int) -> None:
    with pytest.raises(MalformedRecord, match=f"{counter_id}"):
        cnc.decode_counter(*counter_buffers(cnc.COUNTER_RECORD_ALLOCATED, 5), counter_id)

"""What all records share: exact layouts, padding, and the refusal of what does not fit."""

from __future__ import annotations

import mmap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeron_async.protocol.commands import (
    AddCounter,
    AddPublication,
    RejectImage,
    RemovePublication,
    TerminateDriver,
    decode_command,
)
from aeron_async.protocol.records import MalformedRecord, align
from aeron_async.protocol.responses import AvailableImage, ErrorResponse, PublicationError, decode_response

ADD_COUNTER = AddCounter(client_id=1, correlation_id=2, type_id=1001, key=b"abcde", label="label")
AVAILABLE_IMAGE = AvailableImage(
    correlation_id=7,
    session_id=-8,
    stream_id=9,
    subscription_registration_id=10,
    subscriber_position_id=11,
    log_file_name="/dev/shm/aeron/images/7.logbuffer",
    source_identity="127.0.0.1:40123",
)


def test_fixed_fields_come_first_and_text_after_its_length() -> None:
    assert AddPublication(client_id=1, correlation_id=-2, stream_id=1001, channel="aeron:ipc").encode() == (
        b"\x01\0\0\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff\xe9\x03\0\0\x09\0\0\0aeron:ipc"
    )


def test_a_second_text_starts_at_a_multiple_of_four_bytes() -> None:
    assert ADD_COUNTER.encode()[20:] == b"\x05\0\0\0" + b"abcde\0\0\0" + b"\x05\0\0\0" + b"label"


def test_a_short_rejection_is_padded_to_what_the_driver_accepts() -> None:
    rejection = RejectImage(client_id=1, correlation_id=2, image_correlation_id=3, position=4, reason="no")
    assert rejection.encode()[32:] == b"\x02\0\0\0" + b"no\0\0"
    assert RejectImage.decode(rejection.encode()) == rejection


@pytest.mark.parametrize("record", [ADD_COUNTER, AVAILABLE_IMAGE], ids=["command", "response"])
def test_every_truncation_of_a_record_is_refused(record: AddCounter | AvailableImage) -> None:
    encoded = record.encode()
    for length in range(len(encoded)):
        with pytest.raises(MalformedRecord):
            type(record).decode(encoded[:length])
    assert type(record).decode(encoded) == record


@pytest.mark.parametrize("length", [-1, -(2**31), 6, 2**31 - 1])
def test_a_length_that_does_not_fit_is_refused(length: int) -> None:
    error = ErrorResponse(offending_command_correlation_id=1, error_code=2, error_message="wrong").encode()
    with pytest.raises(MalformedRecord, match=f"ErrorResponse has a length that does not fit: {length} "):
        ErrorResponse.decode(error[:12] + length.to_bytes(4, "little", signed=True) + error[16:])


def test_what_follows_a_record_is_not_looked_at() -> None:
    assert AddCounter.decode(ADD_COUNTER.encode() + b"more") == ADD_COUNTER


def test_a_record_is_read_from_any_buffer() -> None:
    encoded = ADD_COUNTER.encode()
    with mmap.mmap(-1, mmap.PAGESIZE) as mapped:
        mapped[: len(encoded)] = encoded
        assert AddCounter.decode(mapped) == ADD_COUNTER
    assert AddCounter.decode(bytearray(encoded)) == ADD_COUNTER
    assert AddCounter.decode(memoryview(b"12345678" + encoded)[8:]) == ADD_COUNTER


@pytest.mark.parametrize("stream_id", [2**31, -(2**31) - 1])
def test_a_value_that_does_not_fit_its_field_raises_value_error(stream_id: int) -> None:
    with pytest.raises(ValueError, match=rf"stream_id={stream_id}"):
        AddPublication(client_id=1, correlation_id=2, stream_id=stream_id, channel="aeron:ipc").encode()


def test_text_that_is_not_ascii_is_utf8() -> None:
    error = ErrorResponse(offending_command_correlation_id=1, error_code=2, error_message="naïve")
    assert error.encode().endswith(b"\x06\0\0\0na\xc3\xafve")
    assert ErrorResponse.decode(error.encode()) == error


def test_text_that_is_not_utf8_is_still_readable() -> None:
    encoded = ErrorResponse(offending_command_correlation_id=1, error_code=2, error_message="????").encode()
    assert (
        ErrorResponse.decode(encoded[:-4] + b"a\xffb\xfe").error_message
        == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"
    )


def test_a_file_name_that_is_not_utf8_survives() -> None:
    encoded = AVAILABLE_IMAGE.encode().replace(b"/dev/shm/aeron", b"/dev/\xff\xfe\xfd/aeron")
    image = AvailableImage.decode(encoded)
    assert image.log_file_name.encode(errors="surrogateescape").startswith(b"/dev/\xff\xfe\xfd/aeron")
    assert image.encode() == encoded


def test_the_flags_of_a_removal_may_be_missing() -> None:
    removal = RemovePublication(client_id=1, correlation_id=2, registration_id=3)
    assert RemovePublication.decode(removal.encode()[:24]) == removal
    with pytest.raises(MalformedRecord):
        RemovePublication.decode(removal.encode()[:28])


def test_a_removal_may_revoke() -> None:
    removal = RemovePublication(client_id=1, correlation_id=2, registration_id=3, flags=RemovePublication.FLAG_REVOKE)
    assert removal.is_revoke
    assert not RemovePublication(client_id=1, correlation_id=2, registration_id=3).is_revoke


def publication_error(address_type: int, address: bytes, source_port: int = 40123) -> PublicationError:
    return PublicationError(
        registration_id=1,
        destination_registration_id=-1,
        session_id=2,
        stream_id=3,
        receiver_id=4,
        group_tag=-1,
        address_type=address_type,
        source_port=source_port,
        address=address.ljust(16, b"\0"),
        error_code=13,
        error_message="rejected",
    )


def test_a_publication_error_tells_its_source() -> None:
    assert publication_error(1, bytes([127, 0, 0, 1])).source_address == "127.0.0.1:40123"
    assert publication_error(2, bytes(15) + b"\x01").source_address == "[::1]:40123"
    assert publication_error(0, b"").source_address is None


def test_a_publication_error_over_ipc_has_no_source() -> None:
    assert publication_error(1, bytes([1, 0, 0, 127]), source_port=0).source_address is None


def test_unknown_types_are_none() -> None:
    assert decode_command(0x13, b"") is None
    assert decode_response(0x0F0E, b"") is None


@given(type_id=st.integers(0, 0x13), record=st.binary(max_size=100))
def test_no_bytes_make_a_command_raise_anything_else(type_id: int, record: bytes) -> None:
    try:
        command = decode_command(type_id, record)
    except MalformedRecord:
        return
    if isinstance(command, TerminateDriver):
        assert command.token in record


@given(type_id=st.integers(0x0F00, 0x0F0E), record=st.binary(max_size=100))
def test_no_bytes_make_a_response_raise_anything_else(type_id: int, record: bytes) -> None:
    try:
        response = decode_response(type_id, record)
    except MalformedRecord:
        return
    assert response is None or type_id == response.TYPE_ID


@pytest.mark.parametrize(("length", "aligned"), [(0, 0), (1, 32), (31, 32), (32, 32), (33, 64)])
def test_alignment_rounds_up(length: int, aligned: int) -> None:
    assert align(length, 32) == aligned

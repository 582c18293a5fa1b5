"""The fake driver does to shared memory what a driver does."""

from __future__ import annotations

import pytest

from aeron_async._core import Broadcast, Cnc, Lapped, log_info, open_log
from aeron_async.protocol.commands import ClientClose, RemovePublication
from aeron_async.protocol.frames import FrameFlags, FrameType
from tests.fakes import FakeDriver


def test_commands_are_taken_in_order_across_the_wrap_and_make_room(driver: FakeDriver) -> None:
    cnc = Cnc(driver.cnc_path)
    sent = []
    for correlation_id in range(300):
        command = RemovePublication(1, correlation_id, correlation_id) if correlation_id % 3 else ClientClose(1)
        assert cnc.send(command.TYPE_ID, command.encode())
        sent.append(command)
        if correlation_id % 7 == 0:
            assert driver.receive() == sent
            sent.clear()
    assert driver.receive() == sent
    assert driver.receive() == []


def test_records_are_broadcast_in_order_across_the_wrap(driver: FakeDriver) -> None:
    broadcast = Broadcast(Cnc(driver.cnc_path))
    for number in range(2000):
        content = bytes([number % 251]) * (number % 97)
        driver.transmit(1 + number, content)
        assert broadcast.receive() == (1 + number, content)
    assert broadcast.receive() is None


def test_a_broadcast_laps_who_does_not_listen(driver: FakeDriver) -> None:
    broadcast = Broadcast(Cnc(driver.cnc_path))
    for _ in range(20):
        driver.transmit(1, bytes(500))
    with pytest.raises(Lapped):
        broadcast.receive()


def test_counters_are_told_apart(driver: FakeDriver) -> None:
    first = driver.allocate_counter(1001, label="first", value=5)
    second = driver.allocate_counter(1001, label="second", value=-6)
    second.value += 1
    assert (first.label, first.value) == ("first", 5)
    assert (second.label, second.value) == ("second", -5)


def test_a_log_has_the_constants_that_it_was_made_with(driver: FakeDriver) -> None:
    log = driver.create_log(initial_term_id=-5, session_id=3, stream_id=4, mtu_length=4096, term_length=1 << 17)
    info = log_info(open_log(log.path))
    assert (info.initial_term_id, info.session_id, info.stream_id) == (-5, 3, 4)
    assert (info.mtu_length, info.term_length, info.page_size) == (4096, 1 << 17, 4096)


def test_messages_are_fragmented_and_terms_padded(driver: FakeDriver) -> None:
    log = driver.create_log(initial_term_id=7, mtu_length=1408)
    assert log.append(b"a" * 1377) == 1408 + 64
    begin, end = log.frames()
    assert (begin.header.flags, len(begin.payload)) == (FrameFlags.BEGIN, 1376)
    assert (end.header.flags, end.payload) == (FrameFlags.END, b"a")
    assert log.messages() == [b"a" * 1377]

    while log.position < 65536 - 1000:
        log.append(bytes(800))
    first_of_term = 65536
    assert log.append(bytes(1000)) == first_of_term + 1056
    *_, padding, last = log.frames()
    assert padding.header.type == FrameType.PAD
    assert padding.header.term_offset + padding.header.frame_length == 65536
    assert (last.header.term_id, last.header.term_offset) == (8, 0)


def test_a_log_goes_round_its_three_terms_as_long_as_it_is_read(driver: FakeDriver) -> None:
    log = driver.create_log()
    for number in range(5000):
        position = log.position
        payload = number.to_bytes(4, "little") * 20
        log.append(payload)
        assert log.messages(position) == [payload]
    assert log.position > 8 * 65536

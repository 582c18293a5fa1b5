"""Reading without waiting: polls and batches of subscriptions and images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from aeron_async.errors import CorruptFileError, ForkedClientError
from aeron_async.protocol.counter_types import CounterType
from aeron_async.protocol.frames import TERM_MIN_LENGTH, FrameFlags, FrameType
from aeron_async.subscription import Header, Image, MessageBatch, Subscription
from tests.unit.rig import IPC, ImageStream, Rig

MTU = 1408
MAX_PAYLOAD = MTU - 32


def polled(source: Subscription | Image, fragment_limit: int = 10) -> list[bytes]:
    """The payloads of one poll."""
    payloads: list[bytes] = []
    source.poll(lambda payload, _: payloads.append(bytes(payload)), fragment_limit)
    return payloads


# --- poll -------------------------------------------------------------------------------------------------------------


def test_a_poll_hands_out_messages_in_order_and_returns_the_fragments(
    source: Subscription | Image, stream: ImageStream
) -> None:
    for message in (b"one", b"", b"three"):
        stream.log.append(message)
    payloads: list[bytes] = []
    assert source.poll(lambda payload, _: payloads.append(bytes(payload))) == 3
    assert payloads == [b"one", b"", b"three"]
    assert source.poll(lambda payload, _: payloads.append(bytes(payload))) == 0
    assert stream.image.position == stream.position.value == stream.log.position


def test_a_poll_without_images_reads_nothing(subscription: Subscription) -> None:
    assert polled(subscription) == []
    assert len(subscription.poll_batch()) == 0


def test_a_header_says_where_the_message_is_from(rig: Rig, subscription: Subscription) -> None:
    log = rig.driver.create_log(initial_term_id=-5, session_id=99, position=2 * TERM_MIN_LENGTH + 640)
    rig.add_image(subscription, log, join_position=log.position)
    log.append(b"hello", reserved_value=-7)
    headers: list[Header] = []
    subscription.poll(lambda _, header: headers.append(header))
    assert headers == [
        Header(
            session_id=99,
            stream_id=log.stream_id,
            term_id=-3,
            term_offset=640,
            initial_term_id=-5,
            flags=FrameFlags.UNFRAGMENTED,
            type=FrameType.DATA,
            version=0,
            frame_length=32 + 5,
            reserved_value=-7,
            position=2 * TERM_MIN_LENGTH + 640 + 64,
        )
    ]


def test_a_fragmented_message_arrives_whole_with_one_header(source: Subscription | Image, stream: ImageStream) -> None:
    stream.log.append(b"before")
    message = bytes(range(256)) * 12
    end = stream.log.append(message, reserved_value=11)
    received: list[tuple[bytes, Header]] = []
    assert source.poll(lambda payload, header: received.append((bytes(payload), header))) == 4
    payload, header = received[1]
    assert payload == message
    assert (header.term_offset, header.position) == (64, end)
    assert header.frame_length == 32 + len(message)
    assert header.flags == FrameFlags.UNFRAGMENTED
    assert header.reserved_value == 11


def test_the_fragment_limit_counts_fragments_and_a_message_waits_for_its_last_one(
    source: Subscription | Image, stream: ImageStream
) -> None:
    message = bytes(MAX_PAYLOAD) * 5
    stream.log.append(message)
    stream.log.append(b"after")
    received: list[bytes] = []
    read = [source.poll(lambda payload, _: received.append(bytes(payload)), 2) for _ in range(4)]
    assert read == [2, 2, 2, 0]
    assert received == [message, b"after"]


def test_a_fragment_limit_of_zero_reads_nothing(source: Subscription | Image, stream: ImageStream) -> None:
    stream.log.append(b"message")
    assert polled(source, 0) == []
    assert polled(source) == [b"message"]


def test_fragments_are_kept_until_the_last_one_comes_and_the_position_moves_on(
    source: Subscription | Image, stream: ImageStream
) -> None:
    log = stream.log
    begin = log.append_frame(b"a" * MAX_PAYLOAD, FrameFlags.BEGIN)
    assert polled(source) == []
    assert stream.image.position == begin
    middle = log.append_frame(b"b" * MAX_PAYLOAD, FrameFlags(0))
    assert len(source.poll_batch()) == 0
    assert stream.image.position == middle
    log.append_frame(b"c", FrameFlags.END)
    assert polled(source) == [b"a" * MAX_PAYLOAD + b"b" * MAX_PAYLOAD + b"c"]


def test_a_fragment_without_a_beginning_is_passed_over(source: Subscription | Image, stream: ImageStream) -> None:
    stream.log.append_frame(b"middle", FrameFlags(0))
    stream.log.append_frame(b"end", FrameFlags.END)
    stream.log.append(b"whole")
    assert polled(source) == [b"whole"]


def test_a_beginning_without_an_end_gives_way_to_the_next_message(
    source: Subscription | Image, stream: ImageStream
) -> None:
    stream.log.append_frame(b"begin", FrameFlags.BEGIN)
    assert polled(source) == []
    stream.log.append(b"whole")
    assert polled(source) == [b"whole"]


def test_padding_is_passed_over(source: Subscription | Image, stream: ImageStream) -> None:
    log = stream.log
    while log.position < TERM_MIN_LENGTH - 1000:
        log.append(bytes(900))
        polled(source)
    log.append(bytes(1000))
    assert log.position > TERM_MIN_LENGTH
    assert polled(source) == [bytes(1000)]
    assert stream.image.position == log.position


def test_a_handler_that_raises_has_had_its_message_and_the_rest_is_read_next(
    source: Subscription | Image, stream: ImageStream
) -> None:
    for message in (b"one", b"two", b"three"):
        stream.log.append(message)
    seen: list[bytes] = []

    def handler(payload: memoryview, header: Header) -> None:
        seen.append(bytes(payload))
        if payload == b"two":
            raise ZeroDivisionError("the handler's own")

    with pytest.raises(ZeroDivisionError, match="the handler's own"):
        source.poll(handler)
    assert seen == [b"one", b"two"]
    assert stream.image.position == 128
    assert polled(source) == [b"three"]


def test_a_handler_that_raises_with_the_payload_in_its_hands_is_heard(stream: ImageStream) -> None:
    stream.log.append(b"12345678")

    def handler(payload: memoryview, header: Header) -> None:
        numbers = np.frombuffer(payload, dtype=np.int64)
        raise ZeroDivisionError(str(numbers))

    with pytest.raises(ZeroDivisionError):
        stream.image.poll(handler)


def test_a_handler_may_keep_the_payload_as_an_array(stream: ImageStream) -> None:
    stream.log.append((5).to_bytes(8, "little"))
    kept: list[Any] = []
    stream.image.poll(lambda payload, _: kept.append(np.frombuffer(payload, dtype=np.int64)))
    assert kept[0].tolist() == [5]


def test_a_handler_may_not_read_on(
    source: Subscription | Image, subscription: Subscription, stream: ImageStream
) -> None:
    stream.log.append(b"one")
    stream.log.append(b"two")

    def handler(payload: memoryview, header: Header) -> None:
        for read in (subscription.poll_batch, stream.image.poll_batch, lambda: polled(subscription)):
            with pytest.raises(RuntimeError, match="only one may read"):
                read()

    assert source.poll(handler) == 2


def test_images_take_turns_to_be_first(rig: Rig, subscription: Subscription) -> None:
    logs = [rig.driver.create_log(session_id=session_id) for session_id in range(3)]
    for number, log in enumerate(logs):
        rig.add_image(subscription, log, correlation_id=number)
        for _ in range(3):
            log.append(b"%d" % number)
    firsts = [polled(subscription, 1) for _ in range(9)]
    assert all(len(first) == 1 for first in firsts)
    assert sorted(firsts[:3]) == sorted(firsts[3:6]) == sorted(firsts[6:]) == [[b"0"], [b"1"], [b"2"]]


def test_one_poll_reads_all_images(rig: Rig, subscription: Subscription) -> None:
    for number in range(3):
        log = rig.add_image(subscription, correlation_id=number).log
        log.append(b"%d" % number)
    assert sorted(polled(subscription)) == [b"0", b"1", b"2"]


def test_an_image_is_read_alone(rig: Rig, subscription: Subscription) -> None:
    first = rig.add_image(subscription, correlation_id=1)
    second = rig.add_image(subscription, correlation_id=2)
    first.log.append(b"first")
    second.log.append(b"second")
    assert polled(second.image) == [b"second"]
    assert polled(subscription) == [b"first"]


# --- frames that cannot be true ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 31, TERM_MIN_LENGTH + 1, 2**31 - 1])
def test_a_frame_whose_length_cannot_be_true_is_an_error_after_what_was_before_it(
    source: Subscription | Image, stream: ImageStream, length: int
) -> None:
    stream.log.append(b"good")
    at = stream.log.position
    stream.log.append(b"bad")
    stream.log.put_frame_length(at, length)
    assert polled(source) == [b"good"]
    for read in (source.poll_batch, lambda: polled(source)):
        with pytest.raises(CorruptFileError, match=f"length {length} at position {at}"):
            read()
    assert stream.image.position == at


@pytest.mark.parametrize("position", [1, -32, TERM_MIN_LENGTH << 32])
def test_a_position_that_cannot_be_true_is_an_error(
    source: Subscription | Image, stream: ImageStream, position: int
) -> None:
    stream.position.value = position
    with pytest.raises(CorruptFileError, match=f"position {position}"):
        source.poll_batch()


# --- batches ----------------------------------------------------------------------------------------------------------


MESSAGES = [b"one", b"", b"three" * 1000, b"four"]


@pytest.fixture
def batch(subscription: Subscription, stream: ImageStream) -> MessageBatch:
    for number, message in enumerate(MESSAGES):
        stream.log.append(message, reserved_value=-number)
    return subscription.poll_batch()


def test_a_batch_is_the_sequence_of_its_payloads(batch: MessageBatch) -> None:
    assert len(batch) == 4
    assert list(batch) == MESSAGES
    assert batch[0] == b"one"
    assert batch[-1] == b"four"
    assert batch[-4] == b"one"
    assert batch[1:3] == MESSAGES[1:3]
    assert batch[::-2] == MESSAGES[::-2]
    assert batch[10:] == []
    assert b"four" in batch
    assert batch.index(b"four") == 3
    assert batch.count(b"one") == 1
    assert list(reversed(batch)) == MESSAGES[::-1]
    assert batch
    assert "4 messages" in repr(batch)


@pytest.mark.parametrize("index", [4, -5, 1 << 40])
def test_an_index_outside_a_batch_is_an_error(batch: MessageBatch, index: int) -> None:
    with pytest.raises(IndexError):
        batch[index]


def test_the_columns_of_a_batch_say_the_same_as_its_messages(batch: MessageBatch, stream: ImageStream) -> None:
    headers = [message.header for message in batch.messages()]
    assert [message.payload for message in batch.messages()] == MESSAGES
    assert batch.buffer.tobytes() == b"".join(MESSAGES)
    assert batch.nbytes == len(b"".join(MESSAGES))
    assert batch.offsets.tolist() == [0, 3, 3, 5003, 5007]
    assert batch.session_ids.tolist() == [header.session_id for header in headers] == [stream.log.session_id] * 4
    assert batch.reserved_values.tolist() == [header.reserved_value for header in headers] == [0, -1, -2, -3]
    assert batch.stream_positions.tolist() == [header.position for header in headers]
    assert headers[-1].position == stream.log.position
    assert [header.frame_length for header in headers] == [32 + len(message) for message in MESSAGES]
    assert [header.term_offset for header in headers] == [0, *(header.position for header in headers[:-1])]
    assert {header.term_id for header in headers} == {header.initial_term_id for header in headers}


def test_the_columns_of_a_batch_have_their_types_and_cannot_be_written(batch: MessageBatch) -> None:
    columns = (batch.buffer, batch.offsets, batch.session_ids, batch.stream_positions, batch.reserved_values)
    assert [column.format for column in columns] == ["B", "i", "i", "q", "q"]
    assert all(column.readonly and column.c_contiguous for column in columns)


def test_columns_become_arrays_without_a_copy(batch: MessageBatch) -> None:
    positions = np.asarray(batch.stream_positions)
    assert positions.dtype == np.int64
    assert positions.tolist() == batch.stream_positions.tolist()


def test_a_message_is_its_payload(batch: MessageBatch) -> None:
    first, *_ = batch.messages()
    assert bytes(first) == b"one"
    assert len(first) == 3
    assert "3 bytes" in repr(first)


def test_a_batch_owns_its_memory(
    rig: Rig, subscription: Subscription, batch: MessageBatch, stream: ImageStream
) -> None:
    positions = batch.stream_positions.tolist()
    (first, *_) = batch.messages()
    buffer = batch.buffer
    for _ in range(100):
        stream.log.append(b"x" * 2000)
        subscription.poll_batch()
    rig.conductor.close_resource(subscription.registration_id)
    rig.pass_time(10)
    assert list(batch) == MESSAGES
    assert buffer.tobytes() == b"".join(MESSAGES)
    assert batch.stream_positions.tolist() == positions
    assert first.header.position == positions[0]


def test_a_part_of_a_batch_outlives_it(subscription: Subscription, stream: ImageStream) -> None:
    stream.log.append(b"message", reserved_value=7)
    batch = subscription.poll_batch()
    reserved_values, buffer = batch.reserved_values, batch.buffer
    (message,) = batch.messages()
    del batch
    assert reserved_values.tolist() == [7]
    assert buffer.tobytes() == b"message"
    assert message.header.reserved_value == 7


def test_an_empty_batch_is_empty_in_all_its_columns(subscription: Subscription, stream: ImageStream) -> None:
    batch = subscription.poll_batch()
    assert not batch
    assert list(batch) == list(batch.messages()) == batch[:] == []
    assert batch.nbytes == len(batch.buffer) == 0
    assert batch.offsets.tolist() == [0]
    assert batch.session_ids.tolist() == batch.stream_positions.tolist() == batch.reserved_values.tolist() == []


def test_a_batch_of_empty_messages_has_them_all(subscription: Subscription, stream: ImageStream) -> None:
    stream.log.append(b"")
    stream.log.append(b"")
    batch = subscription.poll_batch()
    assert list(batch) == [b"", b""]
    assert batch.offsets.tolist() == [0, 0, 0]


def test_the_limit_of_a_batch_counts_whole_messages(source: Subscription | Image, stream: ImageStream) -> None:
    for message in MESSAGES:
        stream.log.append(message)
    assert list(source.poll_batch(3)) == MESSAGES[:3]
    assert list(source.poll_batch(3)) == MESSAGES[3:]
    assert stream.image.position == stream.log.position


def test_the_bytes_of_a_batch_are_limited_to_whole_messages_but_one_always_comes(
    source: Subscription | Image, stream: ImageStream
) -> None:
    for length in (100, 100, 5000, 100, 100):
        stream.log.append(bytes(length))
    lengths = []
    while batch := source.poll_batch(max_bytes=250):
        lengths.append([len(payload) for payload in batch])
    assert lengths == [[100, 100], [5000], [100, 100]]


def test_a_batch_has_the_messages_of_all_images(rig: Rig, subscription: Subscription) -> None:
    for number in range(3):
        log = rig.driver.create_log(session_id=number)
        rig.add_image(subscription, log, correlation_id=number)
        log.append(b"%d" % number)
        log.append(b"%d" % number)
    batch = subscription.poll_batch()
    by_session: dict[int, list[bytes]] = {}
    for session_id, payload in zip(batch.session_ids, batch, strict=True):
        by_session.setdefault(session_id, []).append(payload)
    assert by_session == {number: [b"%d" % number] * 2 for number in range(3)}


def test_ways_to_read_may_follow_each_other_in_any_order(subscription: Subscription, stream: ImageStream) -> None:
    messages = [b"%d" % number for number in range(12)]
    for message in messages:
        stream.log.append(message)
    received = polled(subscription, 2)
    received += subscription.poll_batch(3)
    received += polled(stream.image, 1)
    received += stream.image.poll_batch(2)
    received += polled(subscription, 100)
    assert received == messages


# --- closed -----------------------------------------------------------------------------------------------------------


def test_a_closed_subscription_reads_nothing_and_keeps_its_last_values(rig: Rig) -> None:
    status = rig.driver.allocate_counter(CounterType.RECEIVE_CHANNEL_STATUS, value=1)
    subscription = rig.add_subscription(status_id=status.id)
    _, log, position = rig.add_image(subscription)
    log.append(b"one")
    log.append(b"two")
    assert list(subscription.poll_batch(1)) == [b"one"]
    rig.conductor.close_resource(subscription.registration_id)
    status.value = -1
    assert polled(subscription) == []
    assert len(subscription.poll_batch()) == 0
    assert subscription.channel_status == 1
    assert not subscription.is_connected
    assert subscription.image_by_session_id(log.session_id) is None
    assert position.value == 64
    assert "is_closed=True" in repr(subscription)


def test_a_closed_image_reads_nothing_and_keeps_its_last_values(
    rig: Rig, subscription: Subscription, stream: ImageStream
) -> None:
    image, log, position = stream
    log.append(b"one")
    log.append(b"two")
    log.set_active_transport_count(1)
    assert list(image.poll_batch(1)) == [b"one"]
    rig.remove_image(image)
    position.value = 4096
    log.end_of_stream_position = 64
    log.revoke()
    assert polled(image) == []
    assert len(image.poll_batch()) == 0
    assert image.position == 64
    assert image.end_of_stream_position == (1 << 63) - 1
    assert not image.is_end_of_stream
    assert not image.is_publication_revoked
    assert position.value == 4096
    assert "is_closed=True" in repr(image)
    assert polled(subscription) == []


def test_an_image_that_leaves_takes_nothing_that_is_of_another(rig: Rig, subscription: Subscription) -> None:
    first = rig.add_image(subscription, correlation_id=1)
    second = rig.add_image(subscription, correlation_id=2)
    second.log.append(b"second")
    rig.remove_image(first.image)
    assert polled(subscription) == [b"second"]


def test_a_subscription_of_a_forked_child_says_so(rig: Rig, subscription: Subscription, stream: ImageStream) -> None:
    rig.conductor.close_handles()
    rig.surroundings.process_error = ForkedClientError("in a child")
    for read in (subscription.poll_batch, stream.image.poll_batch, lambda: polled(subscription)):
        with pytest.raises(ForkedClientError):
            read()


# --- what an image tells ----------------------------------------------------------------------------------------------


def test_an_image_knows_the_end_of_its_stream(stream: ImageStream) -> None:
    image, log, _ = stream
    log.append(b"last")
    assert not image.is_end_of_stream
    assert image.end_of_stream_position == (1 << 63) - 1
    log.end_of_stream_position = log.position
    assert image.end_of_stream_position == 64
    assert not image.is_end_of_stream
    image.poll_batch()
    assert image.is_end_of_stream


def test_an_image_knows_its_transports_and_whether_its_publication_was_revoked(stream: ImageStream) -> None:
    image, log, _ = stream
    assert (image.active_transport_count, image.is_publication_revoked) == (0, False)
    log.set_active_transport_count(2)
    log.revoke()
    assert (image.active_transport_count, image.is_publication_revoked) == (2, True)


def test_an_image_and_a_subscription_say_what_they_are(subscription: Subscription, stream: ImageStream) -> None:
    assert f"session_id={stream.log.session_id}" in repr(stream.image)
    assert IPC in repr(stream.image)
    assert "images=1" in repr(subscription)


def test_a_channel_without_a_status_counter_is_active(subscription: Subscription) -> None:
    assert subscription.channel_status == 1


@pytest.mark.parametrize("read", ["poll", "poll_batch"])
def test_a_negative_limit_is_refused(source: Subscription | Image, stream: ImageStream, read: str) -> None:
    stream.log.append(b"message")
    reading: dict[str, Callable[[], Any]] = {
        "poll": lambda: polled(source, -1),
        "poll_batch": lambda: source.poll_batch(-1),
    }
    with pytest.raises(OverflowError):
        reading[read]()
    assert polled(source) == [b"message"]

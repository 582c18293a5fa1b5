"""Blocks: frames in place, by handler and by context manager, and the views of them."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from aeron_async.block import Block
from aeron_async.errors import CorruptFileError, ForkedClientError
from aeron_async.protocol.frames import TERM_MIN_LENGTH, DataHeader, FrameFlags, FrameType
from aeron_async.subscription import Image, Subscription
from tests.unit.rig import ImageStream, Rig, mapping_count

MAX_PAYLOAD = 1408 - 32
NO_LIMIT = 1 << 30


@pytest.fixture
def image(stream: ImageStream) -> Image:
    return stream.image


def blocks_polled(image: Image, limit: int = NO_LIMIT) -> list[tuple[bytes, int, int]]:
    blocks: list[tuple[bytes, int, int]] = []
    length = image.block_poll(
        lambda block, session_id, term_id: blocks.append((bytes(block), session_id, term_id)), limit
    )
    assert length == sum(len(block) for block, _, _ in blocks)
    return blocks


# --- by handler -------------------------------------------------------------------------------------------------------


def test_a_handler_may_release_its_block(image: Image, stream: ImageStream) -> None:
    stream.log.append(bytes(8))
    assert image.block_poll(lambda block, session_id, term_id: block.release(), NO_LIMIT) == 64
    assert image.position == 64


def test_a_block_is_the_frames_as_they_lie_in_the_log(image: Image, stream: ImageStream) -> None:
    log = stream.log
    log.append(b"one", reserved_value=11)
    log.append(b"two" * 30)
    ((block, session_id, term_id),) = blocks_polled(image)
    assert (session_id, term_id) == (log.session_id, log.initial_term_id)
    assert len(block) == log.position == 64 + 128
    first = DataHeader.decode(block)
    assert (first.frame_length, first.reserved_value) == (35, 11)
    assert block[32:35] == b"one"
    assert block[96 : 96 + 90] == b"two" * 30
    assert image.position == log.position
    assert blocks_polled(image) == []


def test_a_block_has_whole_frames_within_its_limit(image: Image, stream: ImageStream) -> None:
    for _ in range(3):
        stream.log.append(bytes(60))
    assert blocks_polled(image, 95) == []
    assert [len(block) for block, _, _ in blocks_polled(image, 96)] == [96]
    assert [len(block) for block, _, _ in blocks_polled(image, 1000)] == [192]


def test_padding_is_a_block_of_its_own(image: Image, stream: ImageStream) -> None:
    log = stream.log
    while log.position < TERM_MIN_LENGTH - 1000:
        log.append(bytes(900))
    before = log.position
    log.append(bytes(1000))
    lengths, types = [], []
    while blocks := blocks_polled(image):
        lengths.append(len(blocks[0][0]))
        types.append(DataHeader.decode(blocks[0][0]).type)
    assert lengths == [before, TERM_MIN_LENGTH - before, log.position - TERM_MIN_LENGTH]
    assert types == [FrameType.DATA, FrameType.PAD, FrameType.DATA]


def test_fragments_are_frames_of_their_own(image: Image, stream: ImageStream) -> None:
    message = bytes(range(256)) * 12
    stream.log.append(message)
    with image.block(NO_LIMIT) as block:
        fragments = [bytes(payload) for payload in block.payloads()]
    assert [len(fragment) for fragment in fragments] == [MAX_PAYLOAD, MAX_PAYLOAD, len(message) - 2 * MAX_PAYLOAD]
    assert b"".join(fragments) == message


def test_a_block_whose_handler_raises_is_taken(image: Image, stream: ImageStream) -> None:
    end = stream.log.append(b"one")

    def handler(block: memoryview, session_id: int, term_id: int) -> None:
        assert image.position == 0
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        image.block_poll(handler, NO_LIMIT)
    assert image.position == end


def test_a_subscription_polls_a_block_of_every_image(rig: Rig, subscription: Subscription) -> None:
    lengths = {}
    for number in range(3):
        log = rig.driver.create_log(session_id=number)
        rig.add_image(subscription, log, correlation_id=number)
        lengths[number] = log.append(bytes(100 * number))
    blocks: dict[int, int] = {}
    assert subscription.block_poll(
        lambda block, session_id, _: blocks.__setitem__(session_id, len(block)), NO_LIMIT
    ) == sum(lengths.values())
    assert blocks == lengths


# --- by context manager -----------------------------------------------------------------------------------------------


def test_the_position_moves_when_a_block_is_left(image: Image, stream: ImageStream) -> None:
    stream.log.append(b"one")
    end = stream.log.append(b"two")
    with image.block(NO_LIMIT) as block:
        assert [bytes(payload) for payload in block.payloads()] == [b"one", b"two"]
        assert (block.session_id, block.term_id) == (image.session_id, image.initial_term_id)
        assert image.position == 0
    assert image.position == end


def test_a_block_that_is_left_by_an_exception_comes_again(image: Image, stream: ImageStream) -> None:
    stream.log.append(b"one")
    with pytest.raises(KeyboardInterrupt), image.block(NO_LIMIT):
        raise KeyboardInterrupt
    assert image.position == 0
    with image.block(NO_LIMIT) as block:
        assert [bytes(payload) for payload in block.payloads()] == [b"one"]


def test_what_arrives_while_a_block_is_open_comes_with_the_next(image: Image, stream: ImageStream) -> None:
    stream.log.append(b"one")
    with image.block(NO_LIMIT) as block:
        stream.log.append(b"two")
        assert [bytes(payload) for payload in block.payloads()] == [b"one"]
    assert list(image.poll_batch()) == [b"two"]


def test_a_block_without_frames_is_empty(image: Image, stream: ImageStream) -> None:
    with image.block(NO_LIMIT) as block:
        assert len(block.buffer) == 0
        assert list(block.payloads()) == []
        assert block.as_array("i8").shape == (0,)
        assert (block.session_id, block.term_id) == (image.session_id, image.initial_term_id)
    assert image.position == 0


def test_a_block_is_read_only(image: Image, stream: ImageStream) -> None:
    stream.log.append(bytes(8))
    with image.block(NO_LIMIT) as block:
        (payload,) = block.payloads()
        array = block.as_array("i8")
        for view in (block.buffer, payload):
            assert (view.readonly, view.format, view.c_contiguous) == (True, "B", True)
        assert not array.flags.writeable


def test_nothing_else_may_be_read_while_a_block_is_open(
    subscription: Subscription, image: Image, stream: ImageStream
) -> None:
    stream.log.append(b"one")
    with image.block(NO_LIMIT):
        for read in (image.poll_batch, subscription.poll_batch, lambda: blocks_polled(image)):
            with pytest.raises(RuntimeError, match="only one may read"):
                read()
        with pytest.raises(RuntimeError, match="only one may read"), image.block(NO_LIMIT):
            pass
    assert not image.poll_batch()


def test_a_block_that_is_never_entered_stands_in_nobodys_way(image: Image, stream: ImageStream) -> None:
    stream.log.append(b"one")
    never_entered = image.block(NO_LIMIT)
    assert list(image.poll_batch()) == [b"one"]
    del never_entered


def test_no_block_begins_in_the_middle_of_a_message(image: Image, stream: ImageStream) -> None:
    stream.log.append_frame(b"begin", FrameFlags.BEGIN)
    assert not image.poll_batch()
    stream.log.append_frame(b"end", FrameFlags.END)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="read in part"), image.block(NO_LIMIT):
            pass
        with pytest.raises(RuntimeError, match="read in part"):
            blocks_polled(image)
    assert list(image.poll_batch()) == [b"beginend"]
    stream.log.append(b"after")
    assert len(blocks_polled(image)) == 1


def test_blocks_and_other_reads_follow_each_other(
    subscription: Subscription, image: Image, stream: ImageStream
) -> None:
    messages = [b"%d" % number for number in range(12)]
    for message in messages:
        stream.log.append(message)
    received = list(subscription.poll_batch(2))
    with image.block(3 * 64) as block:
        received += map(bytes, block.payloads())
    subscription.poll(lambda payload, _: received.append(bytes(payload)), 3)
    with image.block(2 * 64) as block:
        received += map(bytes, block.payloads())
    received += image.poll_batch()
    assert received == messages


@pytest.mark.parametrize("limit", [0, 31])
def test_a_limit_below_the_next_frame_gives_nothing(image: Image, stream: ImageStream, limit: int) -> None:
    stream.log.append(b"one")
    with image.block(limit) as block:
        assert len(block.buffer) == 0
    assert image.position == 0


def test_a_negative_limit_is_refused_and_leaves_nothing_behind(image: Image, stream: ImageStream) -> None:
    stream.log.append(b"one")
    with pytest.raises(OverflowError), image.block(-1):
        pass
    with pytest.raises(OverflowError):
        blocks_polled(image, -1)
    assert list(image.poll_batch()) == [b"one"]


def test_a_frame_that_cannot_be_true_is_an_error(image: Image, stream: ImageStream) -> None:
    stream.log.append(b"good")
    stream.log.append(b"bad")
    stream.log.put_frame_length(64, 5)
    assert len(blocks_polled(image)) == 1
    with pytest.raises(CorruptFileError, match="length 5 at position 64"), image.block(NO_LIMIT):
        pass


def test_a_block_says_what_it_is(image: Image, stream: ImageStream) -> None:
    stream.log.append(b"one")
    with image.block(NO_LIMIT) as block:
        assert repr(block) == f"<Block of 64 bytes, session_id={image.session_id} term_id={image.initial_term_id}>"


# --- arrays -----------------------------------------------------------------------------------------------------------


def test_payloads_of_one_size_become_an_array_in_place(image: Image, stream: ImageStream) -> None:
    ticks = np.array([(1, 2.5), (2, -1.0), (3, 0.0)], dtype=[("time", "i8"), ("price", "f8")])
    for tick in ticks:
        stream.log.append(tick.tobytes())
    with image.block(NO_LIMIT) as block:
        array = block.as_array(ticks.dtype)
        assert np.shares_memory(array, np.frombuffer(block.buffer, dtype=np.uint8))
        assert array.shape == (3,)
        assert array.strides == (64,)
        assert (array == ticks).all()


@pytest.mark.parametrize("itemsize", [1, 8, 32, 33, 64, 1000])
def test_an_array_of_any_record_size(image: Image, stream: ImageStream, itemsize: int) -> None:
    sent = [bytes([number]) * itemsize for number in range(1, 8)]
    for record in sent:
        stream.log.append(record)
    with image.block(NO_LIMIT) as block:
        assert block.as_array(f"S{itemsize}").tolist() == sent


def test_payloads_that_are_no_records_are_refused(image: Image, stream: ImageStream) -> None:
    stream.log.append(bytes(8))
    with pytest.raises(ZeroDivisionError), image.block(NO_LIMIT) as block:
        with pytest.raises(ValueError, match="payloads of this block are of 8 bytes, a record is of 4"):
            block.as_array("i4")
        raise ZeroDivisionError
    stream.log.append(bytes(9))
    with image.block(NO_LIMIT) as block, pytest.raises(ValueError, match="of different sizes"):
        block.as_array("i8")


def test_a_block_of_padding_has_no_payloads(image: Image, stream: ImageStream) -> None:
    log = stream.log
    while log.position < TERM_MIN_LENGTH - 1000:
        log.append(bytes(900))
    log.append(bytes(1000))
    blocks_polled(image)
    with image.block(NO_LIMIT) as block:
        assert len(block.buffer) > 0
        assert list(block.payloads()) == []
        assert block.as_array("i8").shape == (0,)
    assert image.position == TERM_MIN_LENGTH


# --- afterwards -------------------------------------------------------------------------------------------------------


def test_a_block_that_was_left_has_nothing_new_to_show(image: Image, stream: ImageStream) -> None:
    stream.log.append(bytes(8))
    with image.block(NO_LIMIT) as block:
        payloads = block.payloads()
    assert [bytes(payload) for payload in payloads] == [bytes(8)]
    for look in (block.payloads, lambda: block.as_array("i8")):
        with pytest.raises(RuntimeError, match="was left"):
            look()


@pytest.mark.parametrize(
    "view_of",
    [lambda block: block.buffer[32:40], lambda block: next(block.payloads()), lambda block: block.as_array("i8")],
    ids=["buffer", "payload", "array"],
)
def test_a_view_keeps_the_log_mapped_as_long_as_it_lives(rig: Rig, view_of: Callable[[Block], Any]) -> None:
    subscription = rig.add_subscription()
    image, log, _ = rig.add_image(subscription)
    log.append((5).to_bytes(8, "little"))
    with image.block(NO_LIMIT) as block:
        view = view_of(block)
    rig.conductor.close_resource(subscription.registration_id)
    del subscription, image, block
    rig.pass_time(10)
    gc.collect()
    assert mapping_count(log) == 1
    assert bytes(view) == (5).to_bytes(8, "little")
    del view
    gc.collect()
    assert mapping_count(log) == 0


def test_blocks_of_what_is_closed_are_empty(rig: Rig, subscription: Subscription, stream: ImageStream) -> None:
    stream.log.append(b"one")
    rig.conductor.close_resource(subscription.registration_id)
    with stream.image.block(NO_LIMIT) as block:
        assert len(block.buffer) == 0
    assert blocks_polled(stream.image) == []
    assert stream.position.value == 0


def test_a_block_that_is_open_while_its_image_is_closed_stays_readable(
    rig: Rig, image: Image, stream: ImageStream
) -> None:
    stream.log.append(b"one")
    with image.block(NO_LIMIT) as block:
        rig.remove_image(image)
        assert [bytes(payload) for payload in block.payloads()] == [b"one"]
    assert stream.position.value == 0


def test_a_block_of_a_forked_child_says_so(rig: Rig, stream: ImageStream) -> None:
    rig.conductor.close_handles()
    rig.surroundings.process_error = ForkedClientError("in a child")
    with pytest.raises(ForkedClientError), stream.image.block(NO_LIMIT):
        pass
    with pytest.raises(ForkedClientError):
        blocks_polled(stream.image)


def test_frames_that_were_overwritten_are_an_error(image: Image, stream: ImageStream) -> None:
    stream.log.append(b"one")
    stream.log.append(b"two")
    with pytest.raises(CorruptFileError, match="position 64 has changed"), image.block(NO_LIMIT) as block:
        stream.log.put_frame_length(64, 0)
        block.payloads()

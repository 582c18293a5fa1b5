"""Controlled polls, whose handler decides what becomes of the position, and bounded ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from aeron_async.action import Action
from aeron_async.errors import CorruptFileError, ForkedClientError
from aeron_async.protocol.frames import TERM_MIN_LENGTH, FrameFlags
from aeron_async.subscription import Header, Image, Subscription
from tests.unit.rig import ImageStream, Rig

MTU = 1408
MAX_PAYLOAD = MTU - 32

Source = Subscription | Image


class Handler:
    """Keeps what it is given, and answers with one action after the other, then with None."""

    def __init__(self, *actions: Action | None) -> None:
        self._actions = iter(actions)
        self.seen: list[bytes] = []

    def __call__(self, payload: memoryview, header: Header) -> Action | None:
        self.seen.append(bytes(payload))
        return next(self._actions, None)


def append_all(stream: ImageStream, messages: Iterable[bytes]) -> None:
    for message in messages:
        stream.log.append(message)


# --- actions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", [None, Action.CONTINUE, Action.COMMIT])
def test_continue_commit_and_none_go_on_to_the_next_message(
    source: Source, stream: ImageStream, action: Action | None
) -> None:
    append_all(stream, [b"one", b"two"])
    handler = Handler(action, action)
    assert source.controlled_poll(handler) == 2
    assert handler.seen == [b"one", b"two"]
    assert stream.image.position == stream.log.position


def test_break_takes_its_message_and_leaves_the_rest(source: Source, stream: ImageStream) -> None:
    append_all(stream, [b"one", b"two", b"three"])
    handler = Handler(None, Action.BREAK)
    assert source.controlled_poll(handler) == 2
    assert handler.seen == [b"one", b"two"]
    assert stream.image.position == 128
    assert list(source.poll_batch()) == [b"three"]


def test_abort_gives_its_message_again(source: Source, stream: ImageStream) -> None:
    append_all(stream, [b"one", b"two", b"three"])
    handler = Handler(None, Action.ABORT)
    assert source.controlled_poll(handler) == 1
    assert handler.seen == [b"one", b"two"]
    assert stream.image.position == 64
    assert source.controlled_poll(handler) == 2
    assert handler.seen == [b"one", b"two", b"two", b"three"]


def test_a_message_may_be_aborted_any_number_of_times(source: Source, stream: ImageStream) -> None:
    append_all(stream, [b"one"])
    handler = Handler(*[Action.ABORT] * 3)
    assert [source.controlled_poll(handler) for _ in range(5)] == [0, 0, 0, 1, 0]
    assert handler.seen == [b"one"] * 4


def test_commit_moves_the_position_at_once_and_continue_at_the_end(source: Source, stream: ImageStream) -> None:
    append_all(stream, [b"one", b"two", b"three"])
    actions = iter([Action.CONTINUE, Action.COMMIT, Action.CONTINUE])
    positions: list[int] = []

    def handler(payload: memoryview, header: Header) -> Action:
        positions.append(stream.position.value)
        return next(actions)

    source.controlled_poll(handler)
    assert positions == [0, 0, 128]
    assert stream.position.value == 192


def test_a_commit_stays_when_a_later_message_is_aborted(source: Source, stream: ImageStream) -> None:
    append_all(stream, [b"one", b"two", b"three"])
    assert source.controlled_poll(Handler(Action.COMMIT, Action.CONTINUE, Action.ABORT)) == 2
    assert stream.image.position == 128
    assert list(source.poll_batch()) == [b"three"]


def test_a_fragmented_message_is_aborted_and_given_again_as_a_whole(source: Source, stream: ImageStream) -> None:
    message = bytes(range(256)) * 20
    append_all(stream, [b"before", message, b"after"])
    handler = Handler(None, Action.ABORT, Action.ABORT)
    assert source.controlled_poll(handler) == 1
    assert source.controlled_poll(handler) == 0
    assert source.controlled_poll(handler) == 5
    assert handler.seen == [b"before", message, message, message, b"after"]


def test_a_message_that_came_in_parts_is_aborted_and_given_again_as_a_whole(
    source: Source, stream: ImageStream
) -> None:
    message = bytes(range(256)) * 20
    append_all(stream, [message, b"after"])
    handler = Handler(Action.ABORT)
    assert [source.controlled_poll(handler, 3) for _ in range(3)] == [3, 0, 2]
    assert handler.seen == [message, message, b"after"]


def test_what_was_aborted_is_read_by_any_other_call(source: Source, stream: ImageStream) -> None:
    message = bytes(3 * MAX_PAYLOAD)
    append_all(stream, [message, b"after"])
    source.controlled_poll(Handler(Action.ABORT))
    assert list(source.poll_batch(1)) == [message]


def test_the_fragments_read_are_those_of_the_messages_that_were_taken(source: Source, stream: ImageStream) -> None:
    for _ in range(3):
        append_all(stream, [bytes(2 * MAX_PAYLOAD)])
    assert source.controlled_poll(Handler(None, Action.BREAK), 100) == 4
    assert source.controlled_poll(Handler(Action.ABORT), 100) == 0
    assert source.controlled_poll(Handler(), 100) == 2


def test_an_action_ends_the_poll_of_its_image_only(rig: Rig, subscription: Subscription) -> None:
    for number in range(3):
        log = rig.add_image(subscription, correlation_id=number).log
        log.append(b"%d" % number)
        log.append(b"%d again" % number)
    handler = Handler(Action.BREAK, Action.ABORT, Action.BREAK)
    assert subscription.controlled_poll(handler) == 2
    assert sorted(handler.seen) == [b"0", b"1", b"2"]
    aborted = handler.seen[1]
    rest = list(subscription.poll_batch())
    assert sorted(rest) == sorted([b"0 again", b"1 again", b"2 again", aborted])


def test_images_take_turns_to_be_first_in_controlled_polls(rig: Rig, subscription: Subscription) -> None:
    for number in range(3):
        log = rig.add_image(subscription, correlation_id=number).log
        for _ in range(3):
            log.append(b"%d" % number)
    firsts = []
    for _ in range(9):
        handler = Handler()
        assert subscription.controlled_poll(handler, 1) == 1
        firsts += handler.seen
    assert sorted(firsts[:3]) == sorted(firsts[3:6]) == sorted(firsts[6:]) == [b"0", b"1", b"2"]


def test_the_fragment_limit_of_a_controlled_poll_is_for_all_images_together(
    rig: Rig, subscription: Subscription
) -> None:
    for number in range(3):
        log = rig.add_image(subscription, correlation_id=number).log
        for _ in range(2):
            log.append(b"%d" % number)
    handler = Handler()
    assert [subscription.controlled_poll(handler, 5), subscription.controlled_poll(handler, 5)] == [5, 1]
    assert len(handler.seen) == 6


def test_a_controlled_handler_that_raises_has_had_its_message(source: Source, stream: ImageStream) -> None:
    append_all(stream, [b"one", b"two", b"three"])

    def handler(payload: memoryview, header: Header) -> None:
        if payload == b"two":
            raise ZeroDivisionError("the handler's own")

    with pytest.raises(ZeroDivisionError, match="the handler's own"):
        source.controlled_poll(handler)
    assert list(source.poll_batch()) == [b"three"]


@pytest.mark.parametrize("answer", [True, 1, 0, "ABORT", b""])
def test_an_answer_that_is_no_action_is_refused(source: Source, stream: ImageStream, answer: Any) -> None:
    append_all(stream, [b"one"])
    with pytest.raises(TypeError, match="returns an Action or None"):
        source.controlled_poll(lambda payload, header: answer)


def test_what_the_handler_of_an_ordinary_poll_returns_means_nothing(source: Source, stream: ImageStream) -> None:
    append_all(stream, [b"one", b"two"])
    assert source.poll(Handler(Action.ABORT, Action.BREAK)) == 2
    assert stream.image.position == stream.log.position


def test_a_controlled_handler_may_not_read_on(source: Source, stream: ImageStream) -> None:
    append_all(stream, [b"one"])

    def handler(payload: memoryview, header: Header) -> None:
        with pytest.raises(RuntimeError, match="only one may read"):
            source.controlled_poll(Handler())
        with pytest.raises(RuntimeError, match="only one may read"), stream.image.block(100):
            pass

    assert source.controlled_poll(handler) == 1


def test_a_controlled_poll_has_its_limits(source: Source, stream: ImageStream) -> None:
    append_all(stream, [b"one", b"two"])
    handler = Handler()
    assert source.controlled_poll(handler, 0) == 0
    with pytest.raises(OverflowError):
        source.controlled_poll(handler, -1)
    assert source.controlled_poll(handler, 1) == 1
    assert handler.seen == [b"one"]


def test_a_controlled_poll_of_a_frame_that_cannot_be_true_is_an_error(source: Source, stream: ImageStream) -> None:
    append_all(stream, [b"good", b"bad"])
    stream.log.put_frame_length(64, 5)
    handler = Handler()
    assert source.controlled_poll(handler) == 1
    with pytest.raises(CorruptFileError, match="length 5 at position 64"):
        source.controlled_poll(handler)


# --- bounded ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit_position", "count"), [(-(1 << 63), 0), (0, 0), (1, 1), (64, 1), (65, 2), (128, 2), ((1 << 63) - 1, 3)]
)
def test_a_bounded_poll_reads_what_begins_before_its_limit(
    stream: ImageStream, limit_position: int, count: int
) -> None:
    append_all(stream, [b"one", b"two", b"three"])
    handler = Handler()
    assert stream.image.bounded_poll(handler, limit_position) == count
    assert len(handler.seen) == count
    assert stream.image.position == 64 * count


def test_a_bounded_poll_stands_still_at_its_limit(stream: ImageStream) -> None:
    append_all(stream, [b"one", b"two", b"three"])
    handler = Handler()
    assert [stream.image.bounded_poll(handler, 128, 1) for _ in range(3)] == [1, 1, 0]
    assert handler.seen == [b"one", b"two"]


def test_a_bounded_poll_keeps_the_fragments_before_its_limit(stream: ImageStream) -> None:
    message = bytes(range(256)) * 16
    append_all(stream, [message])
    handler = Handler()
    assert stream.image.bounded_poll(handler, 2 * MTU) == 2
    assert (handler.seen, stream.image.position) == ([], 2 * MTU)
    assert stream.image.bounded_poll(handler, stream.log.position) == 1
    assert handler.seen == [message]


def test_a_bounded_poll_goes_into_the_next_term(rig: Rig, subscription: Subscription) -> None:
    start = TERM_MIN_LENGTH - 96
    log = rig.driver.create_log(position=start)
    image = rig.add_image(subscription, log, join_position=start).image
    log.append(b"last")
    log.append(bytes(100))
    handler = Handler()
    assert image.bounded_poll(handler, TERM_MIN_LENGTH) == 1
    assert image.position == TERM_MIN_LENGTH
    assert image.bounded_poll(handler, TERM_MIN_LENGTH + 1) == 1
    assert handler.seen == [b"last", bytes(100)]


def test_a_bounded_controlled_poll_has_both(stream: ImageStream) -> None:
    append_all(stream, [b"one", b"two", b"three", b"four"])
    handler = Handler(None, Action.ABORT)
    image = stream.image
    assert image.bounded_controlled_poll(handler, 192) == 1
    assert image.position == 64
    assert image.bounded_controlled_poll(handler, 192) == 2
    assert image.bounded_controlled_poll(handler, 192) == 0
    assert handler.seen == [b"one", b"two", b"two", b"three"]


def test_a_limit_position_outside_64_bits_is_refused(stream: ImageStream) -> None:
    with pytest.raises(OverflowError):
        stream.image.bounded_poll(Handler(), 1 << 63)


# --- closed -----------------------------------------------------------------------------------------------------------


def test_what_is_closed_reads_nothing(rig: Rig, subscription: Subscription, stream: ImageStream) -> None:
    append_all(stream, [b"one"])
    rig.conductor.close_resource(subscription.registration_id)
    handler = Handler()
    assert subscription.controlled_poll(handler) == 0
    assert stream.image.controlled_poll(handler) == 0
    assert stream.image.bounded_poll(handler, 1000) == 0
    assert stream.image.bounded_controlled_poll(handler, 1000) == 0
    assert handler.seen == []


def test_in_a_forked_child_it_is_an_error(rig: Rig, subscription: Subscription, stream: ImageStream) -> None:
    rig.conductor.close_handles()
    rig.surroundings.process_error = ForkedClientError("in a child")
    for read in (
        lambda: subscription.controlled_poll(Handler()),
        lambda: stream.image.controlled_poll(Handler()),
        lambda: stream.image.bounded_poll(Handler(), 100),
        lambda: stream.image.bounded_controlled_poll(Handler(), 100),
    ):
        with pytest.raises(ForkedClientError):
            read()


def test_fragments_that_lead_nowhere_are_passed_over(source: Source, stream: ImageStream) -> None:
    stream.log.append_frame(b"end", FrameFlags.END)
    stream.log.append(b"whole")
    handler = Handler(Action.ABORT)
    source.controlled_poll(handler)
    source.controlled_poll(handler)
    assert handler.seen == [b"whole", b"whole"]

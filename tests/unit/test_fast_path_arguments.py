"""What the calls of the message path take and refuse, before anything is read or appended."""

from __future__ import annotations

from collections import UserList, deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from aeron_async.subscription import Image, Subscription
from tests.unit.rig import PublicationStream, Rig

Source = Subscription | Image


def ignore(*arguments: object) -> None:
    pass


# --- reading ----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["subscription", "image"])
def source(request: pytest.FixtureRequest, rig: Rig) -> Source:
    """What is read: six messages wait there."""
    subscription = rig.add_subscription()
    image, log, _ = rig.add_image(subscription)
    for number in range(6):
        log.append(b"%d" % number)
    sources: dict[str, Source] = {"subscription": subscription, "image": image}
    return sources[request.param]


def test_limits_are_whole_numbers_of_any_kind(source: Any) -> None:
    assert source.poll(handler=ignore, fragment_limit=np.int64(1)) == 1
    assert source.controlled_poll(handler=ignore, fragment_limit=True) == 1
    assert list(source.poll_batch(limit=np.int32(2), max_bytes=np.int64(100))) == [b"2", b"3"]
    assert list(source.poll_batch(1, max_bytes=0)) == [b"4"]
    assert source.batches(limit=np.int8(2), max_bytes=np.int16(100)) is not None


WRONG_READS: dict[str, tuple[Callable[[Any], object], type[Exception]]] = {
    "no handler": (lambda source: source.poll(), TypeError),
    "one argument too many": (lambda source: source.poll(ignore, 1, 2), TypeError),
    "the handler twice": (lambda source: source.poll(ignore, handler=ignore), TypeError),
    "another name": (lambda source: source.poll(ignore, limit=1), TypeError),
    "max_bytes by place": (lambda source: source.poll_batch(1, 2), TypeError),
    "a limit of payloads": (lambda source: source.payloads(1), TypeError),
    "max_bytes of batches by place": (lambda source: source.batches(1, 2), TypeError),
    "a text for a limit of batches": (lambda source: source.batches("1"), TypeError),
    "batches without messages": (lambda source: source.batches(0), ValueError),
    "a float": (lambda source: source.poll(ignore, 1.0), TypeError),
    "a text": (lambda source: source.poll(ignore, "1"), TypeError),
    "none": (lambda source: source.poll_batch(None), TypeError),
    "a float of messages": (lambda source: source.poll_batch(1.0), TypeError),
    "a float of bytes": (lambda source: source.poll_batch(max_bytes=1.0), TypeError),
    "a float of fragments": (lambda source: source.controlled_poll(ignore, 1.0), TypeError),
    "a negative limit": (lambda source: source.poll(ignore, -1), OverflowError),
    "a negative limit of messages": (lambda source: source.poll_batch(-1), OverflowError),
    "negative bytes": (lambda source: source.poll_batch(max_bytes=-1), OverflowError),
    "more fragments than there are numbers": (lambda source: source.poll(ignore, 1 << 70), OverflowError),
    "more messages than there are numbers": (lambda source: source.poll_batch(1 << 70), OverflowError),
}


@pytest.mark.parametrize(("read", "error"), WRONG_READS.values(), ids=WRONG_READS)
def test_wrong_arguments_are_refused_and_nothing_is_read(
    source: Source, read: Callable[[Any], object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        read(source)
    assert len(source.poll_batch()) == 6


def test_what_cannot_be_called_has_had_its_message(source: Any) -> None:
    with pytest.raises(TypeError, match="not callable"):
        source.poll(None)
    assert len(source.poll_batch()) == 5


def test_a_handler_is_anything_that_takes_two_arguments(source: Any) -> None:
    received: list[Any] = []

    class Handler:
        def __call__(self, payload: memoryview, header: Any) -> None:
            received.append(bytes(payload))

        def method(self, payload: memoryview, *rest: Any) -> str:
            received.append(bytes(payload))
            return "means nothing"

    for handler in (Handler(), Handler().method, lambda payload, header: received.append(bytes(payload))):
        source.poll(handler, 1)
    assert received == [b"0", b"1", b"2"]
    with pytest.raises(TypeError):
        source.poll(lambda payload: None, 1)


# --- publishing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_type", [tuple, deque, UserList, dict.fromkeys, np.array], ids=lambda made: made.__name__)
def test_many_messages_are_any_collection_with_a_length(
    stream: PublicationStream, as_type: Callable[[list[bytes]], Any]
) -> None:
    messages = [b"one", b"two", b"six"]
    assert stream.publication.offer_many(messages=as_type(messages)) == 3
    assert stream.log.messages() == messages


class Shrinking(Sequence[bytes]):
    """A sequence with fewer items than its length says."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: Any) -> Any:
        if index >= 2:
            raise IndexError
        return b"item"


def test_a_sequence_that_lies_about_its_length_gives_what_it_has(stream: PublicationStream) -> None:
    assert stream.publication.offer_many(Shrinking()) == 2
    assert stream.log.messages() == [b"item", b"item"]


def test_numbers_are_whole_numbers_of_any_kind(stream: PublicationStream) -> None:
    publication: Any = stream.publication
    assert publication.offer(data=b"a", reserved_value=np.int64(-4)) == 64
    assert publication.offer_vectored(parts=[b"b"], reserved_value=True) == 128
    assert publication.offer_repeated(data=b"c", count=np.int32(2)) == 2
    assert publication.offer_array(records=b"de", itemsize=np.int64(1)) == 2
    assert [(frame.payload, frame.header.reserved_value) for frame in stream.log.frames()] == [
        (b"a", -4),
        (b"b", 1),
        (b"c", 0),
        (b"c", 0),
        (b"d", 0),
        (b"e", 0),
    ]


WRONG_OFFERS: dict[str, tuple[Callable[[Any], object], type[Exception]]] = {
    "nothing": (lambda publication: publication.offer(), TypeError),
    "the message twice": (lambda publication: publication.offer(b"x", data=b"x"), TypeError),
    "a reserved value by place": (lambda publication: publication.offer(b"x", 5), TypeError),
    "another name": (lambda publication: publication.offer(b"x", reserved=1), TypeError),
    "a text": (lambda publication: publication.offer("x"), TypeError),
    "a text for a reserved value": (lambda publication: publication.offer(b"x", reserved_value="1"), TypeError),
    "a float for a reserved value": (lambda publication: publication.offer(b"x", reserved_value=1.0), TypeError),
    "no reserved value": (lambda publication: publication.offer(b"x", reserved_value=None), TypeError),
    "65 bits": (lambda publication: publication.offer(b"x", reserved_value=1 << 64), OverflowError),
    "64 bits without a sign": (lambda publication: publication.offer(b"x", reserved_value=1 << 63), OverflowError),
    "no messages": (lambda publication: publication.offer_many(), TypeError),
    "an iterator": (lambda publication: publication.offer_many(iter([b"x"])), TypeError),
    "one message for many": (lambda publication: publication.offer_many(b"x"), TypeError),
    "a text among many": (lambda publication: publication.offer_many([b"x", "x"]), TypeError),
    "a strided view among many": (
        lambda publication: publication.offer_many([b"x", memoryview(b"1234")[::2]]),
        BufferError,
    ),
    "no count": (lambda publication: publication.offer_repeated(b"x"), TypeError),
    "a float of messages": (lambda publication: publication.offer_repeated(b"x", 2.0), TypeError),
    "more messages than there are numbers": (
        lambda publication: publication.offer_repeated(b"x", 1 << 70),
        OverflowError,
    ),
    "an itemsize by place": (lambda publication: publication.offer_array(b"x", 1), TypeError),
    "a float of bytes": (lambda publication: publication.offer_array(b"x", itemsize=1.0), TypeError),
}


@pytest.mark.parametrize(("offer", "error"), WRONG_OFFERS.values(), ids=WRONG_OFFERS)
def test_wrong_arguments_are_refused_and_nothing_is_appended(
    stream: PublicationStream, offer: Callable[[Any], object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        offer(stream.publication)
    assert stream.publication.position == 0


def test_a_buffer_that_was_offered_is_let_go(stream: PublicationStream) -> None:
    publication = stream.publication
    data = bytearray(b"123")
    publication.offer(data)
    publication.offer_vectored([data, data])
    publication.offer_many([data, data])
    publication.offer_many([b"bytes", data])
    publication.offer_repeated(data, 2)
    publication.offer_array(data, itemsize=3)
    stream.limit.value = 0
    assert publication.offer(data) < 0
    assert publication.offer_many([data]) < 0
    for messages in (
        [data, "text"],
        [data, memoryview(b"1234")[::2]],
        [data, bytes(publication.max_message_length + 1)],
    ):
        with pytest.raises((TypeError, BufferError, ValueError)):
            publication.offer_many(messages)  # type: ignore[arg-type]
    # A bytearray that somebody still looks into cannot grow.
    data += b"4"
    assert stream.log.messages()[-1] == b"123"

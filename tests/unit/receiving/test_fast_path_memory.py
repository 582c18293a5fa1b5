"""What was read owns its memory: whatever is read afterwards, and however large, leaves it as it is."""

from __future__ import annotations

import gc
import random
import sys
from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from aeron_async import _face
from aeron_async.subscription import Header, Message, MessageBatch, Subscription
from tests.stream_machine import Row, rows_of_batch
from tests.unit.rig import ImageStream, Rig

NO_LIMIT = 1 << 30


@pytest.fixture
def stream(rig: Rig, subscription: Subscription) -> ImageStream:
    """An image of a stream that takes messages of a megabyte and more."""
    return rig.add_image(subscription, rig.driver.create_log(term_length=16 << 20, mtu_length=65504))


def sent(stream: ImageStream, lengths: Sequence[int]) -> list[bytes]:
    chance = random.Random(stream.log.position)
    messages = [chance.randbytes(length) for length in lengths]
    for message in messages:
        stream.log.append(message, reserved_value=len(message))
    return messages


# Batches as they come: small ones before and after such as would make any buffer grow, and empty ones of each kind.
PHASES: list[Sequence[int]] = [
    [5],
    [],
    [1 << 20] * 3,
    [5],
    [0],
    [0] * 500,
    [3] * 5000,
    [100_000, 0, 1, 2 << 20],
    [],
    range(400),
    [8] * 1025,
    [1],
]


def test_batches_of_all_sizes_keep_what_they_have(subscription: Subscription, stream: ImageStream) -> None:
    kept: list[tuple[MessageBatch, list[Row], list[bytes]]] = []
    for lengths in PHASES * 2:
        messages = sent(stream, lengths)
        batch = subscription.poll_batch(NO_LIMIT, max_bytes=16 << 20)
        kept.append((batch, rows_of_batch(batch), messages))
    subscription._close()
    gc.collect()
    for batch, rows, messages in kept:
        assert list(batch) == messages
        assert rows_of_batch(batch) == rows
        assert [row.header.reserved_value for row in rows] == list(map(len, messages))


VIEWS: dict[str, Callable[[MessageBatch], Any]] = {
    "payloads": lambda batch: batch.buffer,
    "part of the payloads": lambda batch: batch.buffer[len(batch.buffer) // 3 :],
    "offsets": lambda batch: batch.offsets,
    "session ids": lambda batch: batch.session_ids,
    "positions": lambda batch: batch.stream_positions[1:],
    "reserved values": lambda batch: batch.reserved_values,
    "payloads of numpy": lambda batch: np.frombuffer(batch.buffer, dtype=np.uint8),
    "positions of numpy": lambda batch: np.asarray(batch.stream_positions),
    "records": lambda batch: batch.as_array("V16"),
    "field of records": lambda batch: batch.as_array([("time", "<i8"), ("price", "<f8")])["price"],
    "every second record": lambda batch: batch.as_array("<i8, <i8")[::2],
    "iterator": lambda batch: list(batch),
    "messages": lambda batch: list(batch.messages()),
}


def content(view: Any) -> Any:
    """A copy of what is seen."""
    if isinstance(view, list):
        return [(bytes(item), getattr(item, "header", None)) for item in view]
    return view.tobytes()


@pytest.mark.parametrize("count", [2, 1000])
def test_what_was_taken_of_a_batch_outlives_it(subscription: Subscription, stream: ImageStream, count: int) -> None:
    sent(stream, [16] * count)
    batch = subscription.poll_batch()
    views = {name: view_of(batch) for name, view_of in VIEWS.items()}
    before = {name: content(view) for name, view in views.items()}
    del batch
    gc.collect()
    for lengths in PHASES:
        sent(stream, lengths)
        subscription.poll_batch(NO_LIMIT, max_bytes=16 << 20)
    subscription._close()
    gc.collect()
    assert {name: content(view) for name, view in views.items()} == before


def test_iterators_over_a_batch_are_independent_and_outlive_it(subscription: Subscription, stream: ImageStream) -> None:
    messages = sent(stream, range(100))
    batch = subscription.poll_batch()
    payloads, again, whole = iter(batch), iter(batch), batch.messages()
    assert [next(payloads) for _ in range(50)] == messages[:50]
    assert next(again) == messages[0]
    assert bytes(next(whole)) == messages[0]
    del batch
    sent(stream, [100] * 1000)
    subscription.poll_batch()
    gc.collect()
    assert list(payloads) == messages[50:]
    assert list(again) == messages[1:]
    assert [bytes(message) for message in whole] == messages[1:]


def test_a_message_that_is_kept_alone_keeps_its_header(subscription: Subscription, stream: ImageStream) -> None:
    messages = sent(stream, [7] * 1000)
    kept: list[Message] = []
    for index in range(0, 1000, 100):
        kept.append(next(iter(subscription.poll_batch(100).messages())))
        assert kept[-1].payload == messages[index]
    sent(stream, [3] * 5000)
    subscription.poll_batch(NO_LIMIT)
    assert [bytes(message) for message in kept] == messages[::100]
    assert [message.header.position for message in kept] == [64 * (index + 1) for index in range(0, 1000, 100)]


def test_what_a_handler_has_taken_of_a_payload_stays_safe_to_read(
    subscription: Subscription, stream: ImageStream
) -> None:
    kept: list[tuple[Any, bytes]] = []
    payloads: list[memoryview] = []

    def handle(payload: memoryview, header: Header) -> None:
        payloads.append(payload)
        views = (payload[1:], memoryview(payload), np.frombuffer(payload, dtype=np.uint8), payload.cast("b"))
        kept.extend((view, view.tobytes()) for view in views)

    for lengths in ([10] * 20, [100_000] * 2, [10], [1 << 20], [1] * 20):
        sent(stream, lengths)
        subscription.poll(handle, NO_LIMIT)
        subscription.controlled_poll(handle, NO_LIMIT)
    subscription._close()
    gc.collect()
    assert all(view.tobytes() == before for view, before in kept)
    for payload in payloads:
        with pytest.raises(ValueError, match="released"):
            payload[0]


def test_a_batch_is_a_sequence_in_all_its_ways(subscription: Subscription, stream: ImageStream) -> None:
    messages = sent(stream, [3, 0, 5, 1, 4000])
    batch = subscription.poll_batch()
    assert isinstance(batch, Sequence)
    assert {type(payload) for payload in batch} == {type(batch[0])} == {bytes}
    assert list(reversed(batch)) == messages[::-1]
    numbers: list[Any] = [-5, -1, np.int64(2), True]
    assert [batch[number] for number in numbers] == [messages[0], messages[4], messages[2], messages[1]]
    for cut in (slice(None), slice(1, 3), slice(-2, None), slice(None, None, -1), slice(9, 20), slice(4, 0, -2)):
        assert batch[cut] == messages[cut]
    assert messages[2] in batch
    assert b"absent" not in batch
    assert batch.index(messages[3]) == 3
    assert batch.count(b"") == 1
    first, *_, last = batch
    assert (first, last) == (messages[0], messages[4])
    for index in (5, -6, 1 << 70):
        with pytest.raises(IndexError):
            batch[index]
    for wrong in ("0", 1.0, None):
        with pytest.raises(TypeError):
            batch[wrong]  # type: ignore[call-overload]


def test_columns_need_no_numpy(
    subscription: Subscription, stream: ImageStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    messages = sent(stream, [8, 0, 24, 100_000])
    batch = subscription.poll_batch()
    columns: list[tuple[memoryview, str, list[int]]] = [
        (batch.buffer, "B", list(b"".join(messages))),
        (batch.offsets, "i", [0, *accumulate(map(len, messages))]),
        (batch.session_ids, "i", [stream.log.session_id] * 4),
        (batch.stream_positions, "q", [64, 96, 160, 160 + 65504 + 34560]),
        (batch.reserved_values, "q", [8, 0, 24, 100_000]),
    ]
    for column, typecode, values in columns:
        assert (column.format, column.itemsize, column.shape) == (typecode, array(typecode).itemsize, (len(values),))
        assert (column.c_contiguous, column.readonly) == (True, True)
        assert array(typecode, column.tolist()) == array(typecode, values)
        assert column.tobytes() == array(typecode, values).tobytes()
        assert column[0] == values[0]
        with pytest.raises(TypeError):
            column[0] = 1
    assert memoryview(batch.buffer[:8]).cast("q")[0] == int.from_bytes(messages[0], "little", signed=True)


def test_what_a_payload_is_a_view_of_tells_nothing_when_it_is_kept(
    subscription: Subscription, stream: ImageStream
) -> None:
    sent(stream, [100, 200, 300])
    kept: list[Any] = []

    def keep(payload: memoryview, header: Header) -> None:
        kept.append(payload.obj)

    for _ in range(3):
        subscription.poll(keep, 1)
    subscription._close()
    gc.collect()
    if _face.NAME == "speedups":
        assert [bytes(memoryview(owner)) for owner in kept] == [b""] * 3

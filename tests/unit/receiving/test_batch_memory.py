"""The memory of batches: filled again where nobody holds it, and never under somebody's eyes."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aeron_async.subscription import Header, MessageBatch, Subscription
from tests.unit.rig import ImageStream


def batch_of(subscription: Subscription, stream: ImageStream, fill: bytes, count: int = 20) -> MessageBatch:
    """A batch of messages that are all the same."""
    for _ in range(count):
        stream.log.append(fill)
    return subscription.poll_batch()


def address_of(batch: MessageBatch) -> int:
    return int(np.frombuffer(batch.buffer, dtype=np.uint8).ctypes.data)


def resident() -> int:
    """The resident memory of this process in bytes."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


def test_memory_that_nobody_holds_is_filled_again(subscription: Subscription, stream: ImageStream) -> None:
    addresses = set()
    for _ in range(50):
        batch = batch_of(subscription, stream, b"x" * 100)
        addresses.add(address_of(batch))
    # The last batch is still held while the next is read.
    assert len(addresses) <= 3


def test_batches_that_are_kept_keep_what_they_hold(subscription: Subscription, stream: ImageStream) -> None:
    kept = [batch_of(subscription, stream, bytes([number]) * (number + 1)) for number in range(100)]
    for number, batch in enumerate(kept):
        assert list(batch) == [bytes([number]) * (number + 1)] * 20
        assert batch.offsets.tolist() == list(range(0, 20 * (number + 1) + 1, number + 1))
    positions = [position for batch in kept for position in batch.stream_positions]
    assert positions == sorted(positions)
    assert positions[-1] == stream.log.position


@pytest.mark.parametrize(
    ("view_of", "expected"),
    [
        (lambda batch: batch.buffer, [7] * 2000),
        (lambda batch: batch.buffer[100:200], [7] * 100),
        (lambda batch: batch.offsets, list(range(0, 2001, 100))),
        (lambda batch: batch.as_array(("u1", (100,))).reshape(-1), [7] * 2000),
        (lambda batch: batch.session_ids, [0] * 20),
        (lambda batch: np.frombuffer(batch.buffer, dtype="u1"), [7] * 2000),
    ],
    ids=["buffer", "part", "offsets", "array", "column", "numpy"],
)
def test_a_view_keeps_what_it_shows(rig: Any, view_of: Callable[[MessageBatch], Any], expected: list[int]) -> None:
    subscription = rig.add_subscription()
    stream = rig.add_image(subscription, rig.driver.create_log(session_id=0))
    view = view_of(batch_of(subscription, stream, b"\x07" * 100))
    for _ in range(10):
        batch_of(subscription, stream, b"\xff" * 100)
    rig.conductor.close_resource(subscription.registration_id)
    del subscription
    gc.collect()
    assert view.tolist() == expected


def test_an_iterator_over_a_batch_outlives_it(subscription: Subscription, stream: ImageStream) -> None:
    payloads = iter(batch_of(subscription, stream, b"first"))
    assert next(payloads) == b"first"
    for _ in range(10):
        batch_of(subscription, stream, b"later")
    assert list(payloads) == [b"first"] * 19
    assert next(payloads, None) is None


def test_a_small_batch_after_a_large_one_costs_its_own_bytes(subscription: Subscription, stream: ImageStream) -> None:
    tracemalloc.start()
    try:
        before = resident()
        kept = []
        for _ in range(200):
            for _ in range(8):
                stream.log.append(bytes(3000))
            subscription.poll_batch()
            stream.log.append(b"small")
            kept.append(subscription.poll_batch())
        assert resident() - before < 4 << 20
    finally:
        tracemalloc.stop()
    assert [list(batch) for batch in kept] == [[b"small"]] * 200


def test_reading_for_a_long_time_needs_no_more_memory(subscription: Subscription, stream: ImageStream) -> None:
    def read(rounds: int) -> None:
        for _ in range(rounds):
            batch = batch_of(subscription, stream, bytes(200), 30)
            assert sum(map(len, batch)) == batch.nbytes == 6000
            batch.as_array("S200")
            assert len(batch.session_ids) == 30

    read(20)
    gc.collect()
    before = resident()
    read(500)
    gc.collect()
    # 500 batches of 6000 bytes and as many columns would be 4 MiB.
    assert resident() - before < 1 << 20


# --- what handlers keep -----------------------------------------------------------------------------------------------


def test_a_payload_that_a_handler_keeps_shows_nothing_any_more(subscription: Subscription, stream: ImageStream) -> None:
    kept: list[memoryview] = []
    for message in (b"one", b"two"):
        stream.log.append(message)
    subscription.poll(lambda payload, _: kept.append(payload))
    assert kept[0] is not kept[1]
    for payload in kept:
        with pytest.raises(ValueError, match="released"):
            payload[0]


def test_a_part_of_a_payload_that_a_handler_keeps_stays_safe_to_read(
    rig: Any, subscription: Subscription, stream: ImageStream
) -> None:
    kept: list[memoryview] = []
    for message in (b"one" * 100, b"two" * 1000, b"six"):
        stream.log.append(message)
    subscription.poll(lambda payload, _: kept.append(payload[:3]), 100)
    rig.conductor.close_resource(subscription.registration_id)
    rig.pass_time(10)
    gc.collect()
    assert [bytes(part) for part in kept] == [b"one", b"two", b"six"]


def test_headers_that_a_handler_keeps_stay_what_they_are(subscription: Subscription, stream: ImageStream) -> None:
    kept: list[Header] = []
    for number in range(10):
        stream.log.append(b"message", reserved_value=number)
    subscription.poll(lambda _, header: kept.append(header))
    assert [header.reserved_value for header in kept] == list(range(10))
    assert len(set(kept)) == 10
    assert kept[0] == kept[0]
    assert kept[0] != kept[1]
    assert (kept[0] == 5) is False


def test_a_handler_may_release_its_payload_itself(subscription: Subscription, stream: ImageStream) -> None:
    received: list[bytes] = []

    def handler(payload: memoryview, _: Header) -> None:
        with payload:
            received.append(payload.tobytes())

    for message in (b"one", b"two", b"three"):
        stream.log.append(message)
    assert subscription.poll(handler) == 3
    assert received == [b"one", b"two", b"three"]


def test_a_payload_is_a_read_only_view_of_bytes_that_can_be_weakly_referred_to(
    subscription: Subscription, stream: ImageStream
) -> None:
    seen: list[Any] = []
    references: list[Any] = []

    def handler(payload: memoryview, _: Header) -> None:
        references.append(weakref.ref(payload))
        seen.append((payload.nbytes, payload.shape, payload.format, payload.readonly, payload.tolist()))

    for message in (b"ab", b"", b"xyz"):
        stream.log.append(message)
    subscription.poll(handler)
    assert seen == [(len(message), (len(message),), "B", True, list(message)) for message in (b"ab", b"", b"xyz")]


def test_a_handler_that_raises_has_taken_its_message(subscription: Subscription, stream: ImageStream) -> None:
    received: list[bytes] = []

    def handler(payload: memoryview, _: Header) -> None:
        received.append(bytes(payload))
        if payload == b"two":
            raise ZeroDivisionError

    for message in (b"one", b"two", b"three"):
        stream.log.append(message)
    with pytest.raises(ZeroDivisionError):
        subscription.poll(handler)
    assert stream.image.position == 128
    subscription.poll(handler)
    assert received == [b"one", b"two", b"three"]


def test_a_handler_may_not_read_meanwhile_and_others_may_afterwards(
    subscription: Subscription, stream: ImageStream
) -> None:
    stream.log.append(b"one")
    stream.log.append(b"two")

    def handler(payload: memoryview, _: Header) -> None:
        subscription.poll_batch()

    with pytest.raises(RuntimeError, match="only one may read"):
        subscription.poll(handler)
    assert list(subscription.poll_batch()) == [b"two"]


def test_a_handler_that_closes_what_it_reads_ends_nothing_badly(
    rig: Any, subscription: Subscription, stream: ImageStream
) -> None:
    for message in (b"one", b"two"):
        stream.log.append(message)

    def handler(payload: memoryview, _: Header) -> None:
        rig.conductor.close_resource(subscription.registration_id)

    subscription.poll(handler, 1)
    assert subscription.is_closed
    assert subscription.poll(handler) == 0

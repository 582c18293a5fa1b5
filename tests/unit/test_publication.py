"""Publications: what is appended, what is refused, and what waiting does."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import numpy as np
import pytest

import aeron_async
from aeron_async._buffers import BytesLike
from aeron_async._control import CLIENT_TIMEOUT
from aeron_async.errors import (
    BackPressuredError,
    DriverShutdownError,
    ForkedClientError,
    MaxPositionExceededError,
    MessageTooLongError,
    NotConnectedError,
    PublicationClosedError,
)
from aeron_async.protocol import commands
from aeron_async.protocol.counter_types import CounterType
from aeron_async.protocol.frames import TERM_MIN_LENGTH, FrameFlags, FrameType
from aeron_async.publication import OfferResult, Publication
from tests.unit.rig import IPC, STREAM_ID, Bench, PublicationStream, Rig, until

MAX_POSITION = TERM_MIN_LENGTH << 31


# --- offers -----------------------------------------------------------------------------------------------------------


def test_an_offer_returns_the_position_after_the_message(stream: PublicationStream) -> None:
    publication, log, _ = stream
    assert publication.position == 0
    assert publication.offer(b"hello") == 64
    assert publication.offer(bytes(64)) == 64 + 96
    assert publication.position == 160
    assert log.messages() == [b"hello", bytes(64)]


def test_a_frame_says_where_it_is_and_whose(stream: PublicationStream) -> None:
    publication, log, _ = stream
    publication.offer(b"first")
    publication.offer(b"second", reserved_value=-(1 << 63))
    _, (header, payload) = log.frames()
    assert payload == b"second"
    assert (header.type, header.flags, header.version) == (FrameType.DATA, FrameFlags.UNFRAGMENTED, 0)
    assert (header.session_id, header.stream_id) == (log.session_id, log.stream_id)
    assert (header.term_id, header.term_offset, header.frame_length) == (log.initial_term_id, 64, 32 + 6)
    assert header.reserved_value == -(1 << 63)


BUFFERS: dict[str, Any] = {
    "bytes": b"\1\2\3\4\5\6\7\x08",
    "bytearray": bytearray(b"\1\2\3\4\5\6\7\x08"),
    "memoryview": memoryview(b"..\1\2\3\4\5\6\7\x08..")[2:-2],
    "memoryview of int32": memoryview(b"\1\2\3\4\5\6\7\x08").cast("i"),
    "two-dimensional memoryview": memoryview(b"\1\2\3\4\5\6\7\x08").cast("B", (2, 4)),
    "array": array("i", [0x04030201, 0x08070605]),
    "numpy": np.array([0x0807060504030201], dtype=np.int64),
    "two-dimensional numpy": np.arange(1, 9, dtype=np.uint8).reshape(2, 4),
}


@pytest.mark.parametrize("data", BUFFERS.values(), ids=BUFFERS)
def test_anything_with_a_contiguous_buffer_is_a_message(stream: PublicationStream, data: Any) -> None:
    publication, log, _ = stream
    assert publication.offer(data) == 64
    assert publication.offer_vectored([data, data]) == 128
    assert publication.offer_many([data, data]) == 2
    assert log.messages() == [b"\1\2\3\4\5\6\7\x08", b"\1\2\3\4\5\6\7\x08" * 2] + [b"\1\2\3\4\5\6\7\x08"] * 2


@pytest.mark.parametrize("data", ["text", None, 5, 1.5, [1, 2], object()], ids=repr)
def test_anything_else_is_a_type_error_and_appends_nothing(stream: PublicationStream, data: Any) -> None:
    publication, log, _ = stream
    with pytest.raises(TypeError):
        publication.offer(data)
    with pytest.raises(TypeError):
        publication.offer_vectored([b"good", data])
    with pytest.raises(TypeError):
        publication.offer_many([b"good", data])
    assert log.messages() == []


STRIDED: dict[str, Any] = {
    "memoryview": memoryview(b"0123456789")[::2],
    "numpy": np.arange(10, dtype=np.uint8)[::2],
    "transposed numpy": np.zeros((3, 4), dtype=np.uint8).T,
}


@pytest.mark.parametrize("data", STRIDED.values(), ids=STRIDED)
def test_a_strided_buffer_is_a_buffer_error_and_appends_nothing(stream: PublicationStream, data: Any) -> None:
    publication, log, _ = stream
    with pytest.raises(BufferError):
        publication.offer(data)
    with pytest.raises(BufferError):
        publication.offer_vectored([b"good", data])
    with pytest.raises(BufferError):
        publication.offer_many([b"good", data])
    assert log.messages() == []


def test_an_empty_message_is_a_message(stream: PublicationStream) -> None:
    publication, log, _ = stream
    assert publication.offer(b"") == 32
    assert publication.offer(bytearray()) == 64
    assert publication.offer_vectored([]) == 96
    assert publication.offer_vectored([b"", b""]) == 128
    assert publication.offer_many([b"", b""]) == 2
    assert log.messages() == [b""] * 6


def test_a_message_longer_than_the_payload_is_fragmented(stream: PublicationStream) -> None:
    publication, log, _ = stream
    message = bytes(range(256)) * 16
    publication.offer(message, reserved_value=9)
    frames = list(log.frames())
    assert [frame.header.flags for frame in frames] == [FrameFlags.BEGIN, FrameFlags(0), FrameFlags.END]
    assert [frame.header.reserved_value for frame in frames] == [9, 9, 9]
    assert b"".join(frame.payload for frame in frames) == message


def test_a_message_as_long_as_the_payload_is_one_frame(stream: PublicationStream) -> None:
    publication, log, _ = stream
    publication.offer(bytes(publication.max_payload_length))
    (frame,) = log.frames()
    assert frame.header.flags == FrameFlags.UNFRAGMENTED


def test_pieces_become_one_message(stream: PublicationStream) -> None:
    publication, log, _ = stream
    pieces: list[BytesLike] = [b"ab", bytearray(b"cd"), memoryview(b""), array("B", b"ef"), b"g" * 3000]
    publication.offer_vectored(pieces, reserved_value=5)
    assert log.messages() == [b"abcdef" + b"g" * 3000]
    assert {frame.header.reserved_value for frame in log.frames()} == {5}


def test_the_longest_message_is_taken_and_one_byte_more_is_not(stream: PublicationStream) -> None:
    publication, log, _ = stream
    longest = publication.max_message_length
    assert longest == TERM_MIN_LENGTH // 8
    for offer in (publication.offer, lambda data: publication.offer_vectored([data[:100], data[100:]])):
        assert offer(bytes(longest)) > 0
        position = publication.position
        with pytest.raises(MessageTooLongError, match=f"{longest + 1} bytes.*max_message_length={longest}"):
            offer(bytes(longest + 1))
        assert publication.position == position
    assert len(log.messages()) == 2


def test_a_full_term_is_padded_and_the_next_offer_goes_on_in_the_next(stream: PublicationStream) -> None:
    publication, log, _ = stream
    while (result := publication.offer(bytes(1000))) > 0:
        pass
    assert result == OfferResult.ADMIN_ACTION
    assert publication.position == TERM_MIN_LENGTH
    assert publication.offer(b"next") == TERM_MIN_LENGTH + 64
    *_, padding, last = log.frames()
    assert padding.header.type == FrameType.PAD
    assert (last.header.term_id, last.header.term_offset) == (log.initial_term_id + 1, 0)


def test_at_the_limit_an_offer_is_back_pressured(rig: Rig, add: Callable[..., PublicationStream]) -> None:
    publication, log, limit = add(rig, limit=64)
    assert publication.position_limit == 64
    assert publication.offer(b"one") == 64
    assert publication.offer(b"two") == OfferResult.BACK_PRESSURED
    limit.value = 128
    assert publication.offer(b"three") == 128
    assert log.messages() == [b"one", b"three"]


def test_without_a_subscriber_an_offer_is_not_connected(rig: Rig, add: Callable[..., PublicationStream]) -> None:
    log = rig.driver.create_log()
    log.is_connected = False
    publication, _, _ = add(rig, log, limit=0)
    assert not publication.is_connected
    assert publication.offer(b"one") == OfferResult.NOT_CONNECTED
    log.is_connected = True
    assert publication.is_connected
    assert publication.offer(b"one") == OfferResult.BACK_PRESSURED


def test_the_stream_ends_at_the_maximum_position(rig: Rig, add: Callable[..., PublicationStream]) -> None:
    publication, _, _ = add(rig, rig.driver.create_log(position=MAX_POSITION - 64))
    assert publication.position == MAX_POSITION - 64
    assert publication.offer(b"last") == MAX_POSITION
    assert publication.offer(b"") == OfferResult.MAX_POSITION_EXCEEDED
    assert publication.offer_many([b""]) == OfferResult.MAX_POSITION_EXCEEDED


def test_a_result_is_an_offer_result_only_where_nothing_was_appended(rig: Rig) -> None:
    publication, _, _ = rig.add_publication(limit=64)
    assert not isinstance(publication.offer(b"one"), OfferResult)
    assert isinstance(publication.offer(b"two"), OfferResult)


@pytest.mark.parametrize("reserved_value", [1 << 63, -(1 << 63) - 1])
def test_a_reserved_value_has_64_bits(stream: PublicationStream, reserved_value: int) -> None:
    with pytest.raises(OverflowError):
        stream.publication.offer(b"", reserved_value=reserved_value)


def test_two_publications_of_one_session_append_to_one_stream(rig: Rig) -> None:
    first, log, _ = rig.add_publication()
    second, _, _ = rig.add_publication(log)
    assert first.offer(b"one") == 64
    assert second.offer(b"two") == 128
    assert first.position == second.position == 128
    assert log.messages() == [b"one", b"two"]


# --- offer_many -------------------------------------------------------------------------------------------------------


def test_many_messages_are_appended_in_order_across_terms(stream: PublicationStream) -> None:
    publication, log, _ = stream
    messages = [bytes([number]) * (number * 37 % 3000) for number in range(100)]
    assert publication.offer_many(messages) == 100
    assert publication.position > TERM_MIN_LENGTH
    assert log.messages() == messages


def test_no_messages_are_appended_as_none(rig: Rig) -> None:
    publication, _, _ = rig.add_publication(limit=0)
    assert publication.offer_many([]) == 0
    assert publication.offer_many(()) == 0
    rig.conductor.close_resource(publication.registration_id)
    assert publication.offer_many([]) == 0


def test_many_messages_stop_at_the_limit_and_say_how_far_they_came(
    rig: Rig, add: Callable[..., PublicationStream]
) -> None:
    publication, log, limit = add(rig, limit=3 * 64)
    messages = [b"%d" % number for number in range(5)]
    assert publication.offer_many(messages) == 3
    assert publication.offer_many(messages[3:]) == OfferResult.BACK_PRESSURED
    limit.value = 1 << 20
    assert publication.offer_many(messages[3:]) == 2
    assert log.messages() == messages


def test_many_messages_may_be_of_many_kinds(stream: PublicationStream) -> None:
    publication, log, _ = stream
    assert publication.offer_many(list(BUFFERS.values())) == len(BUFFERS)
    assert log.messages() == [b"\1\2\3\4\5\6\7\x08"] * len(BUFFERS)


def test_one_message_that_is_too_long_keeps_all_from_being_appended(stream: PublicationStream) -> None:
    publication, log, _ = stream
    too_long = publication.max_message_length + 1
    with pytest.raises(MessageTooLongError, match=str(too_long)):
        publication.offer_many([b"one", bytes(too_long), b"three"])
    assert publication.position == 0
    assert log.messages() == []


# --- closed -----------------------------------------------------------------------------------------------------------


def test_a_closed_publication_takes_nothing_and_keeps_its_last_values(
    rig: Rig, add: Callable[..., PublicationStream]
) -> None:
    status = rig.driver.allocate_counter(CounterType.SEND_CHANNEL_STATUS, value=1)
    publication, log, limit = add(rig, limit=1 << 20, status_id=status.id)
    publication.offer(b"one")
    rig.conductor.close_resource(publication.registration_id)
    limit.value = 5
    status.value = -1
    assert publication.is_closed
    assert not publication.is_connected
    assert publication.offer(b"two") == OfferResult.CLOSED
    assert publication.offer_vectored([b"two"]) == OfferResult.CLOSED
    assert publication.offer_many([b"two"]) == OfferResult.CLOSED
    assert (publication.position, publication.position_limit, publication.channel_status) == (64, 1 << 20, 1)
    assert log.messages() == [b"one"]
    assert "is_closed=True" in repr(publication)


def test_a_message_that_is_too_long_for_a_closed_publication_is_still_too_long(rig: Rig) -> None:
    publication, _, _ = rig.add_publication()
    rig.conductor.close_resource(publication.registration_id)
    with pytest.raises(MessageTooLongError):
        publication.offer(bytes(publication.max_message_length + 1))


def test_a_publication_of_a_forked_child_says_so(rig: Rig) -> None:
    publication, _, _ = rig.add_publication()
    rig.conductor.close_handles()
    rig.surroundings.process_error = ForkedClientError("in a child")
    for offer in (publication.offer, lambda data: publication.offer_many([data])):
        with pytest.raises(ForkedClientError):
            offer(b"message")


# --- publish ----------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_publish_returns_the_position(bench: Bench, add: Callable[..., PublicationStream]) -> None:
    publication, log, _ = add(bench)
    assert await publication.publish(b"one", reserved_value=3) == 64
    assert await publication.publish_vectored([b"t", b"wo"], reserved_value=4) == 128
    assert log.messages() == [b"one", b"two"]
    assert [frame.header.reserved_value for frame in log.frames()] == [3, 4]


@pytest.mark.anyio
@pytest.mark.parametrize("data", [ctypes.c_int32(258), np.array(258, "<i4")], ids=["ctypes", "numpy"])
async def test_a_buffer_without_a_length_is_published_as_its_bytes(
    bench: Bench, add: Callable[..., PublicationStream], data: BytesLike
) -> None:
    publication, log, _ = add(bench)
    publication.offer(data)
    publication.offer_vectored([data, data])
    await publication.publish(data)
    await publication.publish_vectored([data, data])
    await publication.publish_many([data])
    expected = bytes([2, 1, 0, 0])
    assert log.messages() == [expected, expected * 2, expected, expected * 2, expected]


@pytest.mark.anyio
async def test_publish_goes_through_the_rotation_of_terms(bench: Bench, add: Callable[..., PublicationStream]) -> None:
    publication, log, _ = add(bench)
    messages = [bytes([number]) * 1000 for number in range(100)]
    for message in messages:
        await publication.publish(message, timeout=0)
    assert log.messages() == messages


@pytest.mark.anyio
@pytest.mark.parametrize("vectored", [False, True])
async def test_publish_waits_while_back_pressured(
    bench: Bench, add: Callable[..., PublicationStream], vectored: bool
) -> None:
    publication, log, limit = add(bench, limit=0)
    positions = []

    async def publish() -> None:
        if vectored:
            positions.append(await publication.publish_vectored([b"mess", b"age"], timeout=None))
        else:
            positions.append(await publication.publish(b"message", timeout=None))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish)
        await anyio.sleep(0.01)
        assert positions == []
        limit.value = 64
        with anyio.fail_after(10):
            await until(lambda: positions == [64])
    assert log.messages() == [b"message"]


@pytest.mark.anyio
async def test_publish_waits_for_a_subscriber(bench: Bench) -> None:
    log = bench.driver.create_log()
    log.is_connected = False
    publication, _, limit = bench.add_publication(log, limit=0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publication.publish, b"message")
        await anyio.sleep(0.01)
        assert log.messages() == []
        limit.value = 1 << 20
        log.is_connected = True
    assert log.messages() == [b"message"]


@pytest.mark.anyio
@pytest.mark.parametrize("timeout", [0, 0.01])
async def test_publish_that_runs_out_of_time_raises_what_stopped_it(bench: Bench, timeout: float) -> None:
    log = bench.driver.create_log()
    publication, _, limit = bench.add_publication(log, limit=0)
    with pytest.raises(BackPressuredError, match="stream_id=10") as back_pressured:
        await publication.publish(b"message", timeout=timeout)
    assert isinstance(back_pressured.value, TimeoutError)
    log.is_connected = False
    with pytest.raises(NotConnectedError, match="stream_id=10") as not_connected:
        await publication.publish(b"message", timeout=timeout)
    assert isinstance(not_connected.value, TimeoutError)
    log.is_connected = True
    limit.value = 1 << 20
    assert await publication.publish(b"later", timeout=timeout) == 64
    assert log.messages() == [b"later"]


@pytest.mark.anyio
async def test_publish_without_a_timeout_of_its_own_has_the_clients(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    publication, _, _ = bench.add_publication(limit=0)
    monkeypatch.setattr(publication._control, "seconds", {CLIENT_TIMEOUT: 0.01}.get)
    with pytest.raises(BackPressuredError):
        await publication.publish(b"message")


@pytest.mark.anyio
async def test_cancelling_publish_while_it_waits_appends_nothing(bench: Bench) -> None:
    publication, log, limit = bench.add_publication(limit=0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publication.publish, b"message")
        await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    limit.value = 1 << 20
    await anyio.sleep(0.01)
    assert log.messages() == []
    assert await publication.publish(b"later") == 64


@pytest.mark.anyio
async def test_a_message_that_is_too_long_is_refused_at_once(bench: Bench) -> None:
    publication, _, _ = bench.add_publication(limit=0)
    with pytest.raises(MessageTooLongError):
        await publication.publish(bytes(publication.max_message_length + 1), timeout=None)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("data", "error"), [("text", TypeError), (5, TypeError), (memoryview(b"0123")[::2], BufferError)], ids=repr
)
async def test_publish_refuses_what_an_offer_refuses(bench: Bench, data: Any, error: type[Exception]) -> None:
    publication, log, _ = bench.add_publication()
    with pytest.raises(error):
        await publication.publish(data)
    with pytest.raises(error):
        await publication.publish_vectored([b"good", data])
    assert log.messages() == []


@pytest.mark.anyio
async def test_publish_takes_what_an_offer_takes(bench: Bench) -> None:
    publication, log, _ = bench.add_publication()
    for data in BUFFERS.values():
        await publication.publish(data)
        await publication.publish_vectored([data])
    assert log.messages() == [b"\1\2\3\4\5\6\7\x08"] * 2 * len(BUFFERS)


@pytest.mark.anyio
async def test_publish_at_the_maximum_position_says_so(bench: Bench) -> None:
    publication, _, _ = bench.add_publication(bench.driver.create_log(position=MAX_POSITION - 32))
    assert await publication.publish(b"") == MAX_POSITION
    with pytest.raises(MaxPositionExceededError, match=str(MAX_POSITION)):
        await publication.publish(b"message", timeout=None)


@pytest.mark.anyio
async def test_publish_on_a_closed_publication_says_so(bench: Bench) -> None:
    publication, _, _ = bench.add_publication()
    bench.conductor.close_resource(publication.registration_id)
    with pytest.raises(PublicationClosedError):
        await publication.publish(b"message")
    with pytest.raises(PublicationClosedError):
        await publication.wait_connected()


async def fails(awaitable: Callable[[], Any], error: type[Exception], done: list[type[Exception]]) -> None:
    with pytest.raises(error):
        await awaitable()
    done.append(error)


@pytest.mark.anyio
async def test_whoever_waits_hears_that_the_publication_is_closed(bench: Bench) -> None:
    log = bench.driver.create_log()
    log.is_connected = False
    publication, _, _ = bench.add_publication(log, limit=0)
    done: list[type[Exception]] = []
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fails, lambda: publication.publish(b"", timeout=None), PublicationClosedError, done)
            tasks.start_soon(fails, lambda: publication.wait_connected(timeout=None), PublicationClosedError, done)
            await anyio.sleep(0.01)
            bench.conductor.close_resource(publication.registration_id)
    assert len(done) == 2


@pytest.mark.anyio
async def test_whoever_waits_hears_why_the_client_is_closed(bench: Bench) -> None:
    log = bench.driver.create_log()
    log.is_connected = False
    publication, _, _ = bench.add_publication(log, limit=0)
    done: list[type[Exception]] = []
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fails, lambda: publication.publish(b"", timeout=None), DriverShutdownError, done)
            tasks.start_soon(fails, lambda: publication.wait_connected(timeout=None), DriverShutdownError, done)
            await anyio.sleep(0.01)
            bench.conductor.driver_exited()
    assert len(done) == 2
    with pytest.raises(DriverShutdownError):
        await publication.publish(b"later")


@pytest.mark.anyio
async def test_a_publish_loop_that_never_has_to_wait_lets_other_tasks_run(
    bench: Bench, add: Callable[..., PublicationStream]
) -> None:
    publication, _, _ = add(bench)
    others = 0
    stop = False

    async def other() -> None:
        nonlocal others, stop
        for _ in range(5):
            others += 1
            await anyio.lowlevel.checkpoint()
        stop = True

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(other)
            while not stop:
                await publication.publish(b"message")
    assert others == 5


@pytest.mark.anyio
async def test_a_publish_loop_of_long_messages_lets_other_tasks_run_sooner(bench: Bench) -> None:
    log = bench.driver.create_log(term_length=1 << 22, mtu_length=65504)
    publication, _, _ = bench.add_publication(log)
    published = 0

    async def publish() -> None:
        nonlocal published
        while True:
            await publication.publish(bytes(1 << 19))
            published += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert published < 20


# --- wait_connected and closing --------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_wait_connected_returns_when_a_subscriber_is_there(bench: Bench) -> None:
    log = bench.driver.create_log()
    log.is_connected = False
    publication, _, _ = bench.add_publication(log)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publication.wait_connected)
        await anyio.sleep(0.01)
        log.is_connected = True
    assert publication.is_connected
    await publication.wait_connected(timeout=0)


@pytest.mark.anyio
async def test_wait_connected_that_runs_out_of_time_says_so(bench: Bench) -> None:
    log = bench.driver.create_log()
    log.is_connected = False
    publication, _, _ = bench.add_publication(log)
    with pytest.raises(NotConnectedError, match="stream_id=10"):
        await publication.wait_connected(timeout=0.01)


@pytest.mark.anyio
async def test_closing_waits_for_the_drivers_answer_and_does_nothing_the_second_time(bench: Bench) -> None:
    publication, _, _ = bench.add_publication()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publication.aclose)
        command = await bench.answer_removal(commands.RemovePublication)
    assert command.registration_id == publication.registration_id
    assert publication.is_closed
    await publication.aclose()
    assert bench.driver.receive() == []


@pytest.mark.anyio
async def test_leaving_the_block_closes_the_publication(client: aeron_async.Client, bench: Bench) -> None:
    publications: list[Publication] = []

    async def use() -> None:
        async with bench.add_publication().publication as publication:
            publications.append(publication)
        assert publication.is_closed

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(use)
        await bench.answer_removal(commands.RemovePublication)
    assert publications[0].is_closed


def test_a_publication_says_what_it_is(rig: Rig) -> None:
    text = repr(rig.add_exclusive_publication().publication)
    assert text.startswith("<ExclusivePublication ")
    assert IPC in text
    assert f"stream_id={STREAM_ID}" in text

"""BatchPublisher: what is queued goes out in order, in few calls, and nothing of it is dropped."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import aeron_async
from aeron_async._buffers import BytesLike
from aeron_async.batch_publisher import BatchPublisher
from aeron_async.errors import (
    BackPressuredError,
    DriverShutdownError,
    MaxPositionExceededError,
    MessageTooLongError,
    PublicationClosedError,
)
from aeron_async.protocol.frames import TERM_MIN_LENGTH
from aeron_async.publication import Publication
from tests.unit.rig import Bench, until

pytestmark = pytest.mark.anyio

MESSAGES = [b"%d" % number for number in range(100)]


@pytest.fixture
def native_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many messages each native call has taken so far."""
    calls: list[int] = []
    offer_many = Publication.offer_many

    def counted(publication: Publication, messages: Sequence[BytesLike]) -> int:
        calls.append(offer_many(publication, messages))
        return calls[-1]

    monkeypatch.setattr(Publication, "offer_many", counted)
    return calls


async def test_publish_sends_nothing_itself_and_one_call_a_turn_sends_all(
    bench: Bench, native_calls: list[int]
) -> None:
    publication, log, _ = bench.add_publication()
    async with BatchPublisher(publication) as batch:
        for message in MESSAGES:
            batch.publish(message)
        assert (batch.pending, log.messages(), native_calls) == (100, [], [])
        await batch.flush()
        assert (batch.pending, log.messages(), native_calls) == (0, MESSAGES, [100])
        batch.publish(b"more")
        await until(lambda: batch.pending == 0)
    assert native_calls == [100, 1]


async def test_leaving_the_block_sends_what_is_pending(bench: Bench) -> None:
    publication, log, _ = bench.add_publication()
    async with BatchPublisher(publication) as batch:
        for message in MESSAGES:
            batch.publish(message)
    assert batch.pending == 0
    assert log.messages() == MESSAGES
    with pytest.raises(RuntimeError):
        batch.publish(b"late")
    assert not publication.is_closed


async def test_what_finds_no_room_is_sent_in_order_as_soon_as_there_is_some(bench: Bench) -> None:
    publication, log, limit = bench.add_publication(limit=0)
    async with BatchPublisher(publication) as batch:
        for number, message in enumerate(MESSAGES, 1):
            batch.publish(message)
            if number % 10 == 0:
                limit.value = number // 2 * 64
                await until(lambda number=number: len(log.messages()) >= number // 2)  # type: ignore[misc]
        assert log.messages() == MESSAGES[:50]
        assert batch.pending == 50
        limit.value = 1 << 20
    assert log.messages() == MESSAGES


async def test_more_than_the_window_goes_in_several_turns(bench: Bench, native_calls: list[int]) -> None:
    publication, log, limit = bench.add_publication(limit=8192)
    messages = [bytes(1000)] * 60
    async with BatchPublisher(publication) as batch:
        for message in messages:
            batch.publish(message)
        await until(lambda: len(log.messages()) == 8)
        limit.value = 1 << 20
    assert log.messages() == messages
    assert [taken for taken in native_calls if taken > 0] == [8, 52]


async def test_it_waits_for_a_subscriber(bench: Bench) -> None:
    log = bench.driver.create_log()
    log.is_connected = False
    publication, _, limit = bench.add_publication(log, limit=0)
    async with BatchPublisher(publication) as batch:
        batch.publish(b"early")
        await anyio.sleep(0.02)
        assert batch.pending == 1
        limit.value = 1 << 20
        log.is_connected = True
    assert log.messages() == [b"early"]


async def test_what_could_change_is_copied(bench: Bench) -> None:
    publication, log, _ = bench.add_publication()
    changing: list[Any] = [bytearray(b"abcd"), array("B", b"abcd"), memoryview(bytearray(b"abcd"))]
    async with BatchPublisher(publication) as batch:
        for data in changing:
            batch.publish(data)
            data[0] = 0
    assert log.messages() == [b"abcd"] * 3


async def test_what_is_no_message_is_refused_at_once(bench: Bench) -> None:
    publication, log, _ = bench.add_publication()
    async with BatchPublisher(publication) as batch:
        for wrong in ("text", None, 5):
            with pytest.raises(TypeError):
                batch.publish(wrong)  # type: ignore[arg-type]
        with pytest.raises(BufferError):
            batch.publish(memoryview(b"1234")[::2])
        with pytest.raises(MessageTooLongError):
            batch.publish(bytes(publication.max_message_length + 1))
        batch.publish(b"good")
    assert log.messages() == [b"good"]


async def test_past_max_pending_publish_is_refused_and_what_is_pending_stays(bench: Bench) -> None:
    publication, log, limit = bench.add_publication(limit=0)
    async with BatchPublisher(publication, max_pending=3) as batch:
        for message in MESSAGES[:3]:
            batch.publish(message)
        for _ in range(2):
            with pytest.raises(BackPressuredError, match="max_pending=3") as raised:
                batch.publish(b"too many")
            assert raised.value.pending == batch.pending == 3
            await anyio.sleep(0.01)
        limit.value = 1 << 20
        await batch.flush()
        batch.publish(MESSAGES[3])
    assert log.messages() == MESSAGES[:4]
    with pytest.raises(ValueError, match="max_pending=0"):
        BatchPublisher(publication, max_pending=0)


async def test_flush_returns_when_what_was_queued_before_it_is_sent(bench: Bench) -> None:
    publication, log, limit = bench.add_publication(limit=0)
    batch = BatchPublisher(publication)
    await batch.flush(timeout=0)
    batch.publish(b"before")
    flushed: list[bool] = []

    async def flush() -> None:
        await batch.flush(timeout=None)
        flushed.append(True)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(flush)
        tasks.start_soon(flush)
        await anyio.sleep(0.01)
        batch.publish(b"after")
        limit.value = 32
        await until(lambda: len(flushed) == 2)
    assert log.messages() == [b"before"]
    assert batch.pending == 1


async def test_flush_that_runs_out_of_time_says_how_many_are_pending_and_drops_none(bench: Bench) -> None:
    publication, log, limit = bench.add_publication(limit=0)
    batch = BatchPublisher(publication)
    for message in MESSAGES[:3]:
        batch.publish(message)
    for timeout in (0, 0.01):
        with pytest.raises(BackPressuredError, match="3 messages") as raised:
            await batch.flush(timeout=timeout)
        assert raised.value.pending == 3
        log.is_connected = False
    log.is_connected = True
    limit.value = 1 << 20
    await batch.flush()
    assert log.messages() == MESSAGES[:3]


async def test_cancelling_flush_drops_nothing(bench: Bench) -> None:
    publication, log, limit = bench.add_publication(limit=0)
    batch = BatchPublisher(publication)
    batch.publish(b"message")
    with anyio.move_on_after(0.01):
        await batch.flush(timeout=None)
    limit.value = 1 << 20
    await until(lambda: batch.pending == 0)
    assert log.messages() == [b"message"]


async def test_a_block_that_is_cancelled_drops_nothing(bench: Bench) -> None:
    publication, log, limit = bench.add_publication(limit=0)
    with anyio.move_on_after(0.01):
        async with BatchPublisher(publication) as batch:
            batch.publish(b"message")
            await anyio.sleep_forever()
    assert batch.pending == 1
    limit.value = 1 << 20
    await until(lambda: batch.pending == 0)
    assert log.messages() == [b"message"]


async def test_a_block_that_raises_is_flushed_and_raises_its_own_error(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    publication, log, limit = bench.add_publication()
    with pytest.raises(ZeroDivisionError):
        async with BatchPublisher(publication) as batch:
            batch.publish(b"message")
            raise ZeroDivisionError
    assert log.messages() == [b"message"]

    limit.value = 0
    monkeypatch.setattr(publication._control, "seconds", lambda timeout: 0.01)
    with pytest.raises(ZeroDivisionError):
        async with BatchPublisher(publication) as batch:
            batch.publish(b"stuck")
            raise ZeroDivisionError
    assert batch.pending == 1


async def test_the_end_of_the_publication_says_how_many_were_not_sent(bench: Bench) -> None:
    publication, log, _ = bench.add_publication(limit=128)
    batch = BatchPublisher(publication)
    for message in MESSAGES[:3]:
        batch.publish(message)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(flush_fails, batch, PublicationClosedError)
            await until(lambda: batch.pending == 1)
            bench.conductor.close_resource(publication.registration_id)
    assert log.messages() == MESSAGES[:2]
    with pytest.raises(PublicationClosedError) as raised:
        batch.publish(b"late")
    assert raised.value.pending == batch.pending == 1
    with pytest.raises(PublicationClosedError) as raised:
        await batch.aclose()
    assert raised.value.__notes__ == ["1 messages of the BatchPublisher are not sent"]


async def flush_fails(batch: BatchPublisher, error: type[Exception]) -> None:
    with pytest.raises(error):
        await batch.flush(timeout=None)


async def test_the_end_of_the_client_is_the_reason(bench: Bench) -> None:
    publication, _, _ = bench.add_publication(limit=0)
    with pytest.raises(DriverShutdownError) as raised:
        async with BatchPublisher(publication) as batch:
            batch.publish(b"never")
            await anyio.sleep(0.01)
            bench.conductor.driver_exited()
    assert raised.value.pending == 1


async def test_a_client_that_closes_with_nothing_pending_is_no_error(client: aeron_async.Client, bench: Bench) -> None:
    publication, log, _ = bench.add_publication()
    async with BatchPublisher(publication) as batch:
        batch.publish(b"message")
        await batch.flush()
        await client.aclose()
    assert log.messages() == [b"message"]


async def test_the_maximum_position_ends_it(bench: Bench) -> None:
    log = bench.driver.create_log(position=(TERM_MIN_LENGTH << 31) - 64)
    publication, _, _ = bench.add_publication(log)
    batch = BatchPublisher(publication)
    for message in MESSAGES[:5]:
        batch.publish(message)
    with pytest.raises(MaxPositionExceededError) as raised:
        await batch.flush()
    assert raised.value.pending == 4


async def test_it_goes_through_rotations(bench: Bench) -> None:
    publication, log, _ = bench.add_publication()
    messages = [bytes([number]) * 1500 for number in range(80)]
    async with BatchPublisher(publication) as batch:
        for message in messages:
            batch.publish(message)
            if len(message) % 7 == 0:
                await anyio.lowlevel.checkpoint()
    assert log.messages() == messages


async def test_it_tells_how_many_are_pending(bench: Bench) -> None:
    publication, _, _ = bench.add_publication()
    batch = BatchPublisher(publication)
    batch.publish(b"message")
    assert "1 pending" in repr(batch)
    await batch.aclose()

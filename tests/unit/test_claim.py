"""Claims: a message written in the log buffer itself, and every way to end one."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import Any

import anyio
import numpy as np
import pytest

from aeron_async._native import lib
from aeron_async.claim import BufferClaim
from aeron_async.errors import (
    AeronError,
    BackPressuredError,
    ForkedClientError,
    MessageTooLongError,
    NotConnectedError,
    PublicationClosedError,
)
from aeron_async.protocol.frames import FrameFlags, FrameType
from aeron_async.publication import OfferResult
from tests.unit.rig import Bench, PublicationStream, Rig, until


def claimed(stream: PublicationStream, length: int) -> BufferClaim:
    claim = stream.publication.try_claim(length)
    assert isinstance(claim, BufferClaim)
    return claim


def frame_types(stream: PublicationStream) -> list[int]:
    return [frame.header.type for frame in stream.log.frames()]


def test_a_claim_that_is_committed_is_a_message(stream: PublicationStream) -> None:
    claim = claimed(stream, 5)
    assert (len(claim), claim.length, claim.position) == (5, 5, 64)
    claim.buffer[:] = b"hello"
    assert stream.log.messages() == []
    claim.commit()
    assert stream.log.messages() == [b"hello"]
    ((header, _),) = stream.log.frames()
    assert (header.type, header.flags, header.reserved_value) == (FrameType.DATA, FrameFlags.UNFRAGMENTED, 0)


def test_leaving_the_block_commits(stream: PublicationStream) -> None:
    with claimed(stream, 3) as claim:
        claim.buffer[:] = b"one"
        claim.reserved_value = -(1 << 63)
        assert claim.reserved_value == -(1 << 63)
    assert stream.log.messages() == [b"one"]
    ((header, _),) = stream.log.frames()
    assert header.reserved_value == -(1 << 63)


def test_leaving_the_block_by_an_exception_aborts(stream: PublicationStream) -> None:
    with pytest.raises(ZeroDivisionError), claimed(stream, 3) as claim:
        claim.buffer[:] = b"one"
        raise ZeroDivisionError
    stream.publication.offer(b"two")
    assert frame_types(stream) == [FrameType.PAD, FrameType.DATA]
    assert stream.log.messages() == [b"two"]


def test_a_claim_that_nobody_finishes_is_aborted_when_it_is_collected(stream: PublicationStream) -> None:
    claim = claimed(stream, 3)
    view = claim.buffer[1:]
    del claim
    gc.collect()
    assert frame_types(stream) == [FrameType.PAD]
    view[:] = b"no"


def test_the_block_may_finish_the_claim_itself(stream: PublicationStream) -> None:
    with claimed(stream, 3) as claim:
        claim.buffer[:] = b"one"
        claim.commit()
    with claimed(stream, 3) as claim:
        claim.abort()
    with pytest.raises(ZeroDivisionError), claimed(stream, 3) as claim:
        claim.buffer[:] = b"two"
        claim.commit()
        raise ZeroDivisionError
    assert stream.log.messages() == [b"one", b"two"]


def test_a_claim_is_finished_once(stream: PublicationStream) -> None:
    committed, aborted = claimed(stream, 0), claimed(stream, 0)
    committed.commit()
    committed.commit()
    aborted.abort()
    aborted.abort()
    with pytest.raises(ValueError, match="committed already"):
        committed.abort()
    with pytest.raises(ValueError, match="aborted already"):
        aborted.commit()
    for claim in (committed, aborted):
        with pytest.raises(ValueError, match="already"), claim:
            pass
    assert frame_types(stream) == [FrameType.DATA, FrameType.PAD]


@pytest.mark.parametrize("finish", [BufferClaim.commit, BufferClaim.abort])
def test_after_its_end_a_claim_changes_nothing(
    stream: PublicationStream, finish: Callable[[BufferClaim], None]
) -> None:
    claim = claimed(stream, 8)
    buffer = claim.buffer
    buffer[:] = b"8 bytes."
    claim.flags = FrameFlags.BEGIN
    finish(claim)
    before = list(stream.log.frames())
    with pytest.raises(ValueError, match="already"):
        _ = claim.buffer
    with pytest.raises(ValueError, match="already"):
        claim.reserved_value = 1
    with pytest.raises(ValueError, match="already"):
        claim.flags = 0
    with pytest.raises(ValueError, match="released"):
        buffer[0] = 0
    assert list(stream.log.frames()) == before
    assert claim.flags == FrameFlags.BEGIN


def test_a_view_that_something_else_holds_does_not_keep_a_claim_from_its_end(stream: PublicationStream) -> None:
    claim = claimed(stream, 16)
    array = np.frombuffer(claim.buffer, dtype=np.int64)
    array[:] = [1, 2]
    claim.commit()
    assert stream.log.messages() == [np.array([1, 2], dtype=np.int64).tobytes()]
    with pytest.raises(ValueError, match="already"):
        _ = claim.buffer
    assert array.tolist() == [1, 2]


def test_a_view_keeps_its_memory_after_everything_is_closed(rig: Rig, add: Callable[..., PublicationStream]) -> None:
    publication, log, _ = add(rig)
    claim = publication.try_claim(4)
    assert isinstance(claim, BufferClaim)
    view = claim.buffer[:]
    rig.conductor.close_resource(publication.registration_id)
    rig.pass_time(60)
    os.unlink(log.path)
    del publication
    gc.collect()
    view[:] = b"four"
    claim.commit()
    del claim
    gc.collect()
    assert bytes(view) == b"four"
    assert log.messages() == [b"four"]


def test_the_flags_may_make_a_fragmented_message(stream: PublicationStream) -> None:
    for flags, part in ((FrameFlags.BEGIN, b"in "), (FrameFlags(0), b"three "), (FrameFlags.END, b"parts")):
        with claimed(stream, len(part)) as claim:
            assert claim.flags == FrameFlags.UNFRAGMENTED
            claim.buffer[:] = part
            claim.flags = flags
    assert stream.log.messages() == [b"in three parts"]


@pytest.mark.parametrize(("name", "values"), [("flags", (-1, 256)), ("reserved_value", (-(1 << 63) - 1, 1 << 63))])
def test_what_does_not_fit_into_the_header_is_refused(
    stream: PublicationStream, name: str, values: tuple[int, int]
) -> None:
    with claimed(stream, 0) as claim:
        for value in values:
            with pytest.raises(ValueError, match=f"{name}={value}"):
                setattr(claim, name, value)


def test_a_claim_is_one_frame(stream: PublicationStream) -> None:
    longest = stream.publication.max_payload_length
    with pytest.raises(MessageTooLongError, match=f"{longest + 1} bytes.*max_payload_length={longest}") as raised:
        stream.publication.try_claim(longest + 1)
    assert (raised.value.length, raised.value.limit) == (longest + 1, longest)
    with pytest.raises(ValueError, match="-1"):
        stream.publication.try_claim(-1)
    with claimed(stream, longest) as claim:
        claim.buffer[:] = bytes(longest)
    assert stream.log.messages() == [bytes(longest)]


def test_a_claim_is_refused_as_an_offer_is(rig: Rig, add: Callable[..., PublicationStream]) -> None:
    publication, log, limit = add(rig, limit=0)
    assert publication.try_claim(1) is OfferResult.BACK_PRESSURED
    log.is_connected = False
    assert publication.try_claim(1) is OfferResult.NOT_CONNECTED
    limit.value = 1 << 20
    rig.conductor.close_resource(publication.registration_id)
    assert publication.try_claim(1) is OfferResult.CLOSED


def test_a_claim_turns_to_the_next_term(rig: Rig, add: Callable[..., PublicationStream]) -> None:
    log = rig.driver.create_log(position=(64 << 10) - 64)
    publication, _, _ = add(rig, log)
    assert publication.try_claim(100) is OfferResult.ADMIN_ACTION
    with claimed(PublicationStream(publication, log, None), 100) as claim:
        assert claim.position == (64 << 10) + 160


def test_a_claim_that_the_driver_has_unblocked_is_lost_and_says_so(rig: Rig) -> None:
    stream = rig.add_publication()
    committed, aborted = claimed(stream, 100), claimed(stream, 100)
    stream.log.put_frame_length(0, 132)
    stream.log.put_frame_length(160, 132)
    with pytest.raises(AeronError, match="publication_unblock_timeout"):
        committed.commit()
    aborted.abort()


def test_a_claim_of_the_parent_is_left_alone_in_a_forked_child(rig: Rig) -> None:
    stream = rig.add_publication()
    claim = claimed(stream, 3)
    claim.buffer[:] = b"one"
    rig.surroundings.process_error = ForkedClientError("in a child")
    for use in (claim.commit, claim.abort, claim.__enter__, lambda: claim.buffer):
        with pytest.raises(ForkedClientError):
            use()
    rig.surroundings.process_error = None
    claim.commit()
    assert stream.log.messages() == [b"one"]

    left = claimed(stream, 3)
    rig.surroundings.process_error = ForkedClientError("in a child")
    del left
    gc.collect()
    assert len(frame_types(stream)) == 1


def test_without_memory_nothing_is_claimed(stream: PublicationStream, monkeypatch: pytest.MonkeyPatch) -> None:
    class OutOfMemory:
        def __getattr__(self, name: str) -> Any:
            if name == "aa_publication_try_claim":
                return lambda *_: lib.AA_SYSTEM
            return getattr(lib, name)

    monkeypatch.setattr("aeron_async.publication.lib", OutOfMemory())
    with pytest.raises(MemoryError):
        stream.publication.try_claim(1)


def test_a_claim_tells_its_state(stream: PublicationStream) -> None:
    claim = claimed(stream, 3)
    assert repr(claim) == "<BufferClaim of 3 bytes, open>"
    claim.abort()
    assert repr(claim) == "<BufferClaim of 3 bytes, aborted>"


# --- waiting for one --------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_claim_waits_while_back_pressured(bench: Bench, add: Callable[..., PublicationStream]) -> None:
    publication, log, limit = add(bench, limit=0)

    async def publish() -> None:
        with await publication.claim(7, timeout=None) as claim:
            claim.buffer[:] = b"message"

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish)
        await anyio.sleep(0.01)
        assert publication.position == 0
        limit.value = 64
        with anyio.fail_after(10):
            await until(lambda: log.messages() == [b"message"])


@pytest.mark.anyio
@pytest.mark.parametrize("timeout", [0, 0.01])
async def test_claim_that_runs_out_of_time_raises_what_stopped_it(bench: Bench, timeout: float) -> None:
    publication, log, _ = bench.add_publication(limit=0)
    with pytest.raises(BackPressuredError):
        await publication.claim(7, timeout=timeout)
    log.is_connected = False
    with pytest.raises(NotConnectedError):
        await publication.claim(7, timeout=timeout)


@pytest.mark.anyio
async def test_cancelling_claim_while_it_waits_claims_nothing(bench: Bench) -> None:
    publication, _, limit = bench.add_publication(limit=0)
    with anyio.move_on_after(0.01):
        await publication.claim(7, timeout=None)
    limit.value = 1 << 20
    await anyio.sleep(0.01)
    assert publication.position == 0


@pytest.mark.anyio
async def test_claim_of_a_closed_publication_raises(bench: Bench) -> None:
    publication, _, _ = bench.add_publication()
    bench.conductor.close_resource(publication.registration_id)
    with pytest.raises(PublicationClosedError):
        await publication.claim(7)
    with pytest.raises(MessageTooLongError):
        await publication.claim(publication.max_payload_length + 1)

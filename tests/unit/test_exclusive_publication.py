"""What only exclusive publications do: padding, blocks of frames, revoking."""

from __future__ import annotations

from typing import Any

import anyio
import numpy as np
import pytest

import aeron_async
from aeron_async.errors import MessageTooLongError
from aeron_async.protocol import commands
from aeron_async.protocol.frames import DATA_HEADER_LENGTH, DataHeader, FrameFlags, FrameType
from aeron_async.publication import ExclusivePublication, OfferResult, Publication
from tests.fakes import FakeLog
from tests.unit.rig import Bench, Rig

TERM_LENGTH = 64 << 10
REVOKE = commands.RemovePublication.FLAG_REVOKE


def add(rig: Bench, log: FakeLog | None = None, **options: Any) -> tuple[ExclusivePublication, FakeLog]:
    publication, log, _ = rig.add_exclusive_publication(log, **options)
    assert isinstance(publication, ExclusivePublication)
    return publication, log


def frame(log: FakeLog, payload: bytes, position: int, **header: Any) -> bytes:
    """A frame as the publication of `log` would write it at `position`."""
    fields: dict[str, Any] = {
        "frame_length": DATA_HEADER_LENGTH + len(payload),
        "version": 0,
        "flags": FrameFlags.UNFRAGMENTED,
        "type": FrameType.DATA,
        "term_offset": position % TERM_LENGTH,
        "session_id": log.session_id,
        "stream_id": log.stream_id,
        "term_id": log.initial_term_id + position // TERM_LENGTH,
        "reserved_value": 0,
    }
    content = DataHeader(**(fields | header)).encode() + payload
    return content.ljust(-(-len(content) // 32) * 32, b"\0")


def test_padding_is_passed_over(rig: Rig) -> None:
    publication, log = add(rig)
    assert publication.append_padding(33) == 96
    assert publication.append_padding(0) == 128
    assert publication.offer(b"message") == 192
    assert [(header.type, header.frame_length) for header, _ in log.frames()] == [
        (FrameType.PAD, 65),
        (FrameType.PAD, 32),
        (FrameType.DATA, 39),
    ]


def test_padding_is_refused_as_an_offer_is(rig: Rig) -> None:
    log = rig.driver.create_log(position=TERM_LENGTH - 64)
    publication, _ = add(rig, log, limit=2 * TERM_LENGTH)
    assert publication.append_padding(64) is OfferResult.ADMIN_ACTION
    assert publication.append_padding(64) == TERM_LENGTH + 96
    with pytest.raises(ValueError, match="length=-1"):
        publication.append_padding(-1)
    with pytest.raises(MessageTooLongError, match="max_padding_length"):
        publication.append_padding(publication.max_message_length * 2)
    rig.conductor.close_resource(publication.registration_id)
    assert publication.append_padding(1) is OfferResult.CLOSED


def test_a_block_of_frames_becomes_part_of_the_stream(rig: Rig) -> None:
    publication, log = add(rig)
    publication.offer(b"first")
    block = frame(log, b"second", 64, reserved_value=9) + frame(log, b"third", 128)
    assert publication.offer_block(bytearray(block)) == 192
    assert publication.offer(b"fourth") == 256
    assert log.messages() == [b"first", b"second", b"third", b"fourth"]
    assert [header.reserved_value for header, _ in log.frames()] == [0, 9, 0, 0]


def test_a_block_that_another_publication_wrote_repeats_its_stream(rig: Rig) -> None:
    source, source_log = add(rig)
    for length in (0, 10, 3000):
        source.offer(bytes([length % 251]) * length)
    copy, copy_log = add(rig)
    with open(source_log.path, "rb") as content:
        block = content.read(source.position)
    assert copy.offer_block(np.frombuffer(block, np.uint8)) == source.position
    assert list(copy_log.frames()) == list(source_log.frames())


def test_a_block_begins_the_next_term_where_this_one_is_full(rig: Rig) -> None:
    log = rig.driver.create_log(position=TERM_LENGTH - 64)
    publication, _ = add(rig, log)
    assert publication.offer_block(frame(log, b"last", TERM_LENGTH - 64)) == TERM_LENGTH
    assert publication.offer_block(frame(log, b"next", TERM_LENGTH)) == TERM_LENGTH + 64
    assert log.messages(TERM_LENGTH - 64) == [b"last", b"next"]


@pytest.mark.parametrize(
    "header",
    [
        {"term_offset": 32},
        {"term_id": 0},
        {"session_id": 0},
        {"stream_id": 0},
        {"type": FrameType.PAD},
        {"frame_length": 0},
        {"frame_length": 65},
    ],
    ids=lambda header: next(iter(header)),
)
def test_a_block_that_does_not_belong_there_is_refused(rig: Rig, header: dict[str, Any]) -> None:
    publication, log = add(rig)
    with pytest.raises(ValueError, match="block"):
        publication.offer_block(frame(log, b"payload", 0, **header))
    assert publication.position == 0
    assert log.messages() == []


def test_a_block_is_whole_frames_of_one_term(rig: Rig) -> None:
    log = rig.driver.create_log(position=TERM_LENGTH - 64)
    publication, _ = add(rig, log)
    block = frame(log, b"payload", TERM_LENGTH - 64)
    for wrong in (b"", block[:-1], block + block[:31], bytes(96)):
        with pytest.raises(ValueError, match="block"):
            publication.offer_block(wrong)
    with pytest.raises(TypeError):
        publication.offer_block("text")  # type: ignore[arg-type]
    assert publication.offer_block(block) == TERM_LENGTH


def test_a_block_is_back_pressured_as_an_offer_is(rig: Rig) -> None:
    publication, log = add(rig, limit=0)
    block = frame(log, b"payload", 0)
    assert publication.offer_block(block) is OfferResult.BACK_PRESSURED
    log.is_connected = False
    assert publication.offer_block(block) is OfferResult.NOT_CONNECTED
    rig.conductor.close_resource(publication.registration_id)
    assert publication.offer_block(block) is OfferResult.CLOSED


@pytest.mark.anyio
async def test_revoking_closes_and_says_so_to_the_driver(bench: Bench) -> None:
    publication, _ = add(bench)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publication.revoke)
        removal = await bench.answer_removal(commands.RemovePublication)
    assert (removal.registration_id, removal.flags) == (publication.registration_id, REVOKE)
    assert publication.is_closed
    await publication.revoke()
    assert bench.driver.receive() == []


@pytest.mark.anyio
@pytest.mark.parametrize("is_to_revoke", [False, True])
async def test_closing_revokes_where_it_is_set(bench: Bench, is_to_revoke: bool) -> None:
    publication, _ = add(bench)
    publication.revoke_on_close = is_to_revoke
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publication.aclose)
        removal = await bench.answer_removal(commands.RemovePublication)
    assert removal.flags == (REVOKE if is_to_revoke else 0)


@pytest.mark.anyio
async def test_closing_the_client_revokes_what_is_to_be_revoked(client: aeron_async.Client, bench: Bench) -> None:
    publication, _ = add(bench)
    other, _ = add(bench)
    publication.revoke_on_close = True
    await client.aclose()
    removal, close = bench.driver.receive()
    assert isinstance(removal, commands.RemovePublication)
    assert (removal.registration_id, removal.flags) == (publication.registration_id, REVOKE)
    assert isinstance(close, commands.ClientClose)
    assert other.is_closed


def test_shared_publications_have_nothing_of_it() -> None:
    for name in ("append_padding", "offer_block", "revoke", "revoke_on_close"):
        assert hasattr(ExclusivePublication, name)
        assert not hasattr(Publication, name)

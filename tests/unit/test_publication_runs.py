"""Many messages in one call: lists, records of a buffer, one message again and again; in one attempt or several."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from aeron_async.errors import (
    BackPressuredError,
    DriverShutdownError,
    MaxPositionExceededError,
    MessageTooLongError,
    NotConnectedError,
    PublicationClosedError,
)
from aeron_async.protocol.frames import TERM_MIN_LENGTH
from aeron_async.publication import OfferResult, Publication
from tests.unit.rig import Bench, PublicationStream, Rig, make_driver, turns_of_another_task, until

MAX_POSITION = TERM_MIN_LENGTH << 31

POINT = np.dtype([("id", "<i4"), ("price", "<f8"), ("name", "S3")])


# --- records of a buffer ----------------------------------------------------------------------------------------------

ARRAYS: dict[str, tuple[Any, int | None, list[bytes]]] = {
    "numpy": (np.array([1, 2, 3], dtype="<i2"), None, [b"\1\0", b"\2\0", b"\3\0"]),
    "numpy of structures": (
        np.array([(1, 0.0, b"ab"), (2, 0.0, b"cde")], dtype=POINT),
        None,
        [b"\1\0\0\0" + bytes(8) + b"ab\0", b"\2\0\0\0" + bytes(8) + b"cde"],
    ),
    "numpy of strings": (np.array([b"abc", b"d"]), None, [b"abc", b"d\0\0"]),
    "rows of numpy": (np.arange(6, dtype=np.uint8).reshape(3, 2), None, [b"\0\1", b"\2\3", b"\4\5"]),
    "items of the rows of numpy": (np.arange(4, dtype="<i2").reshape(2, 2), 2, [b"\0\0", b"\1\0", b"\2\0", b"\3\0"]),
    "planes of numpy": (np.arange(8, dtype=np.uint8).reshape(2, 2, 2), None, [b"\0\1\2\3", b"\4\5\6\7"]),
    "empty rows": (np.zeros((3, 0), dtype=np.int32), None, [b"", b"", b""]),
    "one value": (np.array(7, dtype="<i4"), None, [b"\7\0\0\0"]),
    "a dtype that buffers cannot tell": (
        np.array([1, 2], dtype="datetime64[s]"),
        8,
        [b"\1" + bytes(7), b"\2" + bytes(7)],
    ),
    "array": (array("i", [1, 2]), None, [b"\1\0\0\0", b"\2\0\0\0"]),
    "bytes": (b"abcdef", 2, [b"ab", b"cd", b"ef"]),
    "bytearray": (bytearray(b"abc"), 1, [b"a", b"b", b"c"]),
    "memoryview": (memoryview(b"..abcdef..")[2:-2], 3, [b"abc", b"def"]),
    "rows of a memoryview": (memoryview(b"abcdef").cast("B", (3, 2)), None, [b"ab", b"cd", b"ef"]),
    "nothing": (b"", 4, []),
    "nothing of numpy": (np.array([], dtype=np.int64), None, []),
    "no rows": (np.zeros((0, 4), dtype=np.int32), None, []),
}


@pytest.mark.parametrize(("records", "itemsize", "messages"), ARRAYS.values(), ids=ARRAYS)
def test_each_record_of_a_buffer_is_a_message(
    stream: PublicationStream, records: Any, itemsize: int | None, messages: list[bytes]
) -> None:
    publication, log, _ = stream
    assert publication.offer_array(records, itemsize=itemsize) == len(messages)
    assert log.messages() == messages


@pytest.mark.parametrize(
    "records", [b"abc", bytearray(3), memoryview(b"abc"), array("B", b"abc"), np.zeros(3, np.int8)]
)
def test_single_bytes_need_an_itemsize(stream: PublicationStream, records: Any) -> None:
    with pytest.raises(ValueError, match="itemsize="):
        stream.publication.offer_array(records)
    assert stream.publication.offer_array(records, itemsize=3) == 1


@pytest.mark.parametrize("itemsize", [4, 0, -1, 1 << 40])
def test_an_itemsize_that_does_not_divide_the_buffer_is_refused(stream: PublicationStream, itemsize: int) -> None:
    with pytest.raises(ValueError, match=f"itemsize={itemsize}"):
        stream.publication.offer_array(bytes(6), itemsize=itemsize)
    assert stream.publication.position == 0


@pytest.mark.parametrize("records", ["text", None, 5, [1, 2]], ids=repr)
def test_what_has_no_buffer_is_a_type_error(stream: PublicationStream, records: Any) -> None:
    with pytest.raises(TypeError):
        stream.publication.offer_array(records, itemsize=1)
    with pytest.raises(TypeError):
        stream.publication.offer_repeated(records, 2)


@pytest.mark.parametrize(
    "records",
    [np.zeros((3, 4)).T, np.zeros(10)[::2], memoryview(b"123456")[::2], np.array([1], dtype="datetime64[s]")],
    ids=["transposed", "strided", "strided memoryview", "datetime64"],
)
def test_a_buffer_that_cannot_be_read_in_place_is_a_buffer_error(stream: PublicationStream, records: Any) -> None:
    with pytest.raises(BufferError):
        stream.publication.offer_array(records)
    assert stream.publication.position == 0


# --- one message again and again --------------------------------------------------------------------------------------


def test_a_message_is_repeated(stream: PublicationStream) -> None:
    publication, log, _ = stream
    assert publication.offer_repeated(b"ab", 3) == 3
    assert publication.offer_repeated(np.array([1], dtype="<i2"), 1) == 1
    assert publication.offer_repeated(b"", 2) == 2
    assert publication.offer_repeated(b"never", 0) == 0
    assert log.messages() == [b"ab", b"ab", b"ab", b"\1\0", b"", b""]
    with pytest.raises(ValueError, match="count=-1"):
        publication.offer_repeated(b"ab", -1)


# --- what all have in common ------------------------------------------------------------------------------------------

Offer = Callable[[Publication, int, int], int]
"""Offers `count` messages of `length` zeros."""

OFFERS: dict[str, Offer] = {
    "many": lambda publication, count, length: publication.offer_many([bytes(length)] * count),
    "array": lambda publication, count, length: publication.offer_array(bytes(length * count), itemsize=length),
    "repeated": lambda publication, count, length: publication.offer_repeated(bytes(length), count),
}


@pytest.fixture(params=OFFERS)
def offer(request: pytest.FixtureRequest) -> Offer:
    return OFFERS[request.param]


def test_an_offer_of_many_stops_where_back_pressure_sets_in(
    rig: Rig, add: Callable[..., PublicationStream], offer: Offer
) -> None:
    publication, log, limit = add(rig, limit=3 * 64)
    assert offer(publication, 5, 32) == 3
    assert offer(publication, 5, 32) is OfferResult.BACK_PRESSURED
    log.is_connected = False
    assert offer(publication, 5, 32) is OfferResult.NOT_CONNECTED
    limit.value = 1 << 20
    rig.conductor.close_resource(publication.registration_id)
    assert offer(publication, 5, 32) is OfferResult.CLOSED
    assert log.messages() == [bytes(32)] * 3


def test_an_offer_of_many_goes_through_rotations(rig: Rig, add: Callable[..., PublicationStream], offer: Offer) -> None:
    publication, log, _ = add(rig)
    assert offer(publication, 100, 1200) == 100
    assert log.messages() == [bytes(1200)] * 100


def test_an_offer_of_messages_that_are_too_long_appends_nothing(stream: PublicationStream, offer: Offer) -> None:
    longest = stream.publication.max_message_length
    with pytest.raises(MessageTooLongError, match=str(longest + 1)):
        offer(stream.publication, 2, longest + 1)
    assert stream.publication.position == 0


@hypothesis.given(
    lengths=st.lists(st.integers(0, 4000), min_size=1, max_size=40),
    kind=st.sampled_from(["many", "array", "repeated"]),
    exclusive=st.booleans(),
    start=st.integers(0, 2047),
    window=st.integers(0, 100_000),
    seed=st.randoms(use_true_random=False),
)
def test_offers_of_many_do_what_offers_of_one_do(
    tmp_path_factory: pytest.TempPathFactory,
    lengths: list[int],
    kind: str,
    exclusive: bool,
    start: int,
    window: int,
    seed: Any,
) -> None:
    driver = make_driver(tmp_path_factory.mktemp("drivers") / "driver")
    try:
        rig = Rig(driver)
        add = rig.add_exclusive_publication if exclusive else rig.add_publication
        begin = start * 32
        one, many = (add(driver.create_log(position=begin), limit=begin + window) for _ in range(2))
        if kind != "many":
            lengths = [max(1, lengths[0])] * len(lengths)
        messages = [seed.randbytes(length) for length in lengths]
        if kind == "repeated":
            messages = [messages[0]] * len(messages)

        appended = 0
        for message in messages:
            while (result := one.publication.offer(message)) == OfferResult.ADMIN_ACTION:
                pass
            if result < 0:
                break
            appended += 1

        match kind:
            case "many":
                outcome = many.publication.offer_many(messages)
            case "array":
                outcome = many.publication.offer_array(b"".join(messages), itemsize=lengths[0])
            case _:
                outcome = many.publication.offer_repeated(messages[0], len(messages))
        assert outcome == (appended or result)
        assert many.publication.position == one.publication.position
        assert list(many.log.frames(begin)) == list(one.log.frames(begin))
    finally:
        driver.close()


# --- publishing them --------------------------------------------------------------------------------------------------

Publish = Callable[..., Any]
"""Publishes the messages, which are all of one length."""


def as_list(publication: Publication, messages: list[bytes], **options: Any) -> Any:
    return publication.publish_many(messages, **options)


def as_array(publication: Publication, messages: list[bytes], **options: Any) -> Any:
    return publication.publish_array(b"".join(messages), itemsize=len(messages[0]), **options)


@pytest.fixture(params=[as_list, as_array])
def publish(request: pytest.FixtureRequest) -> Publish:
    return request.param


def numbered(count: int, length: int = 32) -> list[bytes]:
    return [number.to_bytes(4) + bytes(length - 4) for number in range(count)]


@pytest.mark.anyio
async def test_publishing_many_returns_the_position_after_the_last(
    bench: Bench, add: Callable[..., PublicationStream], publish: Publish
) -> None:
    publication, log, _ = add(bench)
    messages = numbered(1500)
    assert await publish(publication, messages) == publication.position == 1500 * 64
    assert log.messages() == messages


@pytest.mark.anyio
async def test_publishing_nothing_returns_the_position(bench: Bench) -> None:
    publication, _, _ = bench.add_publication()
    publication.offer(b"something")
    assert await publication.publish_many([]) == 64
    assert await publication.publish_array(np.array([], dtype=np.int32)) == 64


@pytest.mark.anyio
async def test_publish_many_takes_any_iterable_of_any_buffers(bench: Bench) -> None:
    publication, log, _ = bench.add_publication()

    def messages() -> Iterator[Any]:
        yield b"bytes"
        yield bytearray(b"bytearray")
        yield np.array([1], dtype="<i2")

    await publication.publish_many(messages())
    assert log.messages() == [b"bytes", b"bytearray", b"\1\0"]


@pytest.mark.anyio
async def test_publish_array_takes_what_offer_array_takes(bench: Bench) -> None:
    for records, itemsize, messages in ARRAYS.values():
        stream = bench.add_publication()
        await stream.publication.publish_array(records, itemsize=itemsize)
        assert stream.log.messages() == messages
        bench.conductor.close_resource(stream.publication.registration_id)
        bench.driver.receive()


@pytest.mark.anyio
async def test_publishing_many_goes_on_as_the_window_moves(
    bench: Bench, add: Callable[..., PublicationStream], publish: Publish
) -> None:
    publication, log, limit = add(bench, limit=0)
    messages = numbered(20)
    positions = []

    async def run() -> None:
        positions.append(await publish(publication, messages, timeout=None))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            for appended in range(1, 21):
                assert positions == []
                limit.value = appended * 64
                await until(lambda appended=appended: publication.position == appended * 64)  # type: ignore[misc]
    assert positions == [20 * 64]
    assert log.messages() == messages


@pytest.mark.anyio
async def test_what_is_published_while_waiting_is_what_was_given(bench: Bench) -> None:
    publication, log, limit = bench.add_publication(limit=0)
    message = bytearray(b"before")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publication.publish_many, [message])
        await anyio.wait_all_tasks_blocked()
        message[:] = b"after!"
        limit.value = 1 << 20
    assert log.messages() == [b"before"]


@pytest.mark.anyio
async def test_publishing_many_that_runs_out_of_time_tells_how_many_are_appended(
    bench: Bench, publish: Publish
) -> None:
    publication, log, limit = bench.add_publication(limit=3 * 64)
    messages = numbered(10)
    with pytest.raises(BackPressuredError) as raised:
        await publish(publication, messages, timeout=0.01)
    assert raised.value.appended == 3
    log.is_connected = False
    with pytest.raises(NotConnectedError) as not_connected:
        await publish(publication, messages[3:], timeout=0)
    assert not_connected.value.appended == 0
    limit.value = 1 << 20
    await publish(publication, messages[3:], timeout=0)
    assert log.messages() == messages


@pytest.mark.anyio
async def test_publishing_many_that_is_stopped_tells_how_many_are_appended(bench: Bench, publish: Publish) -> None:
    publication, _, _ = bench.add_publication(bench.driver.create_log(position=MAX_POSITION - 128))
    with pytest.raises(MaxPositionExceededError) as raised:
        await publish(publication, numbered(10))
    assert raised.value.appended == 2

    publication, log, _ = bench.add_publication(limit=64)
    errors: list[Exception] = []

    async def run() -> None:
        try:
            await publish(publication, numbered(10), timeout=None)
        except DriverShutdownError as error:
            errors.append(error)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await until(lambda: len(log.messages()) == 1)
            bench.conductor.driver_exited()
    (error,) = errors
    assert isinstance(error, DriverShutdownError)
    assert error.appended == 1
    with pytest.raises(DriverShutdownError):
        await publish(publication, numbered(1))


@pytest.mark.anyio
async def test_a_message_that_cannot_be_published_ends_publish_many_and_says_where(bench: Bench) -> None:
    publication, log, _ = bench.add_publication(bench.driver.create_log(term_length=1 << 20))
    too_long = bytes(publication.max_message_length + 1)
    good = numbered(1024)
    with pytest.raises(MessageTooLongError) as raised:
        await publication.publish_many([*good, b"not reached", too_long])
    assert raised.value.appended == 1024
    assert log.messages() == good
    with pytest.raises(TypeError) as wrong:
        await publication.publish_many([*good, "text"])  # type: ignore[list-item]
    assert vars(wrong.value)["appended"] == 1024


@pytest.mark.anyio
async def test_publishing_many_on_a_closed_publication_raises(bench: Bench, publish: Publish) -> None:
    publication, _, _ = bench.add_publication()
    bench.conductor.close_resource(publication.registration_id)
    with pytest.raises(PublicationClosedError) as raised:
        await publish(publication, numbered(1))
    assert raised.value.appended == 0


@pytest.mark.anyio
async def test_cancelling_while_it_waits_appends_no_more(bench: Bench, publish: Publish) -> None:
    publication, log, limit = bench.add_publication(limit=64)
    with anyio.move_on_after(0.02):
        await publish(publication, numbered(10), timeout=None)
    limit.value = 1 << 20
    await anyio.sleep(0.01)
    assert log.messages() == numbered(1)


@pytest.mark.anyio
async def test_publishing_many_lets_other_tasks_run(bench: Bench, publish: Publish) -> None:
    log = bench.driver.create_log(term_length=1 << 20)
    publication, _, _ = bench.add_publication(log)
    async with turns_of_another_task() as turns:
        await publish(publication, numbered(10_000))
        assert turns() >= 5

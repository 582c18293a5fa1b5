"""Counters: one's own, and reading all of the driver's."""

from __future__ import annotations

import anyio
import pytest

from aeron_async.counters import CounterInfo, CountersReader
from aeron_async.errors import CloseReason, CounterClosedError, DriverTimeoutError, ForkedClientError
from aeron_async.protocol import commands
from tests.fakes import MAX_INT64, FakeDriver
from tests.unit.rig import Bench, Rig

# --- a counter of one's own -------------------------------------------------------------------------------------------


def test_a_counter_is_read_and_set(rig: Rig) -> None:
    counter, fake = rig.add_counter(value=5)
    assert counter.value == 5
    counter.value = -7
    assert fake.value == -7
    fake.value = 9
    assert counter.value == 9


@pytest.mark.parametrize("value", [(1 << 63) - 1, -(1 << 63)])
def test_a_value_has_64_bits(rig: Rig, value: int) -> None:
    counter, fake = rig.add_counter()
    counter.value = value
    assert counter.value == fake.value == value
    with pytest.raises(OverflowError):
        counter.value = value * 2 + (value > 0)
    assert fake.value == value


def test_increments_return_the_value_after_them(rig: Rig) -> None:
    counter, fake = rig.add_counter(value=10)
    assert counter.increment() == 11
    assert counter.increment(5) == 16
    assert counter.increment(-20) == -4
    assert counter.increment(0) == -4
    assert fake.value == -4


def test_get_and_set_returns_the_value_before(rig: Rig) -> None:
    counter, fake = rig.add_counter(value=10)
    assert counter.get_and_set(3) == 10
    assert fake.value == 3


def test_compare_and_set_says_whether_it_did(rig: Rig) -> None:
    counter, fake = rig.add_counter(value=10)
    assert not counter.compare_and_set(9, 1)
    assert fake.value == 10
    assert counter.compare_and_set(10, 1)
    assert fake.value == 1


def test_a_closed_counter_keeps_its_last_value_and_refuses_to_change(rig: Rig) -> None:
    counter, fake = rig.add_counter(value=10)
    rig.conductor.close_resource(counter.registration_id)
    fake.value = 99
    assert counter.is_closed
    assert counter.value == 10
    with pytest.raises(CounterClosedError):
        counter.value = 1
    for change in (counter.increment, lambda: counter.get_and_set(1), lambda: counter.compare_and_set(10, 1)):
        with pytest.raises(CounterClosedError):
            change()
    assert fake.value == 99
    assert "is_closed=True" in repr(counter)


def test_a_counter_of_a_forked_child_says_so(rig: Rig) -> None:
    counter, _ = rig.add_counter()
    rig.conductor.close_handles()
    rig.surroundings.process_error = ForkedClientError("in a child")
    with pytest.raises(ForkedClientError):
        counter.increment()


@pytest.mark.anyio
async def test_closing_gives_the_counter_back_and_does_nothing_the_second_time(bench: Bench) -> None:
    counter, _ = bench.add_counter()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(counter.aclose)
        command = await bench.answer_removal(commands.RemoveCounter)
    assert command.registration_id == counter.registration_id
    assert counter.is_closed
    await counter.aclose()
    assert bench.driver.receive() == []


@pytest.mark.anyio
async def test_leaving_the_block_closes_the_counter(bench: Bench) -> None:
    counter, _ = bench.add_counter()

    async def use() -> None:
        async with counter as entered:
            assert entered is counter

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(use)
        await bench.answer_removal(commands.RemoveCounter)
    assert counter.is_closed


@pytest.mark.anyio
async def test_a_counter_that_its_client_closed_says_why(bench: Bench) -> None:
    counter, _ = bench.add_counter()
    bench.conductor.close(CloseReason.DRIVER_TIMEOUT, "the driver is silent")
    with pytest.raises(DriverTimeoutError, match="the driver is silent"):
        counter.increment()


# --- all counters of the driver ---------------------------------------------------------------------------------------


@pytest.fixture
def counters(rig: Rig) -> CountersReader:
    return CountersReader(rig.cnc)


def test_a_driver_without_counters_has_none(counters: CountersReader) -> None:
    assert list(counters) == []
    assert counters.find() == []
    assert counters.max_counter_id == 31


def test_a_counter_is_read_whole(driver: FakeDriver, counters: CountersReader) -> None:
    fake = driver.allocate_counter(
        1001, key=b"\1\2", label="größe", registration_id=5, owner_id=6, reference_id=7, value=-8
    )
    assert list(counters) == [
        CounterInfo(
            id=fake.id,
            type_id=1001,
            key=b"\1\2".ljust(112, b"\0"),
            label="größe",
            value=-8,
            registration_id=5,
            owner_id=6,
            reference_id=7,
            state=1,
        )
    ]
    assert counters[fake.id] == -8


def test_a_label_may_fill_its_room(driver: FakeDriver, counters: CountersReader) -> None:
    driver.allocate_counter(1001, key=b"k" * 112, label="l" * 380)
    (info,) = counters
    assert (info.key, info.label) == (b"k" * 112, "l" * 380)


def test_counters_that_were_given_back_are_passed_over(driver: FakeDriver, counters: CountersReader) -> None:
    first, second, third = (driver.allocate_counter(1001, label=label) for label in ("one", "two", "three"))
    second.free()
    assert [info.label for info in counters] == ["one", "three"]
    assert counters.snapshot(second.id).state == -1
    second.allocate(1002, b"", "two again", 0, 0, 0, 0)
    assert [info.id for info in counters] == [first.id, second.id, third.id]


def test_counters_are_found_by_all_that_is_given(driver: FakeDriver, counters: CountersReader) -> None:
    driver.allocate_counter(1001, label="requests: in", registration_id=1)
    driver.allocate_counter(1001, label="requests: out", registration_id=2)
    driver.allocate_counter(1002, label="replies: out", registration_id=2)

    def found(**criteria: object) -> list[int]:
        return [info.id for info in counters.find(**criteria)]  # type: ignore[arg-type]

    assert found() == [0, 1, 2]
    assert found(type_id=1001) == [0, 1]
    assert found(registration_id=2) == [1, 2]
    assert found(label="out") == [1, 2]
    assert found(label="requests", registration_id=2) == [1]
    assert found(type_id=1002, label="requests") == []


@pytest.mark.parametrize("counter_id", [-1, 32, 1 << 40])
def test_an_id_outside_the_counters_file_is_an_index_error(counters: CountersReader, counter_id: int) -> None:
    with pytest.raises(IndexError, match=r"outside 0\.\.31"):
        counters[counter_id]
    with pytest.raises(IndexError, match=r"outside 0\.\.31"):
        counters.snapshot(counter_id)


def test_an_unused_counter_has_a_value_of_nothing(counters: CountersReader) -> None:
    assert counters[31] == 0
    assert counters.snapshot(31).state == 0


@pytest.mark.parametrize("label_length", [-1, 381, 2**31 - 1])
def test_a_label_length_that_cannot_be_true_reads_no_further_than_the_label(
    driver: FakeDriver, counters: CountersReader, label_length: int
) -> None:
    fake = driver.allocate_counter(1001, label="label")
    driver.allocate_counter(1001, label="the next")
    fake.put_label_length(label_length)
    (first, second) = counters
    assert len(first.label) <= 380
    assert "the next" not in first.label
    assert second.label == "the next"


def test_a_label_that_is_not_text_is_read_as_far_as_it_is(driver: FakeDriver, counters: CountersReader) -> None:
    fake = driver.allocate_counter(1001, label="label")
    fake.put_label_length(6)
    fake.put_label(b"ok\xff\xfeok")
    (info,) = counters
    assert info.label == "ok\ufffd\ufffdok"


def test_a_value_is_read_up_to_the_largest(driver: FakeDriver, counters: CountersReader) -> None:
    fake = driver.allocate_counter(1001, value=MAX_INT64)
    assert counters[fake.id] == MAX_INT64

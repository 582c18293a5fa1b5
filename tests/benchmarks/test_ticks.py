"""The expected sums, the sums that the peers in Python make, and what happens when they differ."""

from __future__ import annotations

import pytest

from benchmarks.harness.peer import PeerError
from benchmarks.harness.ticks import Sums, check_sums, expected_sums, tick
from benchmarks.peers.python import columns, messages
from benchmarks.peers.python.columns import Records
from benchmarks.peers.python.market import ColumnArrivals, MessageArrivals
from benchmarks.peers.python.messages import Messages, Totals

COUNTS = (1, 63, 64, 65, 999, 1000, 1001, 4097, 64_001)


def added_up(count: int) -> Sums:
    """The fields of every tick, one by one."""
    ticks = [tick(number) for number in range(count)]
    instruments, bids, asks, sequences = zip(*ticks, strict=True)
    return Sums(sum(instruments), sum(bids), sum(asks), sum(sequences))


@pytest.mark.parametrize("count", COUNTS)
def test_the_expected_sums_are_those_of_the_ticks(count: int) -> None:
    assert expected_sums(count) == added_up(count)


@pytest.mark.parametrize("count", [1, 1000, 4096])
def test_every_way_to_decode_gives_the_expected_sums(count: int) -> None:
    payloads = [bytes(message) for message in Messages(32, is_stamped=True).take(0, count)]
    records = Records(32, is_stamped=True).take(0, count)
    handler, take = messages.decoding_handler()
    for payload in payloads:
        handler(payload, None)

    expected = Totals(count, expected_sums(count))
    assert messages.total_of(payloads) == expected
    assert columns.total_of(records) == expected
    assert take() == expected
    assert take() == Totals()


def test_sums_of_parts_are_the_sum_of_all() -> None:
    pool = Records(256, is_stamped=True)
    totals = Totals()
    for first in range(0, 10_000, 1000):
        totals += columns.total_of(pool.take(first, 1000))
    assert totals == Totals(10_000, expected_sums(10_000))


def test_right_sums_pass() -> None:
    check_sums({"messages": 5000, "sum": expected_sums(5000).to_json()})


@pytest.mark.parametrize(
    "result",
    [
        {"messages": 0, "sum": Sums().to_json()},
        {"messages": 5000, "sum": expected_sums(5001).to_json()},
        {"messages": 5000, "sum": {**expected_sums(5000).to_json(), "bid": 1.25}},
    ],
)
def test_wrong_sums_are_an_error(result: dict[str, object]) -> None:
    with pytest.raises(PeerError):
        check_sums(result)


def test_transport_alone_is_held_to_its_count_only() -> None:
    check_sums({"messages": 5000, "sum": Sums().to_json()}, is_stamped=False)
    with pytest.raises(PeerError, match="no message"):
        check_sums({"messages": 0, "sum": Sums().to_json()}, is_stamped=False)


def market_records(sequences: list[int]) -> columns.Array:
    """Ticks of the suite `market` with these sequence numbers."""
    records = Records(64, is_stamped=True).take(0, len(sequences)).copy()
    records["sequence"] = sequences
    records["sent"] = 0
    return records


@pytest.mark.parametrize(
    ("sequences", "gaps"),
    [([0, 1, 2, 3], 0), ([1, 2, 3], 1), ([0, 1, 3, 4], 1), ([0, 2, 1], 2), ([0, 0, 1], 1)],
)
def test_a_jump_of_the_sequence_is_a_gap_whichever_way_it_is_read(sequences: list[int], gaps: int) -> None:
    records = market_records(sequences)
    by_column, one_by_one, by_message = ColumnArrivals(), ColumnArrivals(), MessageArrivals()
    by_column.take(records)
    for number in range(len(records)):
        one_by_one.take(records[number : number + 1])
        by_message.take(records[number].tobytes())
    assert by_column.state() == one_by_one.state() == by_message.state()
    assert by_column.state()[1] == gaps


def test_every_64th_message_is_looked_at_for_its_delay() -> None:
    records = market_records(list(range(200)))
    by_column, by_message = ColumnArrivals(), MessageArrivals()
    for first in range(0, 200, 30):
        by_column.take(records[first : first + 30])
    for record in records:
        by_message.take(record.tobytes())
    assert len(by_column.delays) == len(by_message.delays) == 4

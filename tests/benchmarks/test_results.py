"""Statistics, rows, targets, and how the cells of a case are measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from benchmarks.harness.charts import write_charts
from benchmarks.harness.context import Cell, Context, Settings
from benchmarks.harness.peer import PeerError
from benchmarks.harness.report import readable, readable_spread
from benchmarks.harness.results import Column, Row, Table, Target, select
from benchmarks.harness.statistics import Spread, paired_ratios, percentiles, spread_of

SPEED = Table("speed", (Column("rate", "msg/s", more_is_better=True), Column("delay", "ns")))
DELAY = Table("delay", (Column("p50", "ns"),))


def row(client: str, *rates: float, table: Table = SPEED, case: str = "32 B", way: str = "") -> Row:
    return Row(table, case, client, way, {table.main.name: rates})


def test_the_spread_is_median_least_and_greatest() -> None:
    assert spread_of([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
    assert spread_of([4.0, 1.0, 2.0, 3.0]) == Spread(2.5, 1.0, 4.0)


def test_ratios_are_taken_repeat_by_repeat() -> None:
    assert paired_ratios([2.0, 9.0], [1.0, 3.0]) == (2.0, 3.0)
    with pytest.raises(ValueError, match="zip"):
        paired_ratios([1.0], [1.0, 2.0])


def test_a_percentile_is_the_smallest_sample_that_covers_its_share() -> None:
    found = percentiles(list(range(1000, 0, -1)))
    assert found == {"p50": 500, "p90": 900, "p99": 990, "p999": 999, "max": 1000}


def test_all_percentiles_of_one_sample_are_that_sample() -> None:
    assert set(percentiles([7]).values()) == {7}


def test_of_several_ways_the_best_is_selected() -> None:
    rows = [row("ours", 5.0, way="a"), row("ours", 9.0, way="b"), row("ours", 7.0, way="c"), row("theirs", 99.0)]
    best = select(rows, SPEED, "32 B", "ours")
    assert best is not None
    assert best.way == "b"
    assert select(rows, SPEED, "32 B", "ours", "a", "c") is rows[2]
    assert select(rows, SPEED, "256 B", "ours") is None
    delays = [row("ours", 5.0, table=DELAY, way="a"), row("ours", 9.0, table=DELAY, way="b")]
    assert select(delays, DELAY, "32 B", "ours") is delays[0]


@pytest.mark.parametrize(
    ("bounds", "is_met"),
    [({"at_least": 2.0}, True), ({"at_least": 2.1}, False), ({"at_most": 2.0}, True), ({"at_most": 1.9}, False)],
)
def test_a_target_is_decided_by_the_median_ratio(bounds: dict[str, float], is_met: bool) -> None:
    target = Target.ratio(
        "T", "ours against theirs", row("ours", 2.0, 6.0, 2.0), row("theirs", 1.0, 2.0, 2.0), **bounds
    )
    assert target.values == (2.0, 3.0, 1.0)
    assert target.is_met is is_met
    assert target.to_json()["met"] is is_met


def test_a_target_without_its_rows_is_neither_met_nor_missed() -> None:
    target = Target.ratio("T", "ours against theirs", None, row("theirs", 1.0), at_least=1.0)
    assert target.is_met is None
    assert target.to_json()["reason"]


def test_a_target_without_a_bound_is_reported() -> None:
    target = Target.ratio("T", "ours against theirs", row("ours", 2.0), row("theirs", 1.0))
    assert (target.spread, target.is_met) == (Spread(2.0, 2.0, 2.0), None)


def test_figures_are_readable() -> None:
    assert [readable(value, "ns") for value in (54.0, 645.0, 2_100.0, 3.4e6, 2e9)] == [
        "54 ns",
        "645 ns",
        "2.1 µs",
        "3.4 ms",
        "2 s",
    ]
    assert readable(39_900_000, "msg/s") == "39.9 M/s"
    assert readable_spread(Spread(1.2e6, 9e5, 1.5e6), "msg/s") == "1.2 M/s [dim](0.9 … 1.5)[/dim]"


def counting(log: list[str], name: str) -> Callable[[], Mapping[str, float]]:
    def measure() -> Mapping[str, float]:
        log.append(name)
        return {"rate": float(len(log)), "delay": 1.0}

    return measure


def context() -> Context:
    return Context(Settings(repeats=3), [], None, Path())


def test_clients_are_interleaved_within_each_repeat() -> None:
    log: list[str] = []
    rows = context().measure(
        SPEED, "32 B", [Cell("one", run=counting(log, "one")), Cell("two", run=counting(log, "two"))]
    )
    assert log == ["one", "two"] * 3
    assert rows[1].values == {"rate": (2.0, 4.0, 6.0), "delay": (1.0, 1.0, 1.0)}


def test_a_client_that_cannot_run_has_a_row_that_says_why() -> None:
    run = context()
    rows = run.measure(SPEED, "32 B", [Cell("java", reason="there is no JDK")])
    assert rows == [Row(SPEED, "32 B", "java", reason="there is no JDK")]
    assert run.failures == []


def test_a_client_that_fails_is_a_failure_of_the_run_and_stops_nobody_else() -> None:
    def fail() -> Mapping[str, float]:
        raise PeerError("wrong sums")

    run, log = context(), []
    failed, other = run.measure(SPEED, "32 B", [Cell("one", run=fail), Cell("two", run=counting(log, "two"))])
    assert failed.values == {}
    assert "wrong sums" in failed.reason
    assert len(other.main) == 3
    assert len(run.failures) == 1


def test_charts_of_the_same_rows_are_the_same(tmp_path: Path) -> None:
    rows = [row("rust", 40.0, 41.0, 39.0), row("aeron_async", 30.0, 29.0, 31.0, way="block"), row("java")]
    first = {path.name: path.read_bytes() for path in write_charts(tmp_path / "1", "single", rows)}
    second = {path.name: path.read_bytes() for path in write_charts(tmp_path / "2", "single", rows)}
    assert list(first) == ["single-speed.svg"]
    assert first == second
    assert b"aeron_async: block" in first["single-speed.svg"]


def test_a_row_in_json_has_every_repeat_and_its_spread() -> None:
    text = json.dumps(row("rust", 40.0, 41.0, 39.0).to_json())
    assert json.loads(text)["figures"]["rate"] == {
        "unit": "msg/s",
        "median": 40.0,
        "min": 39.0,
        "max": 41.0,
        "repeats": [40.0, 41.0, 39.0],
    }

"""The suites with event loops run for a moment: every request is answered, every message arrives once and in order."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import pytest

from benchmarks.harness.clients import OURS, PURE, PYAERON, Client, all_clients
from benchmarks.harness.context import Context, Settings
from benchmarks.harness.driver import running_driver
from benchmarks.harness.peer import PeerError
from benchmarks.harness.ticks import expected_sums
from benchmarks.peers.python.aio.tasks import HEARTBEAT, background, beat
from benchmarks.suites import _cpu, memory
from benchmarks.suites import asyncio as asyncio_suite
from benchmarks.suites._asyncio_pairs import Pair
from benchmarks.suites._asyncio_variants import PYZMQ, UNIX, Variant, calling
from benchmarks.suites._cpu import cpu_seconds, driver_pid

# The native peers, which are among all clients, may have to be built first.
pytestmark = pytest.mark.timeout(900)

MOMENT = Settings(seconds=0.05, repeats=1, sizes=(32,), quick=True)


@pytest.fixture(scope="module")
def everyone() -> list[Client]:
    return all_clients()


@pytest.fixture(scope="module")
def aeron_dir() -> Iterator[Path]:
    with running_driver() as driver:
        yield driver.aeron_dir


@pytest.fixture
def context(everyone: list[Client], aeron_dir: Path) -> Context:
    return Context(MOMENT, everyone, (OURS, PYAERON, PYZMQ, UNIX), aeron_dir)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here depends on what processes do at rest."""
    monkeypatch.setattr(_cpu, "SETTLE", 0.05)


def test_every_client_answers_every_request_and_delivers_every_message(context: Context) -> None:
    rows = asyncio_suite.run(context)
    assert context.failures == []
    available = {OURS, UNIX, *(name for name, module in ((PYAERON, "pyaeron"), (PYZMQ, "zmq")) if find_spec(module))}
    assert {row.client for row in rows if row.main} == available
    assert all(row.main or row.reason for row in rows)
    for target in asyncio_suite.targets(rows):
        assert target.spread or target.reason


def test_every_idle_strategy_on_both_faces_answers_every_request(
    everyone: list[Client], aeron_dir: Path, tmp_path: Path
) -> None:
    context = Context(MOMENT, everyone, (OURS, PURE), aeron_dir)
    variants = [variant for variant in calling(context) if not variant.is_essential]
    assert {variant.client for variant in variants} == {OURS, PURE}
    for variant in variants:
        pair = Pair(variant, "asyncio", aeron_dir, tmp_path, context.stream_id())
        context.stream_id()
        assert pair.exchange(0.05, 32)["messages"] > 0


def test_messages_and_streams_are_counted_while_memory_is_measured(context: Context) -> None:
    rows = memory.run(context)
    assert context.failures == []
    assert {row.table for row in rows} == {memory.GROWTH, memory.KEPT, memory.STREAMS}
    assert all(row.main for row in rows)
    assert memory.targets(rows)


@dataclass
class Said:
    """A peer that has said what it was told to say."""

    figures: dict[str, Any]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def wait_ready(self) -> None: ...

    def go(self) -> None: ...

    def result(self) -> dict[str, Any]:
        return self.figures


@pytest.mark.parametrize(
    ("received", "complaint"),
    [
        ({"messages": 2, "sum": expected_sums(2).to_json()}, "2 of 3 messages arrived"),
        ({"messages": 3, "sum": expected_sums(4).to_json()}, "wrong sums over 3 messages"),
    ],
)
def test_a_stream_that_arrives_otherwise_than_it_was_sent_is_an_error(
    received: dict[str, Any], complaint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = {"receive": received, "send": {"messages": 3}}
    monkeypatch.setattr(Pair, "start", lambda pair, mode, **options: Said(said[mode]))
    pair = Pair(Variant(UNIX, "", "unix"), "asyncio", tmp_path, tmp_path, 1)
    with pytest.raises(PeerError, match=complaint):
        pair.flow(0.05, 32, "full")


async def _block(seconds: float) -> list[int]:
    delays: list[int] = []
    async with background(beat(delays)):
        await asyncio.sleep(0)
        time.sleep(seconds)  # noqa: ASYNC251 - that is the point
    return delays


def test_a_heartbeat_that_a_blocked_loop_never_lets_tick_is_late_all_the_same() -> None:
    delays = asyncio.run(_block(0.05))
    assert max(delays) >= 0.05e9 - HEARTBEAT * 1e9 - 1e6


def test_the_cpu_time_of_a_process_is_measured_from_outside(aeron_dir: Path) -> None:
    before, own = cpu_seconds(os.getpid()), time.process_time()
    while time.process_time() < own + 0.05:
        pass
    assert cpu_seconds(os.getpid()) - before >= 0.04
    assert cpu_seconds(driver_pid(aeron_dir)) > 0

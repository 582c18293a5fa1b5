"""The peers in Rust, C, C++ and Java send the same messages as everyone, receive all of them, and never linger."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import aeron_async
from benchmarks.harness.peer import Peer
from benchmarks.harness.pool import pool_digest
from benchmarks.harness.ticks import check_sums
from benchmarks.peers import build
from tests.support import LIMIT, running_driver

# The first test waits for the compilers.
pytestmark = pytest.mark.timeout(2 * build.TIMEOUT)

STREAMS = {"stream": 1001, "reply_stream": 1002}

built = cache(build.build)


@pytest.fixture
def anyio_backend() -> str:
    """Our end is the same on every event loop."""
    return "asyncio"


@pytest.fixture(params=["rust", "c", "cpp", "java"])
def command(request: pytest.FixtureRequest) -> list[str]:
    """What runs a peer, before the mode."""
    peer = built()[request.param]
    if peer.command is None:
        pytest.skip(peer.reason)
    return peer.command


@pytest.fixture
def aeron_dir() -> Iterator[Path]:
    """The directory of a driver whose logs have room for less than a batch."""
    with running_driver() as driver:
        yield driver.aeron_dir


def run(command: list[str], mode: str, aeron_dir: Path, **options: object) -> dict[str, Any]:
    """The figures of a peer that is told to go as soon as it is ready."""
    with Peer(command, mode, aeron_dir=aeron_dir, **options) as peer:
        peer.wait_ready()
        peer.go()
        return peer.result()


def ended(command: list[str], mode: str, *arguments: object, said: str = "") -> subprocess.CompletedProcess[str]:
    """A peer that has ended, after it was told something and its standard input was closed."""
    return subprocess.run(
        [*command, mode, *map(str, arguments)], input=said, capture_output=True, text=True, timeout=LIMIT, check=False
    )


@pytest.mark.parametrize("size", [28, 32, 256, 1024])
def test_every_peer_has_the_same_pool_of_messages(command: list[str], size: int) -> None:
    assert json.loads(ended(command, "pool", "--size", size).stdout) == {"sha256": pool_digest(size)}


@pytest.mark.parametrize("size", [32, 1024])
def test_throughput_receives_every_message_once(command: list[str], aeron_dir: Path, size: int) -> None:
    figures = run(command, "throughput", aeron_dir, messages=2500, size=size)

    assert figures["messages"] == 2500
    assert figures["seconds"] > 0
    check_sums(figures)


def test_throughput_for_a_time_receives_what_it_has_sent(command: list[str], aeron_dir: Path) -> None:
    figures = run(command, "throughput", aeron_dir, seconds=0.1, batch=7)

    assert figures["messages"] > 0
    check_sums(figures)


@pytest.mark.parametrize("mode", ["throughput", "latency"])
def test_without_ticks_messages_are_only_counted(command: list[str], aeron_dir: Path, mode: str) -> None:
    figures = run(command, mode, aeron_dir, messages=2500, tick="none")

    assert figures["messages"] == 2500
    assert figures["sum"] == {"instrument": 0, "bid": 0, "ask": 0, "sequence": 0}


def test_latency_times_every_round_trip(command: list[str], aeron_dir: Path) -> None:
    figures = run(command, "latency", aeron_dir, messages=500)

    assert figures["messages"] == 500
    assert 0 < figures["p50"] <= figures["p90"] <= figures["p99"] <= figures["p999"] <= figures["max"]
    assert figures["max"] <= figures["seconds"] * 1e9
    check_sums(figures)


def test_every_request_has_its_reply(command: list[str], aeron_dir: Path) -> None:
    with Peer(command, "rpc-server", aeron_dir=aeron_dir, **STREAMS) as server:
        server.wait_ready()
        server.go()
        figures = run(command, "rpc-client", aeron_dir, messages=500, **STREAMS)
        server.release()
        served = server.result()

    assert figures["messages"] == 500
    check_sums(figures)
    # The client has warmed up before.
    assert served["messages"] > 500


@pytest.mark.anyio
async def test_a_request_of_one_byte_ends_the_server(command: list[str], aeron_dir: Path) -> None:
    async with aeron_async.connect(aeron_dir) as client:
        requests = await client.add_publication("aeron:ipc", STREAMS["stream"])
        with Peer(command, "rpc-server", aeron_dir=aeron_dir, **STREAMS) as server:
            server.wait_ready()
            server.go()
            await requests.wait_connected(LIMIT)
            await requests.publish(b"\0")
            assert server.result() == {"messages": 0}


@pytest.mark.parametrize("rate", [0, 20_000])
def test_the_market_reaches_its_consumer_without_a_gap(command: list[str], aeron_dir: Path, rate: int) -> None:
    options = {"aeron_dir": aeron_dir, "stream": 1001, "seconds": 0.3, "size": 64}
    with Peer(command, "market-consumer", **options) as consumer:
        consumer.wait_ready()
        with Peer(command, "market-publisher", rate=rate, **options) as publisher:
            publisher.wait_ready()
            consumer.go()
            publisher.go()
            published, consumed = publisher.result(), consumer.result()

    assert consumed["messages"] == published["messages"]
    assert consumed["gaps"] == 0
    assert consumed["p50"] <= consumed["p99"] <= consumed["p999"]
    assert published["backpressured"] >= 0
    check_sums(consumed)
    if rate:
        assert published["messages"] <= rate * published["seconds"] + 1


def test_a_peer_that_is_not_told_to_go_ends_with_its_input(command: list[str], aeron_dir: Path) -> None:
    peer = ended(command, "throughput", "--aeron-dir", aeron_dir)

    assert peer.returncode != 0
    assert peer.stdout == "ready\n"
    assert "standard input" in peer.stderr


def test_a_server_ends_with_its_input(command: list[str], aeron_dir: Path) -> None:
    peer = ended(command, "rpc-server", "--aeron-dir", aeron_dir, said="go\n")

    assert peer.returncode == 0, peer.stderr
    assert peer.stdout.splitlines() == ["ready", '{"messages": 0}']


@pytest.mark.parametrize(
    "arguments",
    [["nothing"], ["pool", "--size", "27"], ["pool", "--colour", "red"], ["latency"]],
    ids=" ".join,
)
def test_a_wrong_command_line_is_an_error_that_says_why(command: list[str], arguments: list[str]) -> None:
    peer = ended(command, *arguments)

    assert peer.returncode != 0
    assert peer.stdout == ""
    assert peer.stderr.strip()

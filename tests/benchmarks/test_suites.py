"""Each suite runs for a moment: every count and sum is right. No time is asserted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import run
from benchmarks.harness.clients import OURS, PURE, PYAERON, RUST, Client, all_clients
from benchmarks.harness.context import Context, Settings
from benchmarks.harness.driver import running_driver
from benchmarks.harness.namespaces import NamespacesError, joined_namespaces
from benchmarks.harness.peer import Peer, PeerError
from benchmarks.suites import load_suites, targets_of

# The native peers may have to be built first.
pytestmark = pytest.mark.timeout(900)

MOMENT = Settings(seconds=0.05, repeats=1, sizes=(32,), workers=(2,), quick=True)


@pytest.fixture(scope="module")
def everyone() -> list[Client]:
    return all_clients()


@pytest.fixture(scope="module")
def aeron_dir() -> Iterator[Path]:
    with running_driver() as driver:
        yield driver.aeron_dir


@pytest.mark.parametrize(
    ("suite", "clients"),
    [
        ("single", (RUST, PYAERON, OURS)),
        ("workers", (RUST, OURS)),
        ("rpc", (RUST, PYAERON, OURS, PURE)),
        ("market", (RUST, PYAERON, OURS)),
        ("udp", (RUST, OURS)),
    ],
)
def test_f5_every_client_counts_and_adds_up_what_was_sent(
    suite: str, clients: tuple[str, ...], everyone: list[Client], aeron_dir: Path
) -> None:
    context = Context(MOMENT, everyone, clients, aeron_dir)
    rows = load_suites()[suite].run(context)
    assert context.failures == []
    runnable = {client.name for client in context.clients if not client.reason}
    assert runnable >= {OURS}
    assert {row.client for row in rows if row.main} == runnable
    # Where something is missing here, its rows say so.
    assert all(row.main or row.reason for row in rows)
    for target in targets_of(load_suites()[suite], rows):
        assert target.spread or target.reason


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2")
def test_namespaces_go_with_their_context() -> None:
    def there() -> str:
        return subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout

    with joined_namespaces() as ends:
        assert all(end.name in there() for end in ends)
    assert not any(end.name in there() for end in ends)


def test_a_user_who_cannot_make_namespaces_is_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NamespacesError, match="root"), joined_namespaces():
        pass


def test_a_peer_that_fails_is_an_error(everyone: list[Client], aeron_dir: Path) -> None:
    ours = next(client for client in everyone if client.name == OURS)
    with pytest.raises(PeerError, match="invalid choice"):
        ours.run("no such mode", aeron_dir=aeron_dir)
    with ours.start("throughput", aeron_dir=aeron_dir, stream=1, seconds=0.05) as peer:
        peer.wait_ready()
        peer.release()
        with pytest.raises(PeerError, match="throughput ended with status 1"):
            peer.result()


def test_a_peer_that_says_something_else_is_not_believed() -> None:
    with Peer(["echo"], "hello") as peer, pytest.raises(PeerError, match="hello"):
        peer.wait_ready()


def test_a_number_of_messages_is_carried_exactly(everyone: list[Client], aeron_dir: Path) -> None:
    ours = next(client for client in everyone if client.name == OURS)
    for way in ours.ways_of("throughput"):
        options = {"stream": 5, "messages": 2500, "batch": 1000}
        assert ours.run("throughput", way=way, aeron_dir=aeron_dir, **options)["messages"] == 2500


def test_the_program_writes_tables_json_and_charts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "PARTIAL", tmp_path)
    file = tmp_path / "all.json"
    arguments = ["--suite", "rpc", "--clients", OURS, "--time", "0.05", "--repeats", "1", "--workers", "1"]
    assert run.main([*arguments, "--json", str(file)]) == 0
    (result,) = json.loads(file.read_text())
    assert result["suite"] == "rpc"
    assert result["machine"]["cores"] >= 1
    assert {row["client"] for row in result["rows"]} == {OURS}
    assert json.loads((tmp_path / "rpc.json").read_text()) == result
    assert [path.name for path in tmp_path.glob("*.svg")] == ["rpc-request-and-reply.svg"]
    output = capsys.readouterr().out
    assert "rpc: request and reply" in output
    assert "T5" in output


def test_an_unknown_client_is_named() -> None:
    with pytest.raises(SystemExit, match="there is no client rusty"):
        run.main(["--clients", "rusty", "--suite", "rpc"])

"""The clients that are compared: how each one's peer program is run, or why it cannot be."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from benchmarks.harness.peer import Peer
from benchmarks.peers import build
from benchmarks.peers.python.ways import WAYS

OURS = "aeron_async"
PURE = "aeron_async pure"
"""The same without `_speedups`."""
RUST = "rust"
PYAERON = "pyaeron"


@dataclass(frozen=True)
class Client:
    """One of the clients."""

    name: str
    version: str
    command: tuple[str, ...] = ()
    """What comes before the mode."""
    ways: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Of each mode that has several, the values that the peer's option `--way` takes."""
    environment: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    """Why it cannot run here."""
    is_python: bool = False

    def ways_of(self, mode: str) -> Sequence[str]:
        """The ways that the peer can do `mode`: one without a name unless it has several."""
        return self.ways.get(mode, ("",))

    def start(self, mode: str, *, way: str = "", prefix: Sequence[str] = (), **options: object) -> Peer:
        """Starts the peer in a process of its own; `prefix` is a command that runs its arguments as a command."""
        chosen = {"way": way} if way else {}
        return Peer([*prefix, *self.command], mode, environment=self.environment, **options, **chosen)

    def run(self, mode: str, *, way: str = "", **options: object) -> dict[str, Any]:
        """One run of a mode that needs no other peer: its figures."""
        with self.start(mode, way=way, **options) as peer:
            peer.wait_ready()
            peer.go()
            return peer.result()


def all_clients() -> list[Client]:
    """Every client, in the order of the tables; builds what is not built yet."""
    return [*_native_clients(), _pyaeron(), *_ours()]


def _native_clients() -> list[Client]:
    return [
        Client(name, peer.version, tuple(peer.command or ()), reason="" if peer.command else peer.reason)
        for name, peer in build.build().items()
    ]


def _pyaeron() -> Client:
    try:
        version = metadata.version("pyaeron")
    except metadata.PackageNotFoundError:
        return Client(PYAERON, "", reason="pyaeron is not installed: it has no wheel for this Python", is_python=True)
    return Client(PYAERON, version, (sys.executable, "-m", "benchmarks.peers.python.pyaeron_peer"), is_python=True)


def _ours() -> list[Client]:
    command = (sys.executable, "-m", "benchmarks.peers.python.ours")
    version = metadata.version("aeron-async")
    return [
        Client(name, version, command, WAYS, {"AERON_ASYNC_PURE": pure}, is_python=True)
        for name, pure in ((OURS, ""), (PURE, "1"))
    ]

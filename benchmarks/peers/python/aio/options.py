"""What a peer of the asyncio suite is told."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """The arguments of a peer."""

    mode: str
    client: str
    loop: str
    """`asyncio` or `uvloop`."""
    idle: str
    """The idle strategy, of clients that have several."""
    driver: str
    """`external`, or `embedded` for a client that brings its own."""
    aeron_dir: Path
    """The driver's directory."""
    sockets: Path
    """The folder for the Unix sockets of clients that have no driver."""
    channel: str
    stream: int
    reply_stream: int
    streams: int
    """How many streams to hold or to visit."""
    size: int
    """Payload bytes."""
    seconds: float
    """The timed window."""
    gap: tuple[float, float]
    """Seconds between the messages of a sender that paces itself, at least and at most."""
    tick: str
    """What a receiver makes of each tick: `full` to decode it, `none` to count it."""

    def socket(self, number: int = 0) -> str:
        """The Unix socket of a stream, of clients that have no driver."""
        return str(self.sockets / f"{self.stream + number}.socket")

    @classmethod
    def parse(cls, modes: list[str], clients: list[str], loops: list[str]) -> Options:
        parser = argparse.ArgumentParser(prog=__package__)
        parser.add_argument("mode", choices=modes)
        parser.add_argument("--client", choices=clients, required=True)
        parser.add_argument("--loop", choices=loops, default=loops[0])
        parser.add_argument("--idle", default="parking")
        parser.add_argument("--driver", choices=["external", "embedded"], default="external")
        parser.add_argument("--aeron-dir", type=Path, required=True)
        parser.add_argument("--sockets", type=Path, required=True)
        parser.add_argument("--channel", default="aeron:ipc")
        parser.add_argument("--stream", type=int, default=1001)
        parser.add_argument("--reply-stream", type=int, default=1002)
        parser.add_argument("--streams", type=int, default=10)
        parser.add_argument("--size", type=int, default=32)
        parser.add_argument("--seconds", type=float, default=1.0)
        parser.add_argument("--gap", type=_gap, default=(0.001, 0.001), help="seconds at least, a colon, at most")
        parser.add_argument("--tick", choices=["full", "none"], default="full")
        return cls(**vars(parser.parse_args()))


def _gap(text: str) -> tuple[float, float]:
    low, high = text.split(":")
    return float(low), float(high)

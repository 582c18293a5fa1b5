"""Two processes with an event loop each, and a client that connects them."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.harness.peer import Peer, PeerError
from benchmarks.harness.ticks import check_sums
from benchmarks.suites._asyncio_variants import Variant
from benchmarks.suites._cpu import driver_pid, percent_of_core

COMMAND = (sys.executable, "-m", "benchmarks.peers.python.aio")


@dataclass(frozen=True)
class Pair:
    """Where the two processes of a variant meet, and on which event loop."""

    variant: Variant
    loop: str
    aeron_dir: Path
    """The directory of the driver that all share."""
    folder: Path
    """For the sockets of a client that has no driver, and for the directory of an embedded one."""
    stream_id: int

    def start(self, mode: str, **options: object) -> Peer:
        """Starts one of the two."""
        return Peer(
            COMMAND,
            mode,
            environment=self.variant.environment,
            client=self.variant.link,
            idle=self.variant.idle,
            loop=self.loop,
            aeron_dir=self.aeron_dir,
            sockets=self.folder,
            stream=self.stream_id,
            reply_stream=self.stream_id + 1,
            **options,
        )

    def exchange(self, seconds: float, size: int) -> dict[str, Any]:
        """Requests and their replies, one in flight: the requester's figures."""
        with self.start("echo") as server, self.start("request", seconds=seconds, size=size) as requester:
            server.wait_ready()
            requester.wait_ready()
            requester.go()
            figures = requester.result()
        check_sums(figures)
        return figures

    def flow(self, seconds: float, size: int, tick: str) -> dict[str, Any]:
        """A one-way stream flat out: the receiver's figures."""
        return self._one_way("receive", "send", seconds=seconds, size=size, tick=tick)

    def pace(self, seconds: float, size: int, gap: tuple[float, float]) -> dict[str, Any]:
        """A one-way stream at a pace: the receiver's figures."""
        return self._one_way("receive-paced", "send-paced", seconds=seconds, size=size, gap=f"{gap[0]}:{gap[1]}")

    def _one_way(self, receiving: str, sending: str, **options: object) -> dict[str, Any]:
        with self.start(receiving, **options) as receiver, self.start(sending, **options) as sender:
            receiver.wait_ready()
            sender.wait_ready()
            receiver.go()
            sender.go()
            sent = sender.result()["messages"]
            figures = receiver.result()
        if figures["messages"] != sent:
            raise PeerError(f"{figures['messages']} of {sent} messages arrived")
        if options.get("tick") != "none":
            check_sums(figures)
        return figures

    def rest(self, seconds: float, streams: int, *, is_visited: bool) -> dict[str, float]:
        """Streams on which nothing happens: the CPU of the process that waits for them, in percent of a core.

        `is_visited` says whether the other process is there, connected with all of them.
        """
        with self.start("hold", streams=streams, seconds=seconds) as holder:
            holder.wait_ready()
            return self._rest(seconds, streams, is_visited, client=holder.pid)

    def rest_embedded(self, seconds: float, streams: int, *, is_visited: bool) -> dict[str, float]:
        """The same of a process that has a driver of its own, and of that driver."""
        pair = replace(self, aeron_dir=self.folder / f"driver-{self.stream_id}")
        with pair.start("hold", streams=streams, seconds=seconds, driver="embedded") as holder:
            holder.wait_ready()
            pids = {"client": holder.pid, "driver": driver_pid(pair.aeron_dir)}
            return pair._rest(seconds, streams, is_visited, **pids)

    def _rest(self, seconds: float, streams: int, is_visited: bool, **pids: int) -> dict[str, float]:
        with self.start("visit", streams=streams, seconds=seconds) if is_visited else nullcontext() as visitor:
            if visitor is not None:
                visitor.wait_ready()
            return percent_of_core(seconds, **pids)

"""Requests and replies between processes, wherever their ends are."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from benchmarks.harness.clients import Client
from benchmarks.harness.context import Context
from benchmarks.harness.statistics import PERCENTILES
from benchmarks.harness.ticks import check_sums


@dataclass(frozen=True)
class End:
    """Where one of two processes runs."""

    aeron_dir: Path
    """The directory of its driver."""
    channel: str = "aeron:ipc"
    """Where it receives."""
    prefix: tuple[str, ...] = ()
    """What comes before a command that is to run there."""


def exchange(
    context: Context, client: Client, way: str, asker: End, answerer: End, *, pairs: int, size: int
) -> Mapping[str, float]:
    """One repeat: the percentiles of round trips, the means where there are several pairs of processes."""
    seconds = context.settings.seconds
    with ExitStack() as stack:
        servers, clients = [], []
        for _ in range(pairs):
            requests, replies = context.stream_id(), context.stream_id()
            streams = {
                "channel": answerer.channel,
                "stream": requests,
                "reply_channel": asker.channel,
                "reply_stream": replies,
                "way": way,
                "size": size,
                "seconds": seconds,
            }
            servers.append(
                stack.enter_context(
                    client.start("rpc-server", prefix=answerer.prefix, aeron_dir=answerer.aeron_dir, **streams)
                )
            )
            clients.append(
                stack.enter_context(
                    client.start("rpc-client", prefix=asker.prefix, aeron_dir=asker.aeron_dir, **streams)
                )
            )
        # A server connects to its client after it was told to go.
        for server in servers:
            server.wait_ready()
            server.go()
        for peer in clients:
            peer.wait_ready()
        for peer in clients:
            peer.go()
        results = [peer.result() for peer in clients]
        for server in servers:
            server.release()
    for result in results:
        check_sums(result)
    return {name: fmean(result[name] for result in results) for name in PERCENTILES}

"""Processes side by side, each with a publication and a subscription of its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

from benchmarks.harness.clients import Client
from benchmarks.harness.context import Context
from benchmarks.harness.results import Row, Table
from benchmarks.harness.ticks import check_sums
from benchmarks.suites._cells import RATE, cells, rate

NAME = "workers"

TOGETHER = Table(
    "throughput of all together, full tick work",
    (RATE,),
    "Each process alone does as in the suite `single`: stamp and offer 1000 messages, receive and decode them.",
)

_LARGEST = 256


def run(context: Context) -> list[Row]:
    """Every number of processes at every size."""
    settings = context.settings
    counts = settings.workers[-1:] if settings.quick else settings.workers
    rows = []
    for size in settings.sizes:
        for count in counts if size <= _LARGEST else ():
            rows += _measure(context, size, count)
    return rows


def _measure(context: Context, size: int, count: int) -> list[Row]:
    def once(client: Client, way: str) -> Mapping[str, float]:
        with ExitStack() as stack:
            peers = [
                stack.enter_context(
                    client.start(
                        "throughput",
                        way=way,
                        aeron_dir=context.aeron_dir,
                        stream=context.stream_id(),
                        seconds=context.settings.seconds,
                        size=size,
                    )
                )
                for _ in range(count)
            ]
            for peer in peers:
                peer.wait_ready()
            for peer in peers:
                peer.go()
            results = [peer.result() for peer in peers]
        for result in results:
            check_sums(result)
        return {RATE.name: sum(map(rate, results))}

    processes = "process" if count == 1 else "processes"
    return context.measure(TOGETHER, f"{size} B, {count} {processes}", cells(context.clients, "throughput", once))

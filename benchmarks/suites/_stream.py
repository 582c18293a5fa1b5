"""A stream of market ticks from a publisher in one process to a consumer in another, wherever they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

from benchmarks.harness.clients import OURS, Client
from benchmarks.harness.context import Context
from benchmarks.harness.peer import PeerError
from benchmarks.harness.results import Column
from benchmarks.harness.ticks import check_sums
from benchmarks.suites._cells import rate
from benchmarks.suites._exchange import End

SIZE = 64

COLUMNS = (
    Column("consumed", "msg/s", more_is_better=True),
    Column("published", "msg/s", more_is_better=True),
    Column("p50", "ns"),
    Column("p99", "ns"),
    Column("p999", "ns"),
)
"""Rates of both ends, and delays from the stamp to the receipt."""


def choose_publisher(context: Context) -> Client:
    """The first native client that runs here, and where none does, ours."""
    runnable = (client for client in context.everyone if not client.reason)
    return next(client for client in runnable if not client.is_python or client.name == OURS)


def stream(
    context: Context,
    publisher: Client,
    consumer: Client,
    way: str,
    sender: End,
    receiver: End,
    *,
    limit: int = 0,
    observed: Callable[[int], AbstractContextManager[object]] = nullcontext,
) -> Mapping[str, float]:
    """One repeat, of at most `limit` messages a second; `observed(stream id)` is open meanwhile.

    Raises `PeerError` where a message is missing, or came twice or out of order.
    """
    stream_id = context.stream_id()
    options = {
        "channel": receiver.channel,
        "stream": stream_id,
        "size": SIZE,
        "seconds": context.settings.seconds,
    }
    with (
        publisher.start(
            "market-publisher", prefix=sender.prefix, aeron_dir=sender.aeron_dir, rate=limit, **options
        ) as source,
        consumer.start(
            "market-consumer", prefix=receiver.prefix, aeron_dir=receiver.aeron_dir, way=way, **options
        ) as sink,
    ):
        sink.wait_ready()
        source.wait_ready()
        with observed(stream_id):
            sink.go()
            source.go()
            published = source.result()
            consumed = sink.result()
    check_sums(consumed)
    if (consumed["messages"], consumed["gaps"]) != (published["messages"], 0):
        raise PeerError(
            f"{consumed['messages']} of {published['messages']} messages came, with {consumed['gaps']} gaps"
        )
    return {
        "consumed": rate(consumed),
        "published": rate(published),
        **{name: consumed[name] for name in ("p50", "p99", "p999")},
    }

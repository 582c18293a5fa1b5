"""The peer of pyaeron, a Python binding of Aeron's C client."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyaeron

from benchmarks.peers.python import protocol
from benchmarks.peers.python.loops import Polling, echo, round_trips, throughput
from benchmarks.peers.python.market import MessageArrivals, consume
from benchmarks.peers.python.messages import Handler, Messages, Totals, handler_for
from benchmarks.peers.python.protocol import LIMIT, wait_for_go


def mode(serve: Callable[[pyaeron.Aeron, Namespace], Mapping[str, Any]]) -> protocol.Mode:
    """What a mode does with a client on the driver that all share."""

    def run(options: Namespace) -> Mapping[str, Any]:
        with pyaeron.Aeron(dir=options.aeron_dir) as aeron:
            return serve(aeron, options)

    return run


@contextmanager
def pair(
    aeron: pyaeron.Aeron, options: Namespace
) -> Iterator[tuple[pyaeron.ExclusivePublication, pyaeron.Subscription]]:
    """A publication and the subscription that it reaches."""
    with (
        aeron.add_subscription(options.channel, options.stream) as subscription,
        aeron.add_exclusive_publication(options.channel, options.stream) as publication,
    ):
        publication.await_connected(LIMIT)
        subscription.await_connected(LIMIT)
        yield publication, subscription


def measure_latency(aeron: pyaeron.Aeron, options: Namespace) -> Mapping[str, Any]:
    with pair(aeron, options) as (publication, subscription):
        return round_trips(publication.offer, subscription.poll, options)


def measure_throughput(aeron: pyaeron.Aeron, options: Namespace) -> Mapping[str, Any]:
    return _carry(aeron, options, handler_for(options.is_stamped))


def measure_receiving(aeron: pyaeron.Aeron, options: Namespace) -> Mapping[str, Any]:
    handler = handler_for(is_stamped=True) if options.is_stamped else materialising_handler()
    return _carry(aeron, options, handler, receiving_only=True)


def materialising_handler() -> tuple[Handler, Callable[[], Totals]]:
    """A handler that makes of each message what `async for payload` gives: a bytes object."""
    messages = 0

    def materialise(buffer: Any, header: Any) -> None:
        nonlocal messages
        buffer.tobytes()
        messages += 1

    def take() -> Totals:
        nonlocal messages
        totals, messages = Totals(messages), 0
        return totals

    return materialise, take


def _carry(
    aeron: pyaeron.Aeron,
    options: Namespace,
    handler: tuple[Handler, Callable[[], Totals]],
    *,
    receiving_only: bool = False,
) -> Mapping[str, Any]:
    with pair(aeron, options) as (publication, subscription):
        messages = Messages(options.size, options.is_stamped)
        path = Polling(publication.offer, subscription.poll, messages, handler)
        return asyncio.run(throughput(path, options, receiving_only=receiving_only))


def answer(aeron: pyaeron.Aeron, options: Namespace) -> Mapping[str, Any]:
    with (
        aeron.add_subscription(options.channel, options.stream) as requests,
        aeron.add_exclusive_publication(options.reply_channel, options.reply_stream) as replies,
    ):
        wait_for_go()
        released = protocol.release_event()
        requests.await_connected(LIMIT)
        replies.await_connected(LIMIT)
        return echo(replies.offer, requests.poll, released.is_set)


def ask(aeron: pyaeron.Aeron, options: Namespace) -> Mapping[str, Any]:
    with (
        aeron.add_subscription(options.reply_channel, options.reply_stream) as replies,
        aeron.add_exclusive_publication(options.channel, options.stream) as requests,
    ):
        requests.await_connected(LIMIT)
        replies.await_connected(LIMIT)
        return round_trips(requests.offer, replies.poll, options)


def consume_market(aeron: pyaeron.Aeron, options: Namespace) -> Mapping[str, Any]:
    with aeron.add_subscription(options.channel, options.stream) as subscription:
        subscription.await_connected(LIMIT)
        wait_for_go()
        arrivals = MessageArrivals()
        consume(lambda: subscription.poll(arrivals.take, options.batch), options.seconds)
        return arrivals.to_json()


if __name__ == "__main__":
    protocol.run(
        {
            "latency": mode(measure_latency),
            "throughput": mode(measure_throughput),
            "receive": mode(measure_receiving),
            "rpc-server": mode(answer),
            "rpc-client": mode(ask),
            "market-consumer": mode(consume_market),
        }
    )

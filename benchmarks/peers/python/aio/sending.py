"""The sending end of a one-way stream: flat out, while its loop stands still, or paced, between naps of its loop."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial

from benchmarks.harness.pool import ENTRIES
from benchmarks.harness.ticks import SENT, TICK
from benchmarks.peers.python.aio.cues import Cues
from benchmarks.peers.python.aio.link import END, Link, Send
from benchmarks.peers.python.aio.options import Options
from benchmarks.peers.python.columns import Records
from benchmarks.peers.python.messages import Messages
from benchmarks.peers.python.protocol import print_figures


async def send(link: Link, options: Options, cues: Cues) -> None:
    """Sends flat out."""
    await _send(link, cues, partial(_flood, Records(options.size, is_stamped=True), options.seconds))


async def send_paced(link: Link, options: Options, cues: Cues) -> None:
    """Sends message by message, at random times."""
    await _send(link, cues, partial(_trickle, Messages(options.size, is_stamped=True), options.seconds, options.gap))


async def _send(link: Link, cues: Cues, work: Callable[[Send], Awaitable[int]]) -> None:
    async with link.send() as send:
        await cues.wait_for_go()
        sent = await work(send)
        send([END])
        print_figures({"messages": sent})
        await cues.end()


async def _flood(records: Records, seconds: float, send: Send) -> int:
    sent = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        run = records.take(sent, ENTRIES)
        # Stamped as columns and cut up, so that the sender is not what the receiver waits for.
        data, size = run.tobytes(), run.itemsize
        send([data[start : start + size] for start in range(0, len(data), size)])
        sent += ENTRIES
    return sent


async def _trickle(messages: Messages, seconds: float, gap: tuple[float, float], send: Send) -> int:
    pace = random.Random(1)
    sent = 0
    due = time.monotonic()
    end = due + seconds
    while (due := due + pace.uniform(*gap)) < end:
        message = messages.take(sent, 1)
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        # CLOCK_MONOTONIC: both ends are on one machine.
        SENT.pack_into(message[0], TICK.size, time.monotonic_ns())
        send(message)
        sent += 1
    return sent

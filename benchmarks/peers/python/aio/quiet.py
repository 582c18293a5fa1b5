"""Streams on which nothing happens. What it costs to wait for them is measured from outside."""

from __future__ import annotations

from benchmarks.peers.python.aio.cues import Cues
from benchmarks.peers.python.aio.link import Link
from benchmarks.peers.python.aio.options import Options


async def hold(link: Link, options: Options, cues: Cues) -> None:
    """Waits for messages on all streams."""
    async with link.hold(options.streams):
        cues.say_ready()
        await cues.end()


async def visit(link: Link, options: Options, cues: Cues) -> None:
    """Connects to all streams, and stays silent."""
    async with link.visit(options.streams):
        cues.say_ready()
        await cues.end()

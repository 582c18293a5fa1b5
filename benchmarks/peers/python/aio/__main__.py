"""Runs the peer: one role of the asyncio suite, by one of the clients, on one of the event loops."""

from __future__ import annotations

import asyncio
import signal
from importlib import import_module

from benchmarks.peers.python.aio.cues import Cues
from benchmarks.peers.python.aio.options import Options
from benchmarks.peers.python.protocol import LIMIT

# Imported where they are used only: what is not installed, or not needed, costs the others nothing.
ROLES = {
    "echo": "calls",
    "request": "calls",
    "send": "sending",
    "send-paced": "sending",
    "receive": "receiving",
    "receive-paced": "receiving",
    "hold": "quiet",
    "visit": "quiet",
}
LINKS = {
    "aeron": "aeron_link",
    "messages": "aeron_link",
    "rpc": "aeron_link",
    "pyaeron": "pyaeron_link",
    "zmq": "zmq_link",
    "unix": "unix_link",
}
LOOPS = ["asyncio", "uvloop"]


async def main(options: Options) -> None:
    """Plays the role until it is over."""
    play = getattr(import_module(f"{__package__}.{ROLES[options.mode]}"), options.mode.replace("-", "_"))
    open_link = import_module(f"{__package__}.{LINKS[options.client]}").open_link
    cues = await Cues.open()
    async with open_link(options) as link:
        await play(link, options, cues)


if __name__ == "__main__":
    arguments = Options.parse(modes=[*ROLES], clients=[*LINKS], loops=LOOPS)
    # A peer that hangs, or whose harness is gone, does not stay for ever.
    signal.alarm(round(arguments.seconds + 2 * LIMIT))
    with asyncio.Runner(loop_factory=import_module(arguments.loop).new_event_loop) as runner:
        runner.run(main(arguments))

"""The receiving end of a one-way stream: flat out for its rate, or paced for how late each message is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from benchmarks.harness.statistics import percentiles
from benchmarks.harness.ticks import SENT, TICK
from benchmarks.peers.python.aio.cues import Cues
from benchmarks.peers.python.aio.figures import Stopwatch, lateness
from benchmarks.peers.python.aio.link import END, Link
from benchmarks.peers.python.aio.options import Options
from benchmarks.peers.python.aio.tasks import background, beat
from benchmarks.peers.python.messages import Handler, Totals, decoding_handler, handler_for
from benchmarks.peers.python.protocol import print_figures


async def receive(link: Link, options: Options, cues: Cues) -> None:
    """Takes what comes flat out; the window is from the first message to the end of the stream."""
    handle, totals = handler_for(options.tick == "full")
    await _consume(link, cues, handle, totals)


async def receive_paced(link: Link, options: Options, cues: Cues) -> None:
    """Takes what comes at its pace; notes how late each message is, by when it has been decoded."""
    decode, totals = decoding_handler()
    times: list[int] = []

    def handle(message: bytes, header: None) -> None:
        decode(message, header)
        now = time.monotonic_ns()
        if TICK.unpack_from(message)[3] != len(times):
            raise RuntimeError(f"another message has come instead of number {len(times)}")
        times.append(now - SENT.unpack_from(message, TICK.size)[0])

    await _consume(link, cues, handle, totals, times)


async def _consume(
    link: Link, cues: Cues, handle: Handler, totals: Callable[[], Totals], times: Sequence[int] = ()
) -> None:
    """Hands every message to `handle`, beside a heartbeat; then reports what was added up and timed."""
    watch: Stopwatch | None = None

    def on_message(message: bytes) -> bool:
        nonlocal watch
        if watch is None:
            watch = Stopwatch()
        if len(message) == len(END):
            return False
        handle(message, None)
        return True

    async with link.receive() as consume:
        await cues.wait_for_go()
        delays: list[int] = []
        async with background(beat(delays)):
            await consume(on_message)
        assert watch is not None
        figures = {**watch.read(), **totals().to_json(), **lateness(delays)}
        print_figures({**figures, **percentiles(times)} if times else figures)

"""Request and response, one in flight."""

from __future__ import annotations

import time

from benchmarks.harness.statistics import percentiles
from benchmarks.harness.ticks import TICK, tick
from benchmarks.peers.python.aio.cues import Cues
from benchmarks.peers.python.aio.figures import Stopwatch, lateness
from benchmarks.peers.python.aio.link import Call, Link
from benchmarks.peers.python.aio.options import Options
from benchmarks.peers.python.aio.tasks import background, beat
from benchmarks.peers.python.messages import Messages, Totals, decoding_handler
from benchmarks.peers.python.protocol import WARM_UP, print_figures


async def echo(link: Link, options: Options, cues: Cues) -> None:
    """Returns requests."""
    async with link.echo():
        cues.say_ready()
        await cues.end()


async def request(link: Link, options: Options, cues: Cues) -> None:
    """Sends one request after the other, each timed from stamping its tick to having decoded that of its reply."""
    messages = Messages(options.size, is_stamped=True)
    async with link.dial() as call:
        await cues.wait_for_go()
        await _exchange(call, messages, WARM_UP)
        delays: list[int] = []
        async with background(beat(delays)):
            watch = Stopwatch()
            times, totals = await _exchange(call, messages, options.seconds)
            print_figures({**watch.read(), **totals.to_json(), **percentiles(times), **lateness(delays)})


async def _exchange(call: Call, messages: Messages, seconds: float) -> tuple[list[int], Totals]:
    stamp = TICK.pack_into
    handle, totals = decoding_handler()
    times: list[int] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        request, fields = messages[len(times)], tick(len(times))
        started = time.monotonic_ns()
        stamp(request, 0, *fields)
        reply = await call(request)
        handle(reply, None)
        times.append(time.monotonic_ns() - started)
        if reply != request:
            raise RuntimeError(f"the reply to request {len(times)} is not that request")
    return times, totals()

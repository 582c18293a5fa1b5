"""How the harness and a peer talk: options, ready, go, figures. The contract is in ../../README.md."""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks.harness.pool import pool_digest

LIMIT = 30.0
"""Seconds after which something that must come counts as never coming."""

WARM_UP = 0.2
"""Seconds before the timed window."""

Mode = Callable[[argparse.Namespace], Mapping[str, Any] | None]
"""Does what a mode is for and returns its figures, if they are not printed already."""


def run(modes: Mapping[str, Mode]) -> None:
    """The peer's program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=("pool", *modes))
    parser.add_argument("--aeron-dir")
    parser.add_argument("--channel", default="aeron:ipc")
    parser.add_argument("--stream", type=int, default=1001)
    parser.add_argument("--reply-channel", default="aeron:ipc")
    parser.add_argument("--reply-stream", type=int, default=1002)
    parser.add_argument("--size", type=int, default=32, help="bytes of a payload")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--messages", type=int, default=0, help="this many, instead of seconds")
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--tick", choices=("full", "none"), default="full")
    parser.add_argument("--rate", type=int, default=0, help="messages a second; 0: as many as there is room for")
    parser.add_argument("--way", default="", help="which of the client's ways to do it")
    parser.add_argument("--beside-thread", type=int, default=0, help="1: with a thread that computes all the time")
    options = parser.parse_args()
    options.is_stamped = options.tick == "full"
    if options.mode == "pool":
        print_figures({"sha256": pool_digest(options.size)})
        return
    faulthandler.register(signal.SIGUSR1)
    # A peer that hangs, or whose harness is gone, does not spin for ever.
    signal.alarm(round(options.seconds + 2 * LIMIT))
    if options.beside_thread:
        threading.Thread(target=_compute, daemon=True).start()
    figures = modes[options.mode](options)
    if figures is not None:
        print_figures(figures)


def wait_for_go() -> None:
    """Says that the peer is ready, and returns when it is to begin."""
    print("ready", flush=True)
    if sys.stdin.readline() != "go\n":
        raise SystemExit("standard input was closed instead of saying go")


def print_figures(figures: Mapping[str, Any]) -> None:
    print(json.dumps(figures), flush=True)


def release_event() -> threading.Event:
    """What is set once standard input is closed."""
    event = threading.Event()

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 64):
            pass
        event.set()

    threading.Thread(target=wait, daemon=True).start()
    return event


def batches(size: int, *, seconds: float, messages: int = 0) -> Iterator[tuple[int, int]]:
    """First number and length of batch after batch: `messages` in all, or, where that is 0, until time is over."""
    if messages:
        for first in range(0, messages, size):
            yield first, min(size, messages - first)
        return
    end = time.monotonic() + seconds
    first = 0
    while time.monotonic() < end:
        yield first, size
        first += size


def _compute() -> None:
    """What a busy thread of a service might do: pure Python that never lets go of the GIL by itself."""
    total = 0
    while True:
        for number in range(1000):
            total = (total * 31 + number) & 0xFFFFFFFF

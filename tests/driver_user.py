"""A program that uses a driver as a client does. Commands come on standard input, answers go to standard output."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import structlog

from aeron_async.driver import sources
from aeron_async.driver.config import DriverConfig
from aeron_async.driver.sources import DriverSource, choose_driver
from tests.drivers import read_metadata


def say(answer: Any) -> None:
    print(json.dumps(answer), flush=True)


async def acquire(source: DriverSource) -> dict[str, Any]:
    aeron_dir = await source.acquire()
    source.on_exit(lambda: say("driver exited"))
    pid = read_metadata(aeron_dir).pid
    return {"aeron_dir": str(aeron_dir), "pid": pid, "is_starter": source.driver is not None}


async def fork(source: DriverSource) -> int:
    """Forks a child that lets go of everything and ends as a program does; returns the child's exit code."""
    child = os.fork()
    if child == 0:
        if source.driver is not None:
            await source.driver.aclose()
        await source.release()
        sys.stdout.flush()
        sys.exit(0)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    return os.waitstatus_to_exitcode(status)


async def come_and_go(source: DriverSource, rounds: int) -> int:
    """Joins and leaves again and again; returns how often it was the one to start the driver."""
    starts = 0
    for _ in range(rounds):
        exits: list[None] = []
        await source.acquire()
        unsubscribe = source.on_exit(lambda exits=exits: exits.append(None))  # type: ignore[misc]
        starts += source.driver is not None
        await asyncio.sleep(random.uniform(0, 0.3))
        assert not exits, "a driver ended that had a user"
        unsubscribe()
        await source.release()
        await asyncio.sleep(random.uniform(0, 0.5))
    return starts


async def serve(options: dict[str, Any]) -> None:
    source = choose_driver(
        options["aeron_dir"] and Path(options["aeron_dir"]),
        options["mode"],
        DriverConfig(binary=options.get("binary")),
    )
    while command := (await asyncio.to_thread(sys.stdin.readline)).split():
        match command:
            case ["acquire"]:
                say(await acquire(source))
            case ["release"]:
                await source.release()
                say("released")
            case ["fork"]:
                say(await fork(source))
            case ["come-and-go", rounds]:
                say(await come_and_go(source, int(rounds)))


def run() -> None:
    # Answers have standard output for themselves.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    options = json.loads(sys.argv[1])
    if "grace" in options:
        sources._SHARED_GRACE = options["grace"]
    asyncio.run(serve(options))

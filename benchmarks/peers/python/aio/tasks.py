"""Work beside other work on an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

HEARTBEAT = 0.01
"""Seconds between the ticks of a heartbeat."""


@asynccontextmanager
async def background(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Runs `works` as tasks until the context is left; one that fails ends it."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]
        yield
        for task in tasks:
            task.cancel()


async def beat(delays: list[int]) -> None:
    """Ticks until it is cancelled; notes by how many nanoseconds each tick was late, also one that never came."""
    due = time.monotonic()
    try:
        while True:
            due = max(due, time.monotonic()) + HEARTBEAT
            await asyncio.sleep(due - time.monotonic())
            delays.append(max(0, round((time.monotonic() - due) * 1e9)))
    finally:
        if time.monotonic() > due:
            delays.append(round((time.monotonic() - due) * 1e9))

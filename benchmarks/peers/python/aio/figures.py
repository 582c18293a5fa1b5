"""What the roles of the asyncio suite measure, beside what the messages tell."""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks.harness.statistics import percentiles


class Stopwatch:
    """The time and the CPU time that this process takes, from the moment that this is made."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._cpu_started = time.process_time()

    def read(self) -> dict[str, float]:
        """The seconds, and the CPU time as a share of one core."""
        seconds = time.monotonic() - self._started
        return {"seconds": seconds, "cpu": (time.process_time() - self._cpu_started) / seconds}


def lateness(delays: Sequence[int]) -> dict[str, float]:
    """By how much a heartbeat was late, of delays in nanoseconds; 0 where no tick was due."""
    return {f"heartbeat_{name}": value for name, value in percentiles(delays or [0]).items()}

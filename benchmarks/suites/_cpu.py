"""CPU time of processes, measured from outside and to the nanosecond."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from aeron_async.driver.directory import CncReader

SETTLE = 1.0
"""Seconds in which what was just started comes to rest."""


def cpu_seconds(pid: int) -> float:
    """What all threads of the process have used."""
    # /proc/<pid>/stat counts ticks of 10 ms: too coarse for what uses 1 % of a core.
    times = (task.read_text().split()[0] for task in Path(f"/proc/{pid}/task").glob("*/schedstat"))
    return sum(map(int, times)) / 1e9


def percent_of_core(seconds: float, **pids: int) -> dict[str, float]:
    """How much of one core each process uses in `seconds`, in percent, once it has come to rest."""
    time.sleep(SETTLE)
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    started = time.monotonic()
    time.sleep(seconds)
    elapsed = time.monotonic() - started
    return {name: 100 * (cpu_seconds(pid) - before[name]) / elapsed for name, pid in pids.items()}


def driver_pid(aeron_dir: Path) -> int:
    """The process of the driver that serves the directory."""
    with closing(CncReader.open(aeron_dir)) as cnc:
        return cnc.metadata.pid

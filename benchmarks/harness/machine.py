"""The machine in words: what a reader needs to judge figures, and nothing that tells whose it is."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

from aeron_async import MediaDriver


def describe_machine(driver: MediaDriver) -> dict[str, str | int]:
    """CPU, memory, kernel, Python and its libraries, and the driver that the peers share."""
    return {
        "cpu": _field(Path("/proc/cpuinfo"), "model name") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "kernel": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "driver": driver.version,
        **{library: metadata.version(library) for library in ("numpy", "uvloop", "pyzmq")},
    }


def _field(file: Path, name: str) -> str:
    """The first value of that name in a file of `name : value` lines."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return ""
    return next((value.strip() for key, _, value in (line.partition(":") for line in lines) if key.strip() == name), "")

"""How much memory this process has, as the kernel counts it."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from pathlib import Path

_ROLLUP = Path("/proc/self/smaps_rollup")


@dataclass(frozen=True)
class Resident:
    """Bytes in memory now."""

    whole: int
    """Everything, also what is shared: logs and counters."""
    private: int
    """What belongs to this process alone: its heaps and stacks."""

    def __sub__(self, other: Resident) -> Resident:
        return Resident(self.whole - other.whole, self.private - other.private)

    def to_json(self) -> dict[str, int]:
        return {"whole": self.whole, "private": self.private}


def resident() -> Resident:
    """What is there once garbage has been collected."""
    gc.collect()
    fields = {name: rest.split() for name, _, rest in (line.partition(":") for line in _ROLLUP.open())}
    return Resident(*(int(fields[name][0]) << 10 for name in ("Rss", "Anonymous")))

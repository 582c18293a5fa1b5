"""The suites: each a module here that has these names, found by being here.

    NAME: str                                          # what --suite takes, and the file of its results
    run(context: Context) -> list[Row]                 # measures with `context.measure`
    targets(rows: Sequence[Row]) -> list[Target]       # optional: the targets that its rows decide
    CLIENTS: Sequence[str]                             # optional: clients that only this suite has (`context.wants`)

Modules whose names start with an underscore are not suites but what several of them share.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from typing import Protocol

from benchmarks.harness.context import Context
from benchmarks.harness.results import Row, Target


class Suite(Protocol):
    """A module with a suite in it; `targets` and `CLIENTS` may be missing."""

    NAME: str

    def run(self, context: Context) -> list[Row]: ...


ORDER = ("single", "workers", "rpc", "market", "asyncio", "memory", "udp")


def load_suites() -> dict[str, Suite]:
    """All suites by name: those of `ORDER` first."""
    modules = (
        importlib.import_module(f"{__name__}.{found.name}")
        for found in pkgutil.iter_modules(__path__)
        if not found.name.startswith("_")
    )
    suites = {module.NAME: module for module in modules if hasattr(module, "NAME")}
    names = sorted(suites, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))
    return {name: suites[name] for name in names}


def clients_of(suite: Suite) -> Sequence[str]:
    """The names of the clients that only this suite has."""
    return getattr(suite, "CLIENTS", ())


def targets_of(suite: Suite, rows: Sequence[Row]) -> list[Target]:
    """The targets that a suite's rows decide."""
    decide = getattr(suite, "targets", None)
    return decide(rows) if decide else []

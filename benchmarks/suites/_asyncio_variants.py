"""The clients of the asyncio suite, in their ways to wait and to receive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata

from benchmarks.harness.clients import OURS, PURE, PYAERON
from benchmarks.harness.context import Context

PYZMQ = "pyzmq"
UNIX = "Unix streams"

PARKING = "Parking()"
UNSPUN = "Parking(spin=0)"
PAYLOADS = "payloads()"
MESSAGES = "messages"

_STRATEGIES = {
    PARKING: "parking",
    UNSPUN: "parking-unspun",
    "BusySpin()": "busy-spin",
    "Yielding()": "yielding",
    "Sleeping(0.001)": "sleeping",
    "Backoff(10, 20, 10e-6, 0.001)": "backoff",
}


@dataclass(frozen=True)
class Variant:
    """A client in one of its ways."""

    client: str
    way: str
    link: str
    """What the peer calls it."""
    idle: str = "parking"
    environment: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    """Why it cannot run here."""
    is_essential: bool = True
    """Whether it is measured on every event loop, and in a quick run."""


def waiting(context: Context) -> list[Variant]:
    """One way for each strategy to wait for the next message, of the clients that were asked for."""
    return [
        *(
            Variant(name, way, "aeron", idle, environment, is_essential=name == OURS and way in (PARKING, UNSPUN))
            for name, environment in _ours(context).items()
            for way, idle in _STRATEGIES.items()
            if name == OURS or way in (PARKING, UNSPUN)
        ),
        *_others(context),
    ]


def calling(context: Context) -> list[Variant]:
    """The same, and `rpc.call`."""
    calls = [
        Variant(name, "rpc.call", "rpc", environment=environment, is_essential=name == OURS)
        for name, environment in _ours(context).items()
    ]
    return [*waiting(context), *calls]


def receiving(context: Context) -> list[Variant]:
    """One way for each kind of iteration over a stream."""
    return [
        *(
            Variant(name, way, link, environment=environment, is_essential=name == OURS or way == PAYLOADS)
            for name, environment in _ours(context).items()
            for way, link in ((PAYLOADS, "aeron"), (MESSAGES, "messages"))
        ),
        *_others(context),
    ]


def embedding(context: Context) -> list[Variant]:
    """The one that brings a driver; what it waits with makes no difference to that."""
    return [variant for variant in waiting(context) if (variant.client, variant.way) == (OURS, PARKING)]


def _ours(context: Context) -> dict[str, Mapping[str, str]]:
    return {client.name: client.environment for client in context.clients if client.name in (OURS, PURE)}


def _others(context: Context) -> list[Variant]:
    pyaeron = [client for client in context.clients if client.name == PYAERON]
    return [
        *(Variant(PYAERON, "polling task", "pyaeron", reason=client.reason) for client in pyaeron),
        *([_pyzmq()] if context.wants(PYZMQ) else []),
        *([Variant(UNIX, "readexactly", "unix")] if context.wants(UNIX) else []),
    ]


def _pyzmq() -> Variant:
    try:
        return Variant(PYZMQ, f"{metadata.version('pyzmq')}, PAIR over ipc", "zmq")
    except metadata.PackageNotFoundError:
        return Variant(PYZMQ, "PAIR over ipc", "zmq", reason="pyzmq is not installed")

"""Two network namespaces, joined by a pair of virtual Ethernet devices."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_MTU = 1500


class NamespacesError(Exception):
    """Why there can be no namespaces here."""


@dataclass(frozen=True)
class Namespace:
    """One of the two."""

    name: str
    address: str

    @property
    def prefix(self) -> tuple[str, ...]:
        """What comes before a command that is to run in it."""
        return ("ip", "netns", "exec", self.name)


@contextmanager
def joined_namespaces() -> Iterator[tuple[Namespace, Namespace]]:
    """Two namespaces of our own that see nothing but each other. Raises `NamespacesError` where they cannot be made."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        raise NamespacesError("network namespaces need root and iproute2")
    tag = f"{os.getpid():x}"
    ends = [Namespace(f"aeron-benchmark-{tag}-{place}", f"198.18.0.{place}") for place in (1, 2)]
    devices = [f"ab{tag}-{place}" for place in (1, 2)]
    try:
        for end in ends:
            _ip("netns", "add", end.name)
        (one, other), (device, opposite) = ends, devices
        _ip("link", "add", device, "netns", one.name, "type", "veth", "peer", "name", opposite, "netns", other.name)
        for end, own in zip(ends, devices, strict=True):
            _ip("-n", end.name, "address", "add", f"{end.address}/30", "dev", own)
            _ip("-n", end.name, "link", "set", own, "mtu", str(_MTU), "up")
            _ip("-n", end.name, "link", "set", "lo", "up")
        yield one, other
    finally:
        for end in ends:
            subprocess.run(["ip", "netns", "delete", end.name], check=False, capture_output=True)


def _ip(*arguments: str) -> None:
    result = subprocess.run(["ip", *arguments], check=False, capture_output=True, text=True)
    if result.returncode:
        raise NamespacesError(f"ip {' '.join(arguments)}: {result.stderr.strip()}")

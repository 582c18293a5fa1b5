"""A name server that does not answer: the driver goes on meanwhile, and so do its clients."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ROOT

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2, for a network namespace"
)

PROGRAM = """
    import time
    import anyio
    import aeron_async
    from aeron_async import DriverConfig, connect

    async def main():
        async with connect(driver=DriverConfig()) as client:
            publication = await client.add_publication("aeron:ipc", 1002)
            subscription = await client.add_subscription("aeron:ipc", 1002)
            payloads = subscription.payloads()
            heartbeats = set()

            async def look_up():
                try:
                    await client.add_publication("aeron:udp?endpoint=slow.example:40123", 1001, timeout=3.0)
                except aeron_async.AddTimeoutError:
                    print("slow")

            async def beat():
                while True:
                    heartbeats.add(client._session.cnc.driver_heartbeat())
                    await publication.publish(b"meanwhile")
                    assert await anext(payloads) == b"meanwhile"
                    await anyio.sleep(0.02)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(beat)
                await look_up()
                tasks.cancel_scope.cancel()
            print("alive" if len(heartbeats) > 5 and not client.is_closed else f"only {len(heartbeats)} heartbeats")

    anyio.run(main)
"""


@pytest.fixture
def silent_network() -> Iterator[str]:
    """A network namespace whose name server swallows every question."""
    name = f"aeron-{uuid.uuid4().hex[:8]}"
    resolver = Path("/etc/netns") / name
    link, peer = f"v{name[-6:]}", f"w{name[-6:]}"
    commands = [
        f"ip netns add {name}",
        f"ip link add {link} netns {name} type veth peer name {peer} netns {name}",
        f"ip -n {name} address add 192.0.2.1/24 dev {link}",
        f"ip -n {name} link set {peer} up",
        f"ip -n {name} link set {link} up",
        f"ip -n {name} link set lo up",
        f"ip -n {name} neighbour replace 192.0.2.53 lladdr 02:00:00:00:00:53 dev {link}",
    ]
    resolver.mkdir(parents=True)
    try:
        (resolver / "resolv.conf").write_text("nameserver 192.0.2.53\noptions timeout:3 attempts:2\n")
        for command in commands:
            subprocess.run(command.split(), check=True, capture_output=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
        shutil.rmtree(resolver)


def test_a_slow_name_look_up_does_not_stop_the_drivers_heartbeat(silent_network: str) -> None:
    program = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    result = subprocess.run(
        ["ip", "netns", "exec", silent_network, *program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.stdout.split() == ["slow", "alive"], result.stderr

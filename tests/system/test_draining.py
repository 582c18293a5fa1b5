"""What was published over UDP arrives, though its driver ends with its publisher."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from aeron_async import connect
from tests.support import LIMIT, free_udp_port, is_running

pytestmark = pytest.mark.anyio

COUNT = 30_000

PUBLISHER = """
import asyncio, sys
import aeron_async

async def main():
    async with aeron_async.connect() as client:
        publication = await client.add_publication(sys.argv[1], 1001)
        await publication.wait_connected(30)
        for number in range(int(sys.argv[2])):
            await publication.publish(number.to_bytes(8, "little"))
        if sys.argv[3] == "closed":
            await publication.aclose()

asyncio.run(main())
"""


@pytest.mark.parametrize("count", [1, COUNT])
@pytest.mark.parametrize("publication", ["closed", "left open"])
async def test_a_publisher_that_leaves_loses_nothing(aeron_dir: Path, count: int, publication: str) -> None:
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_udp_port()}"
    received: list[int] = []
    async with (
        connect(aeron_dir) as client,
        await client.add_subscription(channel, 1001) as subscription,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(anyio.run_process, [sys.executable, "-c", PUBLISHER, channel, str(count), publication])
        with anyio.fail_after(LIMIT):
            async for payload in subscription.payloads():
                received.append(int.from_bytes(payload, "little"))
                if len(received) == count:
                    break
    assert received == list(range(count))


async def test_a_driver_is_not_kept_for_receivers_that_are_gone(aeron_dir: Path) -> None:
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_udp_port()}"
    async with connect(aeron_dir) as receiver:
        subscription = await receiver.add_subscription(channel, 1001)
        publisher = await connect(driver="embedded")
        assert publisher.driver is not None
        pid = publisher.driver.pid
        publication = await publisher.add_publication(channel, 1001)
        await publication.wait_connected()
        await subscription.aclose()
        with anyio.fail_after(LIMIT):
            await publisher.aclose()
        assert not is_running(pid)

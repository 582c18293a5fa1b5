"""Claims that nobody finishes: their process is killed, holds them for too long, or forks."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from aeron_async import AeronError, BufferClaim, Client, connect
from aeron_async.protocol.counter_types import SystemCounter
from tests.support import LIMIT, Program, eventually, free_udp_port, open_pair, run_program, running_driver, take

pytestmark = pytest.mark.anyio

STREAM_ID = 1001


@pytest.fixture
def anyio_backend() -> str:
    """One event loop is enough here: what the driver does depends on none."""
    return "asyncio"


@pytest.fixture(scope="module")
def aeron_dir() -> Iterator[Path]:
    """The directory of a driver that soon makes padding of claims that nobody finishes."""
    with running_driver(client_liveness_timeout=1.0, publication_unblock_timeout=1.2) as driver:
        yield driver.aeron_dir


@pytest.fixture(params=["ipc", "udp"])
def channel(request: pytest.FixtureRequest) -> str:
    return "aeron:ipc" if request.param == "ipc" else f"aeron:udp?endpoint=127.0.0.1:{free_udp_port()}"


def unblocked(client: Client) -> int:
    """How often the driver has unblocked a publication."""
    return client.counters[SystemCounter.UNBLOCKED_PUBLICATIONS]


CLAIM = """
    import sys
    import anyio
    from aeron_async import connect
    from tests.support import LIMIT

    async def main():
        aeron_dir, channel, stream_id = sys.argv[1], sys.argv[2], int(sys.argv[3])
        async with connect(aeron_dir) as client:
            publication = await client.add_publication(channel, stream_id)
            claim = await publication.claim(1000, timeout=LIMIT)
            claim.buffer[:500] = b"x" * 500
            print("claimed", flush=True)
            sys.stdin.readline()

    anyio.run(main)
"""


async def test_the_claim_of_a_killed_process_does_not_wedge_the_others(aeron_dir: Path, channel: str) -> None:
    async with connect(aeron_dir) as client:
        publication, subscription = await open_pair(client, channel, STREAM_ID)
        before = unblocked(client)
        with Program(CLAIM, aeron_dir, channel, STREAM_ID) as program:
            assert await anyio.to_thread.run_sync(program.line) == "claimed"
            messages = [b"%d" % number for number in range(5)]
            for message in messages:
                await publication.publish(message, timeout=LIMIT)
            assert len(subscription.poll_batch()) == 0
            program.signal(signal.SIGKILL)
        assert await take(subscription.payloads(), 5) == messages
        assert unblocked(client) > before
        # More than the log holds: every place is used again.
        for number in range(400):
            await publication.publish(bytes([number % 251]) * 1000, timeout=LIMIT)
            assert await take(subscription.payloads(), 1) == [bytes([number % 251]) * 1000]


async def test_a_claim_that_is_held_for_too_long_is_lost_and_says_so(aeron_dir: Path, channel: str) -> None:
    async with connect(aeron_dir, keepalive_interval=0.1) as client:
        publication, subscription = await open_pair(client, channel, STREAM_ID)
        before = unblocked(client)
        claim = publication.try_claim(100)
        assert isinstance(claim, BufferClaim)
        await publication.publish(b"behind", timeout=LIMIT)
        await eventually(lambda: unblocked(client) > before)
        with pytest.raises(AeronError, match="publication_unblock_timeout"):
            claim.commit()
        assert await take(subscription.payloads(), 1) == [b"behind"]


FORK = """
    import gc
    import os
    import sys
    import warnings
    import anyio
    from aeron_async import connect
    from tests.support import LIMIT, open_pair

    # CPython warns of forks beside threads.
    warnings.simplefilter("ignore", DeprecationWarning)

    async def main():
        async with connect(sys.argv[1]) as client:
            publication, subscription = await open_pair(client, "aeron:ipc", int(sys.argv[2]))
            claim = await publication.claim(7)
            claim.buffer[:] = b"message"
            child = os.fork()
            if child == 0:
                del claim
                gc.collect()
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            claim.commit()
            print([bytes(payload) for payload in subscription.poll_batch()])

    anyio.run(main)
"""


def test_a_forked_child_does_not_end_its_parents_claim(aeron_dir: Path) -> None:
    assert run_program(FORK, aeron_dir, STREAM_ID + 1) == "[b'message']\n"

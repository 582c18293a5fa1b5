"""Publishes and receives a million messages over IPC and a hundred thousand over UDP, and checks every one of them.

An embedded driver is started for it. The last line starts with ``ok:``; anything that does not match exits non-zero.
"""

from __future__ import annotations

import argparse
import random
import socket
import sys
import time
from collections.abc import Iterator

import anyio
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import aeron_async

STREAM_ID = 1001
BLOCK_LENGTH = 1 << 20
PROGRESS_STEP = 5_000


def messages(count: int, seed: int) -> Iterator[bytes]:
    """The same `count` messages for the same seed.

    Most have 0 to 256 bytes, one in a hundred up to 4 KiB, one in ten thousand up to 64 KiB, so that some are
    fragmented.
    """
    generator = random.Random(seed)
    block = generator.randbytes(BLOCK_LENGTH)
    random_numbers = [generator.random() for _ in range(8191)]
    for number in range(count):
        if number % 10_000 == 5_000:
            longest = 64 << 10
        elif number % 100 == 50:
            longest = 4 << 10
        else:
            longest = 256
        length = int(random_numbers[number % 8191] * (longest + 1))
        start = number * 61 % (BLOCK_LENGTH - length)
        yield block[start : start + length]


async def publish_all(publication: aeron_async.Publication, count: int, seed: int) -> None:
    for message in messages(count, seed):
        await publication.publish(message)


async def receive_all(
    subscription: aeron_async.Subscription, count: int, seed: int, progress: Progress, title: str
) -> int:
    """Returns how many bytes arrived; raises SystemExit at the first message that is not the expected one."""
    bar = progress.add_task(title, total=count)
    received_bytes = 0
    expected = messages(count, seed)
    received = 0
    async for payload in subscription.payloads():
        if payload != next(expected):
            raise SystemExit(f"mismatch: message {received} of {title} is not what was published")
        received += 1
        received_bytes += len(payload)
        if received % PROGRESS_STEP == 0:
            progress.update(bar, completed=received)
        if received == count:
            break
    progress.update(bar, completed=received)
    return received_bytes


async def carry(client: aeron_async.Client, channel: str, title: str, count: int, progress: Progress) -> str:
    """Carries `count` messages over `channel`; a line that tells how it went."""
    seed = count
    async with (
        await client.add_subscription(channel, STREAM_ID) as subscription,
        await client.add_publication(channel, STREAM_ID) as publication,
    ):
        await publication.wait_connected()
        started = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(publish_all, publication, count, seed)
            received_bytes = await receive_all(subscription, count, seed, progress, title)
        seconds = time.perf_counter() - started
        if extra := subscription.poll_batch():
            raise SystemExit(f"mismatch: {len(extra)} messages of {title} that nobody published")
    return (
        f"{title}: {count:,} messages, {received_bytes / 1e6:.1f} MB, every payload and the order verified, "
        f"{count / seconds:,.0f} messages/s, {received_bytes / seconds / 1e6:.1f} MB/s"
    )


def free_udp_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def main(ipc_messages: int, udp_messages: int) -> None:
    console = Console()
    started = time.perf_counter()
    async with aeron_async.connect(client_name="demo") as client:
        assert client.driver is not None
        console.print(f"driver {client.driver.version}, process {client.driver.pid}", highlight=False)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True)) as progress:
            lines = [
                await carry(client, "aeron:ipc", "IPC", ipc_messages, progress),
                await carry(
                    client, f"aeron:udp?endpoint=127.0.0.1:{free_udp_port()}", "UDP loopback", udp_messages, progress
                ),
            ]
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
    total = ipc_messages + udp_messages
    console.print(
        f"ok: {total:,} messages published, received and verified in {time.perf_counter() - started:.1f} s",
        highlight=False,
        soft_wrap=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--ipc", type=int, default=1_000_000, help="messages over IPC (default: %(default)s)")
    parser.add_argument("--udp", type=int, default=100_000, help="messages over UDP loopback (default: %(default)s)")
    options = parser.parse_args()
    if options.ipc < 1 or options.udp < 1:
        sys.exit("counts must be greater than 0")
    anyio.run(main, options.ipc, options.udp)

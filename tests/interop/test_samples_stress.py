"""Aeron's stress samples with us as their clients and servers: checksummed messages, echoed with their reserved value.

Over unicast against theirs. Over a dynamic multi-destination cast with tagged flow control, where each message goes to
two receivers of the server and each of the two replies to two of the client, against ourselves: the channels of theirs
lack the control mode, which drivers of 1.51.0 and later refuse.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import anyio
import pytest

import aeron_async
from tests import java
from tests.interop.peers import PEER_TIMEOUT, running

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), pytest.mark.usefixtures("java_peer")]

MTU = 1408
LENGTHS = (32, 1056, 2080, 20_512, 131_008)
"""What our client sends: from one fragment to the most that the samples send."""
IN_FLIGHT = 20
MESSAGES_PER_LENGTH = 100
"""How many messages of a length the samples' clients send before they go on to the next."""
SERVED_LENGTHS = 15


@dataclass(frozen=True)
class Wiring:
    """Channels of one kind of stress sample."""

    stream_id: int
    requests_out: str
    requests_in: tuple[str, ...]
    replies_out: str
    replies_in: tuple[str, ...]


@dataclass(frozen=True)
class Hosts:
    """Loopback addresses of the test's own: the ports of the samples are fixed."""

    server: str
    client: str

    def unicast(self) -> Wiring:
        requests, replies = f"aeron:udp?endpoint={self.server}:9001", f"aeron:udp?endpoint={self.client}:9002"
        return Wiring(10_001, requests, (requests,), replies, (replies,))

    def cast(self) -> Wiring:
        requests, replies = f"aeron:udp?control={self.client}:9005", f"aeron:udp?control={self.server}:9008"
        return Wiring(
            10_002,
            f"{requests}|control-mode=dynamic|fc=tagged,g:1002/2,t:5s",
            tuple(f"{requests}|endpoint={self.server}:{port}|gtag=1002" for port in (9003, 9004)),
            f"{replies}|control-mode=dynamic|fc=tagged,g:1001/2,t:5s",
            tuple(f"{replies}|endpoint={self.client}:{port}|gtag=1001" for port in (9006, 9007)),
        )


@pytest.fixture
def hosts() -> Hosts:
    network = ".".join(str(random.SystemRandom().randrange(1, 255)) for _ in range(2))
    return Hosts(f"127.{network}.1", f"127.{network}.2")


def stress(name: str, hosts: Hosts, client: aeron_async.Client) -> list[str]:
    """Return the command line of a stress sample."""
    properties = {
        "aeron.dir": client.aeron_dir,
        "aeron.stress.server.address": hosts.server,
        "aeron.stress.client.address": hosts.client,
    }
    return java.java_command(f"io.aeron.samples.stress.{name}", properties=properties)


@functools.cache
def crc64_table() -> list[int]:
    """The reflected polynomial of ECMA-182."""
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0xC96C_5795_D787_0F42 if value & 1 else 0)
        table.append(value)
    return table


def crc64(data: bytes) -> int:
    """The checksum of the samples."""
    table, value = crc64_table(), 0xFFFF_FFFF_FFFF_FFFF
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFF_FFFF_FFFF_FFFF


def checksummed(length: int) -> bytes:
    """A message of the samples: a checksum over the rest."""
    body = random.Random(length).randbytes(length - 8)
    return crc64(body).to_bytes(8, "little") + body


@contextlib.asynccontextmanager
async def subscribed(
    client: aeron_async.Client, channels: tuple[str, ...], stream_id: int
) -> AsyncIterator[list[aeron_async.Subscription]]:
    """Subscriptions to several channels."""
    async with contextlib.AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(await client.add_subscription(channel, stream_id)) for channel in channels
        ]


def test_the_checksum_is_that_of_the_samples() -> None:
    assert crc64(b"123456789") == 0x995D_C9BB_DF19_39FA


async def ask(client: aeron_async.Client, wiring: Wiring) -> None:
    """Send messages, and get each back as often as the wiring says."""
    channel = f"{wiring.requests_out}|mtu={MTU}|linger=0"
    async with (
        subscribed(client, wiring.replies_in, wiring.stream_id) as subscriptions,
        await client.add_exclusive_publication(channel, wiring.stream_id) as publication,
    ):
        for subscription in subscriptions:
            await subscription.wait_connected(timeout=PEER_TIMEOUT)
        for request in map(checksummed, LENGTHS):
            # All are read at once: each can hold up the others.
            with anyio.fail_after(PEER_TIMEOUT):
                async with anyio.create_task_group() as tasks:
                    for subscription in subscriptions:
                        tasks.start_soon(collect, subscription, request, len(wiring.requests_in))
                    for number in range(IN_FLIGHT):
                        await publication.publish(request, reserved_value=number, timeout=PEER_TIMEOUT)


async def collect(subscription: aeron_async.Subscription, request: bytes, copies: int) -> None:
    """Receive the replies to the requests in flight, each so many times."""
    replies = Counter[int]()
    messages = aiter(subscription)
    for _ in range(IN_FLIGHT * copies):
        reply = await anext(messages)
        assert reply.payload == request
        replies[reply.header.reserved_value] += 1
    assert replies == dict.fromkeys(range(IN_FLIGHT), copies)


@contextlib.asynccontextmanager
async def answering(
    client: aeron_async.Client, wiring: Wiring, expected: Sequence[tuple[int, int]]
) -> AsyncIterator[None]:
    """Send back what comes to each subscription, which has to be messages of these lengths and reserved values."""

    async def answer(subscription: aeron_async.Subscription) -> None:
        messages = aiter(subscription)
        for length, number in expected:
            request = await anext(messages)
            assert (len(request), request.header.reserved_value) == (length, number)
            await publication.publish(request.payload, reserved_value=number, timeout=PEER_TIMEOUT)

    with anyio.fail_after(PEER_TIMEOUT):
        async with (
            subscribed(client, wiring.requests_in, wiring.stream_id) as subscriptions,
            await client.add_publication(f"{wiring.replies_out}|linger=0", wiring.stream_id) as publication,
            anyio.create_task_group() as tasks,
        ):
            for subscription in subscriptions:
                tasks.start_soon(answer, subscription)
            yield


async def test_our_client_gets_every_reply_of_their_server(client: aeron_async.Client, hosts: Hosts) -> None:
    async with running(stress("StressUnicastServer", hosts, client)):
        await ask(client, hosts.unicast())


async def test_our_server_answers_their_client(client: aeron_async.Client, hosts: Hosts) -> None:
    # It goes on to longer messages once it has checked every reply to the shorter ones.
    lengths = (32 + 1024 * step for step in range(SERVED_LENGTHS))
    expected = list(itertools.product(lengths, range(MESSAGES_PER_LENGTH)))
    async with (
        running(stress("StressUnicastClient", hosts, client)),
        answering(client, hosts.unicast(), expected),
    ):
        pass


async def test_our_client_gets_every_reply_of_our_server_over_casts(client: aeron_async.Client, hosts: Hosts) -> None:
    expected = list(itertools.product(LENGTHS, range(IN_FLIGHT)))
    async with answering(client, hosts.cast(), expected):
        await ask(client, hosts.cast())

"""Many calls at once, cancellation storms, and diallers that do not keep up."""

from __future__ import annotations

import random

import anyio
import pytest

from aeron_async import CallTimeoutError, Client, rpc
from aeron_async.protocol.rpc_frames import HEADER_LENGTH, FrameKind, decode_header, encode_header
from aeron_async.rpc import server as rpc_server
from tests.response_routes import PlainDialler, Route, plain_dialler
from tests.support import LIMIT, eventually, holds_nothing, sealed, take, unseal

pytestmark = pytest.mark.anyio


class Reverser:
    """A handler that takes its time and reverses what it gets; it knows how many of it run."""

    def __init__(self, longest_delay: float = 0.0) -> None:
        self.running = self.most_running = self.calls = 0
        self._longest_delay = longest_delay
        self._random = random.Random(1)

    async def __call__(self, request: bytes) -> bytes:
        self.calls += 1
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await anyio.sleep(self._longest_delay * self._random.random() ** 4)
            return request[::-1]
        finally:
            self.running -= 1


async def test_thousands_of_calls_of_several_diallers_each_get_their_own_reply(
    client: Client, other_client: Client, route: Route
) -> None:
    handler = Reverser(longest_delay=0.02)
    lengths = random.Random(2)
    returned: list[tuple[int, int]] = []

    async def call(remote: rpc.Remote, dialler: int, number: int) -> None:
        request = sealed(dialler, number, lengths.choice((0, 10, 100, 1500, 4000)))
        reply = await remote.call(request, timeout=None)
        assert unseal(reply[::-1]) == (dialler, number)
        returned.append((dialler, number))

    async with (
        rpc.serve(client, route.requests, route.stream_id, handler),
        rpc.dial(client, route.requests, route.stream_id) as one,
        rpc.dial(other_client, route.requests, route.stream_id) as two,
    ):
        with anyio.fail_after(2 * LIMIT):
            async with anyio.create_task_group() as tasks:
                for number in range(1000):
                    tasks.start_soon(call, one, 1, number)
                    tasks.start_soon(call, two, 2, number)
        assert one.pending_calls == two.pending_calls == 0
        assert one.ignored_frames == two.ignored_frames == 0
    assert sorted(returned) == [(dialler, number) for dialler in (1, 2) for number in range(1000)]
    assert handler.calls == 2000
    assert 1 < handler.most_running <= 64
    await eventually(lambda: holds_nothing(client))


async def test_beyond_the_concurrency_requests_wait_and_none_is_dropped(client: Client, route: Route) -> None:
    gate = anyio.Event()
    running: set[bytes] = set()
    returned: list[bytes] = []

    async def handler(request: bytes) -> bytes:
        running.add(request)
        await gate.wait()
        running.remove(request)
        return request

    async def call(remote: rpc.Remote, number: int) -> None:
        payload = b"%d" % number
        # So long that they do not all fit into the stream.
        assert await remote.call(payload.ljust(2000), timeout=None) == payload.ljust(2000)
        returned.append(payload)

    async with (
        rpc.serve(client, route.requests, route.stream_id, handler, concurrency=5),
        rpc.dial(client, route.requests, route.stream_id) as remote,
    ):
        with anyio.fail_after(LIMIT):
            async with anyio.create_task_group() as tasks:
                for number in range(200):
                    tasks.start_soon(call, remote, number)
                await eventually(lambda: len(running) == 5)
                # Time enough for a sixth to be started by mistake.
                await anyio.sleep(0.1)
                assert len(running) == 5
                assert remote.pending_calls == 200
                gate.set()
    assert sorted(map(int, returned)) == list(range(200))


async def test_a_storm_of_cancelled_and_late_calls_leaves_nothing_behind(
    client: Client, other_client: Client, route: Route
) -> None:
    handler = Reverser(longest_delay=0.05)
    chance = random.Random(3)
    outcomes = {"replied": 0, "cancelled": 0, "late": 0}

    async def call(remote: rpc.Remote, number: int) -> None:
        request = sealed(0, number, chance.choice((0, 100, 4000)))
        outcome = "cancelled"
        with anyio.move_on_after(chance.choice((0, 0.001, 0.01, 0.1, LIMIT))):
            try:
                reply = await remote.call(request, timeout=chance.choice((0, 0.001, 0.01, 0.1, LIMIT)))
                assert unseal(reply[::-1]) == (0, number)
                outcome = "replied"
            except CallTimeoutError:
                outcome = "late"
        outcomes[outcome] += 1

    async with (
        rpc.serve(client, route.requests, route.stream_id, handler),
        rpc.dial(other_client, route.requests, route.stream_id) as remote,
    ):
        with anyio.fail_after(2 * LIMIT):
            async with anyio.create_task_group() as tasks:
                for number in range(1000):
                    tasks.start_soon(call, remote, number)
                    if number % 50 == 0:
                        await anyio.sleep(0.001)
        assert remote.pending_calls == 0
        await eventually(lambda: handler.running == 0)
        # Everything works as before.
        for number in range(100):
            assert await remote.call(b"%d" % number, timeout=LIMIT) == (b"%d" % number)[::-1]
        assert remote.ignored_frames == 0
    assert sum(outcomes.values()) == 1000
    assert all(outcomes.values()), outcomes
    await eventually(lambda: holds_nothing(client))


async def flood(dialler: PlainDialler, count: int, length: int) -> None:
    for number in range(count):
        await dialler.requests.publish(encode_header(number, FrameKind.REQUEST) + bytes(length), timeout=None)


async def test_a_dialler_that_reads_late_delays_nobody_else_and_gets_all_its_replies(
    client: Client, other_client: Client, route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc_server, "_REPLY_TIMEOUT", LIMIT)
    handler = Reverser()
    async with (
        rpc.serve(client, route.requests, route.stream_id, handler, concurrency=4),
        plain_dialler(other_client, route) as slow,
        anyio.create_task_group() as tasks,
    ):
        await slow.wait_connected()
        tasks.start_soon(flood, slow, 1000, 1000)
        # The requests and replies that fit nowhere stay in its stream.
        previous = -1
        while previous != handler.calls:
            previous = handler.calls
            await anyio.sleep(0.2)
        assert previous < 1000
        async with rpc.dial(client, route.requests, route.stream_id, timeout=LIMIT) as quick:
            for number in range(100):
                assert await quick.call(b"%d" % number, timeout=LIMIT) == (b"%d" % number)[::-1]
        replies = await take(slow.responses.payloads(), 1000)
        assert sorted(decode_header(reply)[0] for reply in replies) == list(range(1000))
        assert {reply[HEADER_LENGTH:] for reply in replies} == {bytes(1000)}


async def test_a_dialler_that_never_reads_is_given_up(
    client: Client, other_client: Client, route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc_server, "_REPLY_TIMEOUT", 0.5)
    async with (
        rpc.serve(client, route.requests, route.stream_id, Reverser(), concurrency=4),
        plain_dialler(other_client, route) as dead,
        rpc.dial(client, route.requests, route.stream_id) as quick,
        anyio.create_task_group() as tasks,
    ):
        await dead.wait_connected()
        tasks.start_soon(flood, dead, 500, 1000)
        with anyio.fail_after(LIMIT):
            while dead.responses.is_connected:
                assert await quick.call(b"well", timeout=LIMIT) == b"llew"
        # Its further requests are dropped, and so keep nobody.
        assert await quick.call(b"well", timeout=LIMIT) == b"llew"

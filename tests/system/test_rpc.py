"""Calls and their replies."""

from __future__ import annotations

import array
import random

import anyio
import numpy as np
import pytest

from aeron_async import (
    CallTimeoutError,
    ChannelError,
    ChannelUri,
    Client,
    ClosedError,
    MessageTooLongError,
    NotConnectedError,
    RemoteError,
    rpc,
)
from aeron_async.protocol.rpc_frames import FrameKind, encode_header
from tests.response_routes import Route, echo, plain_dialler, plain_server, route_of
from tests.support import LIMIT, eventually, holds_nothing, take

pytestmark = pytest.mark.anyio


async def test_a_call_returns_what_the_handler_returns(client: Client, other_client: Client, route: Route) -> None:
    async def reverse(request: bytes) -> bytes:
        return request[::-1]

    async with (
        rpc.serve(client, route.requests, route.stream_id, reverse),
        rpc.dial(other_client, route.requests, route.stream_id) as remote,
    ):
        assert remote.is_connected
        assert await remote.call(b"question", timeout=LIMIT) == b"noitseuq"
        assert await remote.call(b"", timeout=LIMIT) == b""
    await eventually(lambda: holds_nothing(client))


async def test_requests_and_replies_are_anything_with_a_buffer(client: Client, stream_id: int) -> None:
    replies = iter([bytearray(b"one"), memoryview(b"two"), array.array("i", [3]), np.arange(4, dtype="<i4")])

    async def handler(request: bytes) -> object:
        assert request == b"\1\0\0\0\2\0\0\0"
        return next(replies)

    async with (
        rpc.serve(client, "aeron:ipc", 2 * stream_id, handler),
        rpc.dial(client, "aeron:ipc", 2 * stream_id) as remote,
    ):
        requests = [array.array("i", [1, 2]), np.array([1, 2], dtype="<i4"), memoryview(b"\1\0\0\0\2\0\0\0")]
        assert [await remote.call(request, timeout=LIMIT) for request in requests] == [b"one", b"two", b"\3\0\0\0"]
        assert await remote.call(bytearray(b"\1\0\0\0\2\0\0\0"), timeout=LIMIT) == np.arange(4, dtype="<i4").tobytes()
        with pytest.raises(TypeError):
            await remote.call("text")
        with pytest.raises(BufferError):
            await remote.call(memoryview(b"abcd")[::2])
        assert remote.pending_calls == 0


async def test_messages_longer_than_the_mtu_arrive_whole(client: Client, route: Route) -> None:
    async with (
        rpc.serve(client, route.requests, route.stream_id, echo),
        rpc.dial(client, route.requests, route.stream_id) as remote,
    ):
        for length in (1391, 1392, 1393, 5000, 8176):
            payload = random.Random(length).randbytes(length)
            assert await remote.call(payload, timeout=LIMIT) == payload


async def test_a_message_longer_than_a_stream_takes_is_an_error_and_no_more(client: Client, route: Route) -> None:
    async def stretch(request: bytes) -> bytes:
        return bytes(int(request))

    longest = (64 << 10) // 8 - 16
    async with (
        rpc.serve(client, route.requests, route.stream_id, stretch),
        rpc.dial(client, route.requests, route.stream_id) as remote,
    ):
        with pytest.raises(MessageTooLongError):
            await remote.call(bytes(longest + 1))
        with pytest.raises(RemoteError, match=f"reply of {longest + 1} bytes is too long.* takes {longest}"):
            await remote.call(b"%d" % (longest + 1), timeout=LIMIT)
        assert await remote.call(b"%d" % longest, timeout=LIMIT) == bytes(longest)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("out of range"), "out of range"),
        (ValueError("größer als 5 €, 以上"), "größer als 5 €, 以上"),
        (KeyError("name"), "'name'"),
        (RuntimeError(), "RuntimeError"),
        (ValueError("\udcff is no text"), "\\udcff is no text"),
        (ValueError("€" * 10_000), "€" * 1365),
        (TimeoutError("upstream"), "upstream"),
    ],
)
async def test_a_handler_that_raises_gives_its_caller_the_text(
    client: Client, stream_id: int, error: Exception, text: str
) -> None:
    async def fail(request: bytes) -> bytes:
        if request:
            raise error
        return b"well"

    async with (
        rpc.serve(client, "aeron:ipc", 2 * stream_id, fail),
        rpc.dial(client, "aeron:ipc", 2 * stream_id) as remote,
    ):
        with pytest.raises(RemoteError) as raised:
            await remote.call(b"please", timeout=LIMIT)
        assert str(raised.value) == text
        assert await remote.call(b"", timeout=LIMIT) == b"well"


@pytest.mark.parametrize("reply", [None, "text", 7])
async def test_a_reply_that_is_no_bytes_is_an_error_of_the_handler(
    client: Client, stream_id: int, reply: object
) -> None:
    async def handler(request: bytes) -> object:
        return reply

    async with (
        rpc.serve(client, "aeron:ipc", 2 * stream_id, handler),
        rpc.dial(client, "aeron:ipc", 2 * stream_id) as remote,
    ):
        with pytest.raises(RemoteError, match=f"bytes-like object is required, not '{type(reply).__name__}'"):
            await remote.call(b"please", timeout=LIMIT)


async def test_replies_may_come_in_any_order(client: Client, route: Route) -> None:
    gates = [anyio.Event() for _ in range(10)]
    order: list[int] = []

    async def handler(request: bytes) -> bytes:
        await gates[int(request)].wait()
        return request

    async def call(remote: rpc.Remote, number: int) -> None:
        assert await remote.call(b"%d" % number, timeout=LIMIT) == b"%d" % number
        order.append(number)

    async with (
        rpc.serve(client, route.requests, route.stream_id, handler),
        rpc.dial(client, route.requests, route.stream_id) as remote,
        anyio.create_task_group() as tasks,
    ):
        for number in range(10):
            tasks.start_soon(call, remote, number)
        await eventually(lambda: remote.pending_calls == 10)
        for number in (7, 0, 9, 3, 1, 8, 2, 6, 4, 5):
            gates[number].set()
            await eventually(lambda number=number: number in order)
    assert order == [7, 0, 9, 3, 1, 8, 2, 6, 4, 5]


async def test_diallers_get_their_own_replies_and_no_others(client: Client, other_client: Client, route: Route) -> None:
    async with (
        rpc.serve(client, route.requests, route.stream_id, echo) as server,
        rpc.dial(client, route.requests, route.stream_id) as one,
        rpc.dial(client, route.requests, route.stream_id) as two,
        rpc.dial(other_client, route.requests, route.stream_id) as three,
    ):
        assert server.dialler_count == 3

        async def call(remote: rpc.Remote, name: str) -> None:
            # The diallers use the same correlation ids.
            for number in range(100):
                payload = f"{name} {number}".encode()
                assert await remote.call(payload, timeout=LIMIT) == payload

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, one, "one")
            tasks.start_soon(call, two, "two")
            tasks.start_soon(call, three, "three")
        assert (one.ignored_frames, two.ignored_frames, three.ignored_frames) == (0, 0, 0)


async def test_diallers_come_and_go(client: Client, route: Route) -> None:
    async with rpc.serve(client, route.requests, route.stream_id, echo) as server:
        for number in range(5):
            async with rpc.dial(client, route.requests, route.stream_id, timeout=LIMIT) as remote:
                assert await remote.call(b"%d" % number, timeout=LIMIT) == b"%d" % number
        await eventually(lambda: server.dialler_count == 0)
    await eventually(lambda: holds_nothing(client))


async def test_a_server_may_be_opened_again_at_once(client: Client, route: Route) -> None:
    for number in range(5):
        async with (
            rpc.serve(client, route.requests, route.stream_id, echo),
            rpc.dial(client, route.requests, route.stream_id, timeout=LIMIT) as remote,
        ):
            assert await remote.call(b"%d" % number, timeout=LIMIT) == b"%d" % number


async def test_channels_and_streams_of_the_responses_may_be_given(client: Client, route: Route, stream_id: int) -> None:
    channels = {
        "channel": ChannelUri.parse(route.requests).replace(term_length="128k"),
        "stream_id": route.stream_id,
        "response_channel": f"{route.responses}|term-length=256k|alias=answers",
        "response_stream_id": -stream_id,
    }
    async with (
        rpc.serve(client, handler=echo, **channels),
        rpc.dial(client, **channels) as remote,
    ):
        payload = bytes((128 << 10) // 8 - 16)
        assert await remote.call(payload, timeout=LIMIT) == payload
        await eventually(lambda: {-stream_id, route.stream_id} <= publisher_streams(client))


def publisher_streams(client: Client) -> set[int]:
    return {int.from_bytes(info.key[12:16], "little", signed=True) for info in client.counters.find(type_id=1)}


@pytest.mark.parametrize(
    ("channel", "response_channel", "message"),
    [
        ("aeron:udp?endpoint=127.0.0.1:0", None, "response_channel"),
        ("aeron:udp?control=127.0.0.1:40123|control-mode=dynamic", None, "response_channel"),
        ("aeron:udp?endpoint=127.0.0.1:65535", None, "control"),
        ("aeron:udp?endpoint=127.0.0.1", None, "endpoint"),
        ("aeron:ipc", "aeron:ipc", "control-mode=response"),
        ("aeron:udp?endpoint=127.0.0.1:40123", "aeron:udp?control=127.0.0.1:40124", "control-mode=response"),
        ("ipc", None, "aeron:"),
    ],
)
async def test_channels_that_cannot_be_are_refused(
    client: Client, channel: str, response_channel: str | None, message: str
) -> None:
    with pytest.raises(ChannelError, match=message):
        async with rpc.serve(client, channel, 1, echo, response_channel=response_channel):
            pass
    with pytest.raises(ChannelError, match=message):
        async with rpc.dial(client, channel, 1, response_channel=response_channel):
            pass


async def test_concurrency_is_at_least_one(client: Client) -> None:
    with pytest.raises(ValueError, match="concurrency=0"):
        async with rpc.serve(client, "aeron:ipc", 1, echo, concurrency=0):
            pass


async def test_a_response_address_that_is_taken_is_an_error_of_the_server(client: Client, stream_id: int) -> None:
    route = route_of("udp", 2 * stream_id)
    endpoint = route.responses.partition("control=")[2]
    async with await client.add_subscription(f"aeron:udp?endpoint={endpoint}", 1):
        with pytest.raises(Exception, match=r"[Aa]ddress already in use"):
            async with rpc.serve(client, route.requests, route.stream_id, echo):
                pass


async def test_dialling_nobody_fails_after_the_timeout_and_leaves_nothing(client: Client, route: Route) -> None:
    with pytest.raises(NotConnectedError, match=r"within 0\.1 s"):
        async with rpc.dial(client, route.requests, route.stream_id, timeout=0.1):
            pass
    await eventually(lambda: holds_nothing(client))


async def test_dialling_somebody_who_never_answers_fails_after_the_timeout(client: Client, route: Route) -> None:
    async with await client.add_subscription(route.requests, route.stream_id) as requests:
        with pytest.raises(NotConnectedError, match=r"within 0\.5 s"):
            async with rpc.dial(client, route.requests, route.stream_id, timeout=0.5):
                pass
        await eventually(lambda: requests.image_count == 0)
    await eventually(lambda: holds_nothing(client))


async def test_dialling_waits_for_a_server_that_comes_later(client: Client, route: Route) -> None:
    async with anyio.create_task_group() as tasks:
        served = anyio.Event()

        async def serve() -> None:
            await anyio.sleep(0.1)
            async with rpc.serve(client, route.requests, route.stream_id, echo):
                await served.wait()

        tasks.start_soon(serve)
        async with rpc.dial(client, route.requests, route.stream_id, timeout=LIMIT) as remote:
            assert await remote.call(b"at last", timeout=LIMIT) == b"at last"
        served.set()


async def test_a_call_that_was_not_answered_in_time_is_forgotten(client: Client, route: Route) -> None:
    gate = anyio.Event()

    async def handler(request: bytes) -> bytes:
        if request == b"slow":
            await gate.wait()
        return request

    async with (
        rpc.serve(client, route.requests, route.stream_id, handler),
        rpc.dial(client, route.requests, route.stream_id) as remote,
    ):
        with pytest.raises(CallTimeoutError, match=r"no reply within 0\.05 s"):
            await remote.call(b"slow", timeout=0.05)
        assert remote.pending_calls == 0
        # Its late reply goes to nobody.
        gate.set()
        assert await remote.call(b"next", timeout=LIMIT) == b"next"
        assert remote.ignored_frames == 0


async def test_a_call_that_was_cancelled_is_forgotten(client: Client, route: Route) -> None:
    started, gate = anyio.Event(), anyio.Event()

    async def handler(request: bytes) -> bytes:
        if request == b"slow":
            started.set()
            await gate.wait()
        return request

    async with (
        rpc.serve(client, route.requests, route.stream_id, handler),
        rpc.dial(client, route.requests, route.stream_id) as remote,
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(remote.call, b"slow")
            await started.wait()
            tasks.cancel_scope.cancel()
        assert remote.pending_calls == 0
        gate.set()
        assert await remote.call(b"next", timeout=LIMIT) == b"next"
        assert remote.ignored_frames == 0


async def test_calls_after_the_dialler_was_closed_fail_and_those_under_way_too(client: Client, route: Route) -> None:
    started = anyio.Event()

    async def handler(request: bytes) -> bytes:
        started.set()
        await anyio.sleep_forever()
        raise AssertionError

    async with rpc.serve(client, route.requests, route.stream_id, handler), anyio.create_task_group() as tasks:
        async with rpc.dial(client, route.requests, route.stream_id) as remote:

            async def call() -> None:
                with pytest.raises(ClosedError):
                    await remote.call(b"", timeout=LIMIT)

            tasks.start_soon(call)
            await started.wait()
        with pytest.raises(ClosedError):
            await remote.call(b"")
        with pytest.raises(ClosedError):
            await remote.wait_connected()
        assert not remote.is_connected


async def test_a_context_that_is_left_at_once_leaves_nothing(client: Client, route: Route) -> None:
    async with rpc.serve(client, route.requests, route.stream_id, echo):
        pass
    async with rpc.serve(client, route.requests, route.stream_id, echo) as server:
        async with rpc.dial(client, route.requests, route.stream_id, timeout=LIMIT):
            pass
        await eventually(lambda: server.dialler_count == 0)
    await eventually(lambda: holds_nothing(client))


async def test_contexts_may_be_entered_in_one_task_and_left_in_another(client: Client, route: Route) -> None:
    serving = rpc.serve(client, route.requests, route.stream_id, echo)
    dialling = rpc.dial(client, route.requests, route.stream_id)
    remotes: list[rpc.Remote] = []

    async def enter() -> None:
        await serving.__aenter__()
        remotes.append(await dialling.__aenter__())

    async def leave() -> None:
        await dialling.__aexit__(None, None, None)
        await serving.__aexit__(None, None, None)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(enter)
    assert await remotes[0].call(b"between", timeout=LIMIT) == b"between"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(leave)
    await eventually(lambda: holds_nothing(client))


async def test_errors_of_the_user_come_out_as_they_are(client: Client, route: Route) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with (
            rpc.serve(client, route.requests, route.stream_id, echo),
            rpc.dial(client, route.requests, route.stream_id),
        ):
            raise KeyError("mine")


def frame(kind: int, correlation_id: int, payload: bytes = b"", version: int = 1) -> bytes:
    return correlation_id.to_bytes(8, "little", signed=True) + bytes([kind, version, 0, 0, 0, 0, 0, 0]) + payload


GARBAGE = [b"", b"\1", bytes(15), bytes(16), frame(9, 1), frame(1, 1, version=2), frame(2, 1, version=0), b"\xff" * 100]


async def test_a_server_counts_and_ignores_what_is_no_request(client: Client, route: Route) -> None:
    async with (
        rpc.serve(client, route.requests, route.stream_id, echo) as server,
        plain_dialler(client, route) as dialler,
    ):
        for garbage in (*GARBAGE, frame(2, 1), frame(3, 1, b"no")):
            await dialler.requests.publish(garbage, timeout=LIMIT)
        await dialler.requests.publish(frame(1, -5, b"well"), timeout=LIMIT)
        assert await take(dialler.responses.payloads(), 1) == [frame(2, -5, b"well")]
        assert server.ignored_frames == len(GARBAGE) + 2


async def test_a_dialler_counts_and_ignores_what_is_no_reply(client: Client, route: Route) -> None:
    def answer(request: bytes, _: object) -> list[bytes]:
        correlation_id = int.from_bytes(request[:8], "little")
        foreign = encode_header(correlation_id, FrameKind.REQUEST)
        unknown = frame(2, correlation_id + 1000, b"of nobody")
        return [*GARBAGE, foreign, unknown, frame(2, correlation_id, b"well"), frame(2, correlation_id, b"again")]

    async with (
        plain_server(client, route, answer),
        rpc.dial(client, route.requests, route.stream_id) as remote,
    ):
        assert await remote.call(b"", timeout=LIMIT) == b"well"
        assert await remote.call(b"", timeout=LIMIT) == b"well"
        assert remote.ignored_frames == 2 * (len(GARBAGE) + 1)


async def test_an_error_frame_that_is_no_text_is_an_error_still(client: Client, stream_id: int) -> None:
    route = route_of("ipc", 2 * stream_id)
    async with (
        plain_server(client, route, lambda request, _: [frame(3, request[0], b"\xff caf\xc3\xa9")]),
        rpc.dial(client, route.requests, route.stream_id) as remote,
    ):
        with pytest.raises(RemoteError, match="\ufffd café"):
            await remote.call(b"", timeout=LIMIT)


async def test_a_publisher_that_asked_for_no_responses_harms_nobody(client: Client, route: Route) -> None:
    async with (
        rpc.serve(client, route.requests, route.stream_id, echo),
        await client.add_exclusive_publication(route.requests, route.stream_id) as stranger,
        rpc.dial(client, route.requests, route.stream_id, timeout=LIMIT) as remote,
    ):
        for number in range(200):
            await stranger.publish(frame(1, number), timeout=LIMIT)
        assert await remote.call(b"well", timeout=LIMIT) == b"well"

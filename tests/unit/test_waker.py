"""The waker: what it notices, once, and that nobody waits for ever."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from aeron_async._core import Broadcast
from aeron_async._native import ffi, lib
from aeron_async._waker import Waker
from aeron_async.idle import Parking
from aeron_async.subscription import Image
from tests.unit.rig import Rig, until

pytestmark = pytest.mark.anyio


class Calls:
    """How often the waker has called for the broadcast."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


@pytest.fixture
def on_broadcast() -> Calls:
    return Calls()


@pytest.fixture
def broadcast(rig: Rig) -> Broadcast:
    return Broadcast(rig.cnc)


@pytest.fixture
async def waker(rig: Rig, broadcast: Broadcast, on_broadcast: Calls, anyio_backend: Any) -> AsyncIterator[Waker]:
    waker = Waker(
        rig.cnc,
        broadcast,
        rig.conductor.client_id,
        keepalive_interval=0.01,
        loop_stall_limit=60.0,
        idle=Parking(),
        on_broadcast=on_broadcast,
    )
    yield waker
    waker.close()


def watch(waker: Waker, *images: Image) -> tuple[list[str], Any]:
    """Watches images; what was called, and what ends the watch."""
    called: list[str] = []
    handles = ffi.new("aa_image_t *[]", [image._handle for image in images])
    return called, waker.watch_images(handles, len(images), lambda: called.append("ready"))


async def test_a_response_is_noticed(rig: Rig, broadcast: Broadcast, on_broadcast: Calls, waker: Waker) -> None:
    for _ in range(5):
        rig.driver.transmit(0x0FFF, b"record")
        await until(lambda before=on_broadcast.count: on_broadcast.count > before)
        assert broadcast.receive() is not None
    assert broadcast.receive() is None


async def test_a_message_is_noticed_once(rig: Rig, waker: Waker) -> None:
    stream = rig.add_image(rig.add_subscription())
    called, _ = watch(waker, stream.image)
    await anyio.sleep(0.01)
    assert called == []
    stream.log.append(b"one")
    await until(lambda: called == ["ready"])
    stream.log.append(b"two")
    await anyio.sleep(0.01)
    assert called == ["ready"]


async def test_a_message_that_is_there_already_is_noticed(rig: Rig, waker: Waker) -> None:
    stream = rig.add_image(rig.add_subscription())
    stream.log.append(b"one")
    called, _ = watch(waker, stream.image)
    await until(lambda: called == ["ready"])


async def test_a_message_of_any_of_the_images_is_noticed(rig: Rig, waker: Waker) -> None:
    subscription = rig.add_subscription()
    streams = [rig.add_image(subscription, correlation_id=number) for number in range(3)]
    called, _ = watch(waker, *(stream.image for stream in streams))
    streams[1].log.append(b"message")
    await until(lambda: called == ["ready"])


async def test_an_image_that_is_closed_is_noticed(rig: Rig, waker: Waker) -> None:
    stream = rig.add_image(rig.add_subscription())
    called, _ = watch(waker, stream.image)
    rig.remove_image(stream.image)
    await until(lambda: called == ["ready"])


async def test_a_watch_that_was_ended_calls_nobody(rig: Rig, waker: Waker) -> None:
    stream = rig.add_image(rig.add_subscription())
    called, unwatch = watch(waker, stream.image)
    unwatch()
    unwatch()
    stream.log.append(b"one")
    await anyio.sleep(0.02)
    assert called == []


async def test_many_watches_are_all_called(rig: Rig, waker: Waker) -> None:
    stream = rig.add_image(rig.add_subscription())
    watches = [watch(waker, stream.image)[0] for _ in range(200)]
    stream.log.append(b"one")
    await until(lambda: all(called == ["ready"] for called in watches))


@pytest.mark.parametrize("kind", [lib.AA_WATCH_WRITABLE, lib.AA_WATCH_CONNECTED], ids=["writable", "connected"])
async def test_a_publication_that_is_ready_is_noticed(rig: Rig, waker: Waker, kind: int) -> None:
    log = rig.driver.create_log()
    log.is_connected = False
    publication, _, limit = rig.add_publication(log, limit=0)
    returned = False

    async def wait() -> None:
        nonlocal returned
        await waker.wait_publication(publication._handle, kind)
        returned = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.sleep(0.01)
        assert not returned
        log.is_connected = True
        if kind == lib.AA_WATCH_WRITABLE:
            await anyio.sleep(0.01)
            assert not returned
            limit.value = 64


async def test_a_cancelled_wait_for_a_publication_leaves_nothing_behind(rig: Rig, waker: Waker) -> None:
    publication, _, _ = rig.add_publication(limit=0)
    with anyio.move_on_after(0.01):
        await waker.wait_publication(publication._handle, lib.AA_WATCH_WRITABLE)
    assert waker._waiting == {}


async def test_closing_calls_everybody_who_waits(rig: Rig, waker: Waker) -> None:
    stream = rig.add_image(rig.add_subscription())
    publication, _, _ = rig.add_publication(limit=0)
    called, unwatch = watch(waker, stream.image)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(waker.wait_publication, publication._handle, lib.AA_WATCH_WRITABLE)
        await anyio.sleep(0.01)
        waker.close()
    assert called == ["ready"]
    unwatch()
    waker.close()


async def test_once_closed_nobody_waits(rig: Rig, waker: Waker) -> None:
    stream = rig.add_image(rig.add_subscription())
    publication, _, _ = rig.add_publication(limit=0)
    waker.close()
    called, unwatch = watch(waker, stream.image)
    assert called == ["ready"]
    unwatch()
    await waker.wait_publication(publication._handle, lib.AA_WATCH_WRITABLE)
    waker.beat()
    waker.nudge()


async def test_the_heartbeat_is_kept_up_while_the_loop_is_blocked(rig: Rig, waker: Waker) -> None:
    counter = rig.allocate_heartbeat_counter()
    for _ in range(2):
        before = counter.value
        deadline = time.monotonic() + 30
        while counter.value == before and time.monotonic() < deadline:
            time.sleep(0.001)  # noqa: ASYNC251 (the loop is blocked on purpose)
        assert counter.value > before

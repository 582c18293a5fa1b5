"""Uses of a client that few programs need and none may be harmed by."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from aeron_async import (
    Client,
    DriverNotRunningError,
    DriverStartError,
    MediaDriver,
    Publication,
    Subscription,
    connect,
    rpc,
)
from tests.support import (
    LIMIT,
    eventually,
    is_running,
    private_folders,
    quick_config,
    run_program,
    running_driver,
    scratch_folder,
    take,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def aeron_dir() -> Iterator[Path]:
    """The directory of a driver that none of these tests harms."""
    with running_driver() as driver:
        yield driver.aeron_dir


@pytest.fixture
async def client(aeron_dir: Path) -> AsyncIterator[Client]:
    async with connect(aeron_dir) as client:
        yield client


async def test_resources_keep_the_driver_of_a_client_that_nobody_holds(runtime_dir: Path) -> None:
    async def open_stream() -> tuple[Subscription, Publication]:
        client = await connect(driver=quick_config())
        return await client.add_subscription("aeron:ipc", 1), await client.add_publication("aeron:ipc", 1)

    subscription, publication = await open_stream()
    gc.collect()
    await anyio.sleep(0.5)
    with anyio.fail_after(LIMIT):
        await publication.publish(b"still there")
        assert await take(subscription.payloads(), 1) == [b"still there"]


async def test_one_connect_that_is_awaited_twice_at_once_starts_one_driver(runtime_dir: Path) -> None:
    connecting = connect(driver=quick_config())
    clients: list[Client] = []

    async def open_client() -> None:
        clients.append(await connecting)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_client)
        tasks.start_soon(open_client)
    pids = {client.driver.pid for client in clients if client.driver is not None}
    assert len(pids) == 1
    for client in clients:
        await client.aclose()
    await eventually(lambda: not any(map(is_running, pids)))


async def test_a_driver_that_is_started_twice_at_once_is_started_once(runtime_dir: Path) -> None:
    driver = MediaDriver(quick_config())
    refused: list[RuntimeError] = []

    async def start() -> None:
        try:
            await driver.start()
        except RuntimeError as error:
            refused.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start)
        tasks.start_soon(start)
    assert len(refused) == 1
    await driver.aclose()
    assert private_folders(runtime_dir) == []


async def test_one_connect_that_is_entered_twice_closes_both_clients(runtime_dir: Path) -> None:
    connecting = connect(driver=quick_config())
    async with connecting as outer:
        async with connecting as inner:
            assert inner is not outer
        assert inner.is_closed
        assert not outer.is_closed
    assert outer.is_closed


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_eager_tasks_are_no_different(aeron_dir: Path, anyio_backend: Any) -> None:
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]

    async def echo(request: bytes) -> bytes:
        return request

    async with (
        connect(aeron_dir) as client,
        rpc.serve(client, "aeron:ipc", 7001, echo, concurrency=2),
        rpc.dial(client, "aeron:ipc", 7001) as remote,
    ):
        for number in range(20):
            assert await remote.call(b"%d" % number, timeout=LIMIT) == b"%d" % number


@pytest.mark.parametrize("timeout", [timedelta(seconds=1), Decimal(1), "1"])
async def test_a_timeout_that_is_no_number_is_refused(client: Client, timeout: Any) -> None:
    with pytest.raises(TypeError, match="timeout must be seconds"):
        await client.add_publication("aeron:ipc", 1, timeout=timeout)


@pytest.mark.parametrize("stream_id", ["1", None, 1.0])
async def test_a_stream_id_that_is_no_integer_is_refused(client: Client, stream_id: Any) -> None:
    with pytest.raises(TypeError, match="stream_id must be an int"):
        await client.add_subscription("aeron:ipc", stream_id)


async def test_a_message_that_is_text_is_refused(client: Client) -> None:
    publication = await client.add_publication("aeron:ipc", 1)
    with pytest.raises(TypeError, match="bytes-like, not str"):
        publication.offer("text")  # type: ignore[arg-type]


async def test_a_stall_limit_may_be_infinite(aeron_dir: Path) -> None:
    async with connect(aeron_dir, loop_stall_limit=float("inf")) as client:
        await client.add_publication("aeron:ipc", 1)


def test_a_stall_limit_within_the_keepalive_interval_is_refused(aeron_dir: Path) -> None:
    with pytest.raises(ValueError, match="must be greater than keepalive_interval"):
        connect(aeron_dir, loop_stall_limit=0.4)


async def test_a_directory_that_its_driver_left_cleanly_is_told_apart() -> None:
    with scratch_folder() as folder:
        kept = quick_config(aeron_dir=folder / "aeron", environment={"AERON_DIR_DELETE_ON_SHUTDOWN": "false"})
        async with MediaDriver(kept) as driver:
            cnc = (driver.aeron_dir / "cnc.dat").open("rb")
        # As Aeron's own driver leaves it; ours takes its directory along.
        with cnc:
            left = folder / "left"
            left.mkdir()
            (left / "cnc.dat").write_bytes(cnc.read())
        with pytest.raises(DriverNotRunningError, match="its driver has shut down"):
            await connect(left, driver_timeout=0.1)


async def test_a_directory_that_is_not_utf8_is_refused() -> None:
    with scratch_folder() as folder:
        path = os.fsdecode(os.fsencode(folder) + b"/\xff")
        with pytest.raises(DriverStartError):
            await MediaDriver(quick_config(aeron_dir=path)).start()


def test_a_name_beyond_ascii_works_in_a_c_locale() -> None:
    program = """
        import asyncio, sys
        import aeron_async

        async def main():
            async with aeron_async.connect(sys.argv[1], driver="embedded") as client:
                await client.add_publication("aeron:ipc", 1)
                print("added")

        asyncio.run(main())
    """
    environment = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    with scratch_folder() as folder:
        assert run_program(program, folder / "gr\u00fc\u00dfe", environment=environment) == "added\n"


def test_an_exit_in_a_forked_child_is_the_childs_own(runtime_dir: Path) -> None:
    program = """
        import asyncio, os, sys, warnings
        import aeron_async

        warnings.simplefilter("ignore", DeprecationWarning)

        async def main():
            async with aeron_async.connect():
                child = os.fork()
                if child == 0:
                    sys.exit(3)
                _, status = os.waitpid(child, 0)
                print(os.waitstatus_to_exitcode(status))

        asyncio.run(main())
    """
    assert run_program(program) == "3\n"


def test_a_client_of_an_ended_loop_is_closed_at_once_in_another(runtime_dir: Path) -> None:
    client = asyncio.run(_open())
    assert client.driver is not None
    pid = client.driver.pid

    async def close() -> None:
        with anyio.fail_after(8):
            await client.aclose()

    asyncio.run(close())
    asyncio.run(eventually(lambda: not is_running(pid)))


async def _open() -> Client:
    return await connect(driver=quick_config())

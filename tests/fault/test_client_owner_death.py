"""Owners of embedded drivers that are killed, alone or together with their drivers."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio.to_thread
import pytest

from aeron_async import connect
from tests.support import RUNNERS, Program, eventually, is_running, private_folders, quick_config

pytestmark = pytest.mark.anyio

OWN_A_DRIVER = """
    import anyio
    from aeron_async import connect

    async def main():
        async with connect() as client:
            await client.add_subscription("aeron:ipc", 1001)
            print(client.driver.pid, flush=True)
            await anyio.sleep_forever()
"""


@pytest.fixture(params=list(RUNNERS))
def program(request: pytest.FixtureRequest) -> str:
    return f"{OWN_A_DRIVER}\n    {RUNNERS[request.param]}\n"


@pytest.fixture
def anyio_backend() -> str:
    """The event loop under test is the program's."""
    return "asyncio"


async def test_a_driver_ends_with_its_killed_owner_and_leaves_nothing(runtime_dir: Path, program: str) -> None:
    with Program(program) as owner:
        driver_pid = int(await anyio.to_thread.run_sync(owner.line))
        assert len(private_folders(runtime_dir)) == 1
        owner.signal(signal.SIGKILL)
        await anyio.to_thread.run_sync(owner.finish)
    await eventually(lambda: not is_running(driver_pid))
    await eventually(lambda: private_folders(runtime_dir) == [])


async def test_what_a_killed_owner_and_its_killed_driver_left_is_swept_by_the_next(
    runtime_dir: Path, program: str
) -> None:
    with Program(program) as owner:
        driver_pid = int(await anyio.to_thread.run_sync(owner.line))
        owner.signal(signal.SIGSTOP)
        os.kill(driver_pid, signal.SIGKILL)
        owner.signal(signal.SIGKILL)
        await anyio.to_thread.run_sync(owner.finish)
    await eventually(lambda: not is_running(driver_pid))
    (left,) = private_folders(runtime_dir)
    async with connect(driver=quick_config()) as client:
        assert not left.exists()
        assert len(private_folders(runtime_dir)) == 1
        await client.add_subscription("aeron:ipc", 1001)


async def test_the_folder_of_a_living_owner_is_left_alone(runtime_dir: Path, program: str) -> None:
    with Program(program) as owner:
        driver_pid = int(await anyio.to_thread.run_sync(owner.line))
        (folder,) = private_folders(runtime_dir)
        async with connect(driver=quick_config()) as client:
            await client.add_subscription("aeron:ipc", 1001)
            assert folder.exists()
            assert len(private_folders(runtime_dir)) == 2
        assert is_running(driver_pid)
        assert private_folders(runtime_dir) == [folder]

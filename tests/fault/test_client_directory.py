"""Connecting to directories in which there is no driver, or nothing that makes sense."""

from __future__ import annotations

import os
import random
import shutil
import signal
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from aeron_async import (
    Client,
    CncVersionError,
    CorruptFileError,
    DriverError,
    DriverNotFoundError,
    DriverNotRunningError,
    MediaDriver,
    RegistrationError,
    connect,
)
from aeron_async.driver import launch
from aeron_async.protocol.cnc import METADATA_LENGTH
from tests.support import eventually, open_pair, private_folders, quick_config, run_program, take

pytestmark = pytest.mark.anyio

ON_ONE_LOOP = pytest.mark.parametrize("anyio_backend", ["asyncio"])
"""For what does not depend on the event loop."""


async def refused(aeron_dir: Path) -> DriverError:
    """What a client is told that finds no driver in `aeron_dir`."""
    with pytest.raises(DriverError) as caught:
        await connect(aeron_dir, driver_timeout=0.1)
    return caught.value


@pytest.fixture
async def driver(aeron_dir: Path) -> AsyncIterator[MediaDriver]:
    async with MediaDriver(quick_config(aeron_dir=aeron_dir)) as driver:
        yield driver


@pytest.fixture
def copied_cnc(driver: MediaDriver, aeron_dir: Path) -> Path:
    """A CnC file in a directory of its own, as a driver made it."""
    directory = aeron_dir.with_name("copy")
    directory.mkdir()
    return Path(shutil.copy(aeron_dir / "cnc.dat", directory))


# --- no driver ---------------------------------------------------------------------------------------------------


async def test_without_a_bundled_driver_the_alternatives_are_named(
    monkeypatch: pytest.MonkeyPatch, runtime_dir: Path
) -> None:
    monkeypatch.setattr(launch, "_BUNDLED_BINARY", runtime_dir / "not-built")
    with pytest.raises(DriverNotFoundError) as caught:
        await connect()
    assert all(alternative in str(caught.value) for alternative in ("Rust", "binary=", "aeron_dir=", "AERON_DIR"))
    assert private_folders(runtime_dir) == []


async def test_a_binary_that_does_not_exist_is_named(runtime_dir: Path) -> None:
    with pytest.raises(DriverNotFoundError, match="/no/such/driver"):
        await connect(driver=quick_config(binary="/no/such/driver"))
    assert private_folders(runtime_dir) == []


async def test_a_directory_that_does_not_exist_is_named(aeron_dir: Path) -> None:
    error = await refused(aeron_dir)
    assert isinstance(error, DriverNotRunningError)
    assert str(aeron_dir) in str(error)


async def test_a_directory_without_a_driver_is_named(aeron_dir: Path) -> None:
    aeron_dir.mkdir()
    error = await refused(aeron_dir)
    assert isinstance(error, DriverNotRunningError)
    assert str(aeron_dir) in str(error)


async def test_the_directory_of_a_killed_driver_is_stale(driver: MediaDriver) -> None:
    os.kill(driver.pid, signal.SIGKILL)
    await driver.wait_exit()
    await anyio.sleep(0.5)
    error = await refused(driver.aeron_dir)
    assert isinstance(error, DriverNotRunningError)
    assert "stale" in str(error)


async def test_a_client_that_comes_first_waits_for_its_driver(aeron_dir: Path) -> None:
    """It gets `driver_timeout` seconds for that."""
    clients: list[Client] = []

    async def open_client() -> None:
        clients.append(await connect(aeron_dir, driver_timeout=30))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_client)
        await anyio.sleep(0.1)
        async with MediaDriver(quick_config(aeron_dir=aeron_dir)):
            await eventually(lambda: clients)
            await clients[0].add_publication("aeron:ipc", 1)
            await clients[0].aclose()


# --- files that cannot be true -----------------------------------------------------------------------------------


async def test_another_layout_version_is_refused_with_both_versions(copied_cnc: Path) -> None:
    with copied_cnc.open("r+b") as file:
        file.write(struct.pack("<i", 1 << 16))
    error = await refused(copied_cnc.parent)
    assert isinstance(error, CncVersionError)
    assert "1.0.0" in str(error)
    assert "0.2" in str(error).replace("1.0.0", "")


async def test_a_zeroed_file_is_no_driver(copied_cnc: Path) -> None:
    copied_cnc.write_bytes(bytes(copied_cnc.stat().st_size))
    assert isinstance(await refused(copied_cnc.parent), DriverNotRunningError)


@pytest.mark.parametrize("length", [0, 3, 60, METADATA_LENGTH - 1])
@ON_ONE_LOOP
async def test_a_file_shorter_than_its_metadata_is_not_ready(copied_cnc: Path, length: int) -> None:
    os.truncate(copied_cnc, length)
    assert isinstance(await refused(copied_cnc.parent), DriverNotRunningError)


@pytest.mark.parametrize("kept", [0.01, 0.5, 0.99])
@ON_ONE_LOOP
async def test_a_file_shorter_than_its_buffers_is_not_ready(copied_cnc: Path, kept: float) -> None:
    whole = copied_cnc.stat().st_size
    os.truncate(copied_cnc, int(whole * kept))
    error = await refused(copied_cnc.parent)
    assert isinstance(error, DriverNotRunningError)
    assert f"has {int(whole * kept)} of " in str(error)


@pytest.mark.parametrize("field", ["to_driver", "to_clients", "counters_metadata", "counters_values"])
@ON_ONE_LOOP
async def test_a_length_that_cannot_be_true_is_corrupt(copied_cnc: Path, field: str) -> None:
    offset = 4 * (1 + ["to_driver", "to_clients", "counters_metadata", "counters_values"].index(field))
    for length in (-(1 << 31), -1, 0, 1, 100, (1 << 31) - 1):
        with copied_cnc.open("r+b") as file:
            file.seek(offset)
            file.write(struct.pack("<i", length))
        assert isinstance(await refused(copied_cnc.parent), CorruptFileError), length


@ON_ONE_LOOP
async def test_garbage_is_an_error_never_a_crash(copied_cnc: Path) -> None:
    content = copied_cnc.read_bytes()
    for seed in range(30):
        chance = random.Random(seed)
        garbled = bytearray(content)
        # The version stays, so that the rest is looked at.
        garbled[4:METADATA_LENGTH] = chance.randbytes(METADATA_LENGTH - 4)
        copied_cnc.write_bytes(garbled)
        with pytest.raises(DriverError):
            await connect(copied_cnc.parent, driver_timeout=0.01)


@ON_ONE_LOOP
async def test_what_is_no_file_is_an_error_never_a_hang(aeron_dir: Path) -> None:
    aeron_dir.mkdir()
    cnc = aeron_dir / "cnc.dat"
    os.mkfifo(cnc)
    with pytest.raises((DriverError, OSError)):
        await connect(aeron_dir, driver_timeout=0.1)
    cnc.unlink()
    cnc.mkdir()
    with pytest.raises((DriverError, OSError)):
        await connect(aeron_dir, driver_timeout=0.1)


# --- no permission -----------------------------------------------------------------------------------------------

CONNECT_AS_ANOTHER_USER = """
    import os
    import sys
    import anyio
    from aeron_async import DriverAccessError, connect

    async def main():
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        try:
            await connect(sys.argv[1], driver_timeout=0.5)
        except DriverAccessError as error:
            assert isinstance(error, PermissionError)
            assert sys.argv[1] in str(error), error
            print("refused")

    anyio.run(main)
"""


@pytest.mark.parametrize("locked", ["folder", "file"])
@ON_ONE_LOOP
async def test_files_of_another_user_are_refused_as_such(driver: MediaDriver, aeron_dir: Path, locked: str) -> None:
    aeron_dir.parent.chmod(0o755)
    aeron_dir.chmod(0o755 if locked == "file" else 0)
    (aeron_dir / "cnc.dat").chmod(0)
    try:
        assert run_program(CONNECT_AS_ANOTHER_USER, aeron_dir) == "refused\n"
    finally:
        aeron_dir.chmod(0o700)


# --- a directory that goes ---------------------------------------------------------------------------------------


async def test_a_directory_that_is_deleted_under_a_client_is_a_clear_error(
    driver: MediaDriver, aeron_dir: Path
) -> None:
    async with connect(aeron_dir) as client:
        publication, subscription = await open_pair(client, "aeron:ipc", 1001)
        shutil.rmtree(aeron_dir)
        with pytest.raises((RegistrationError, DriverNotRunningError)):
            await client.add_publication("aeron:ipc", 1002)
        assert not client.is_closed
        await publication.publish(b"what is mapped stays mapped")
        assert await take(subscription.payloads(), 1) == [b"what is mapped stays mapped"]
    assert client.is_closed
    with pytest.raises(DriverNotRunningError):
        await connect(aeron_dir, driver_timeout=0.1)

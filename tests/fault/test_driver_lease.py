"""Who uses a driver keeps it alive, and nobody else does, however programs end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio
import pytest

from aeron_async.driver import MediaDriver, choose_driver
from aeron_async.driver import launch as launching
from aeron_async.driver.config import DriverConfig
from aeron_async.driver.locks import FileLock
from tests.drivers import DriverUser, read_metadata, running_binary, wait_until
from tests.support import LIMIT, is_running, private_folders

pytestmark = pytest.mark.usefixtures("runtime_dir")


@pytest.fixture
def aeronmd(tmp_path: Path) -> Path:
    """A driver's program that knows nothing of leases."""
    program = tmp_path / "aeronmd"
    program.write_text(f'#!/bin/sh\nexec "{launching.find_binary(DriverConfig())}"\n')
    program.chmod(0o755)
    return program


def state_of(pid: int) -> str:
    """The state of a process in one letter, "" where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


def test_an_embedded_driver_ends_with_its_owner_that_was_killed(runtime_dir: Path) -> None:
    with DriverUser("embedded") as owner:
        pid = owner.ask("acquire")["pid"]
        owner.kill()
        wait_until(lambda: not is_running(pid))
    assert private_folders(runtime_dir) == []


def test_an_embedded_driver_ends_with_its_owner_that_did_not_close_it(runtime_dir: Path) -> None:
    with DriverUser("embedded") as owner:
        pid = owner.ask("acquire")["pid"]
        owner.tell()
        assert owner.finish() == 0
        wait_until(lambda: not is_running(pid))
    assert private_folders(runtime_dir) == []


def test_a_driver_of_a_program_of_the_users_ends_with_its_owner_that_was_killed(aeronmd: Path) -> None:
    with DriverUser("embedded", binary=str(aeronmd)) as owner:
        driver = owner.ask("acquire")
        owner.kill()
        wait_until(lambda: not is_running(driver["pid"]))
        wait_until(lambda: not Path(driver["aeron_dir"]).exists())


def is_free(path: Path) -> bool:
    lock = FileLock(path)
    taken = lock.try_exclusive()
    lock.release()
    return taken


@pytest.mark.anyio
async def test_what_a_killed_owner_and_its_killed_driver_left_is_swept(runtime_dir: Path) -> None:
    with DriverUser("embedded") as living, DriverUser("embedded") as dead:
        kept = Path(living.ask("acquire")["aeron_dir"]).parent
        left = dead.ask("acquire")
        os.kill(left["pid"], signal.SIGKILL)
        dead.kill()
        # The locks go when the kernel has taken down the last of the threads, a moment after the signal.
        wait_until(lambda: all(is_free(Path(left["aeron_dir"]).parent / name) for name in ("alive", "lease")))
        assert Path(left["aeron_dir"]).exists()
        async with MediaDriver() as driver:
            assert set(private_folders(runtime_dir)) == {kept, driver.aeron_dir.parent}
        assert is_running(read_metadata(kept / "driver").pid)


@pytest.mark.anyio
async def test_sweeping_touches_no_folder_behind_a_link(runtime_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").touch()
    (runtime_dir / "aeron_async").mkdir(mode=0o700)
    (runtime_dir / "aeron_async" / "link").symlink_to(tmp_path, target_is_directory=True)
    async with MediaDriver():
        assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@pytest.mark.anyio
async def test_an_owner_follows_at_once_on_one_that_was_killed(aeron_dir: Path) -> None:
    with DriverUser("embedded", aeron_dir) as owner:
        orphan = owner.ask("acquire")["pid"]
        owner.kill()
        async with MediaDriver(aeron_dir=aeron_dir) as driver:
            assert not is_running(orphan)
            assert read_metadata(aeron_dir).pid == driver.pid


@pytest.mark.anyio
async def test_an_embedded_driver_that_hangs_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeron_async.driver.launch._DRIVER_TIMEOUT", 2.0)
    monkeypatch.setattr("aeron_async.driver.media_driver.STOP_PATIENCE", 0.2)
    source = choose_driver(None, "embedded", None)
    first = await source.acquire()
    assert await source.acquire() == first
    os.kill(read_metadata(first).pid, signal.SIGSTOP)
    with anyio.fail_after(LIMIT):
        while await source.acquire() == first:
            await anyio.sleep(0.1)
    assert not first.exists()
    await source.release()


def test_a_forked_child_that_lets_go_takes_nothing_from_its_parent() -> None:
    with DriverUser("embedded") as owner:
        driver = owner.ask("acquire")
        assert owner.ask("fork") == 0, owner.errors
        follower = DriverUser("embedded")
        with follower:
            # It sweeps what is dead.
            follower.ask("acquire")
            assert is_running(driver["pid"])
            assert Path(driver["aeron_dir"]).exists()
        assert owner.ask("acquire") == driver


@pytest.mark.anyio
async def test_a_program_of_the_users_that_was_killed_is_followed_in_its_directory(
    aeron_dir: Path, aeronmd: Path
) -> None:
    source = choose_driver(aeron_dir, "embedded", DriverConfig(binary=aeronmd))
    await source.acquire()
    killed = read_metadata(aeron_dir).pid
    exited = anyio.Event()
    source.on_exit(exited.set)
    os.kill(killed, signal.SIGKILL)
    await exited.wait()
    await source.acquire()
    assert read_metadata(aeron_dir).pid != killed
    await source.release()
    assert list(aeron_dir.parent.iterdir()) == []


def test_a_forked_child_of_a_shared_drivers_user_takes_nothing_from_it(aeron_dir: Path) -> None:
    with DriverUser("shared", aeron_dir, grace=0) as user, DriverUser("shared", aeron_dir) as other:
        driver = user.ask("acquire")
        assert user.ask("fork") == 0, user.errors
        assert other.ask("acquire")["pid"] == driver["pid"]


def test_three_that_start_at_once_share_one_driver(aeron_dir: Path) -> None:
    with (
        DriverUser("shared", aeron_dir) as first,
        DriverUser("shared", aeron_dir) as second,
        DriverUser("shared", aeron_dir) as third,
    ):
        for user in (first, second, third):
            user.tell("acquire")
        drivers = [user.hear() for user in (first, second, third)]
        assert len({driver["pid"] for driver in drivers}) == 1
        assert [driver["is_starter"] for driver in drivers].count(True) == 1


def test_a_shared_driver_outlives_its_starter_and_ends_after_the_last(aeron_dir: Path) -> None:
    with (
        DriverUser("shared", aeron_dir) as starter,
        DriverUser("shared", aeron_dir) as second,
        DriverUser("shared", aeron_dir) as third,
    ):
        pid = starter.ask("acquire")["pid"]
        assert second.ask("acquire") == {"aeron_dir": str(aeron_dir), "pid": pid, "is_starter": False}
        starter.kill()
        assert third.ask("acquire") == {"aeron_dir": str(aeron_dir), "pid": pid, "is_starter": False}
        assert second.ask("release") == "released"
        assert third.ask("acquire")["pid"] == pid
        assert is_running(pid)
        third.kill()
        wait_until(lambda: not is_running(pid))
    assert list(aeron_dir.parent.iterdir()) == []


def test_the_starter_of_a_shared_driver_may_be_the_first_to_leave(aeron_dir: Path) -> None:
    with DriverUser("shared", aeron_dir, grace=0) as starter, DriverUser("shared", aeron_dir) as second:
        pid = starter.ask("acquire")["pid"]
        second.ask("acquire")
        assert starter.ask("release") == "released"
        assert second.ask("acquire")["pid"] == pid
        second.ask("release")
        # Not even as a zombie of the starter, which still runs.
        wait_until(lambda: state_of(pid) == "")


def test_a_shared_driver_waits_for_the_next_user(aeron_dir: Path) -> None:
    with DriverUser("shared", aeron_dir, grace=3600) as first, DriverUser("shared", aeron_dir) as second:
        pid = first.ask("acquire")["pid"]
        first.ask("release")
        assert second.ask("acquire")["pid"] == pid
        os.kill(pid, signal.SIGTERM)


def test_every_user_of_a_shared_driver_sees_its_death_and_gets_the_next_one(aeron_dir: Path) -> None:
    with DriverUser("shared", aeron_dir) as first, DriverUser("shared", aeron_dir) as second:
        pid = first.ask("acquire")["pid"]
        second.ask("acquire")
        os.kill(pid, signal.SIGKILL)
        assert first.hear() == "driver exited"
        assert second.hear() == "driver exited"
        second.tell("acquire")
        first.tell("acquire")
        following = {user.hear()["pid"] for user in (first, second)}
        assert len(following) == 1
        assert pid not in following


def test_a_driver_that_was_not_started_to_be_shared_is_not_joined(aeron_dir: Path) -> None:
    with running_binary("--dir", aeron_dir) as other, DriverUser("shared", aeron_dir) as user:
        user.tell("acquire")
        assert user.finish() != 0
        assert 'driver="external"' in user.errors
        assert is_running(other.process.pid)
    assert [path.name for path in aeron_dir.parent.iterdir()] == ["driver"]


def test_joining_while_a_driver_ends_always_gives_a_live_one(aeron_dir: Path) -> None:
    with (
        DriverUser("shared", aeron_dir, grace=0) as first,
        DriverUser("shared", aeron_dir, grace=0) as second,
        DriverUser("shared", aeron_dir, grace=0) as third,
    ):
        users = (first, second, third)
        for user in users:
            user.tell("come-and-go 12")
        # Were it always the same driver, nothing would have been put to the test.
        assert sum(user.hear() for user in users) > 1
    wait_until(lambda: list(aeron_dir.parent.iterdir()) == [])

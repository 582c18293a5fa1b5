"""A media driver that a program starts, configures and stops."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from aeron_async import connect
from aeron_async.driver import DriverConfig, MediaDriver
from aeron_async.driver import launch as launching
from aeron_async.errors import (
    AeronError,
    DirectoryInUseError,
    DriverNotFoundError,
    DriverNotRunningError,
    DriverStartError,
    RegistrationError,
)
from tests.drivers import read_metadata, running_binary
from tests.support import eventually, is_running, private_folders, scratch_folder

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def private(runtime_dir: Path) -> Path:
    """Private folders are of the test alone."""
    return runtime_dir


@pytest.fixture
def aeron_dir() -> Iterator[Path]:
    """Where the test may start a driver."""
    with scratch_folder() as folder:
        yield folder / "driver"


@pytest.fixture
def aeronmd(tmp_path: Path) -> Path:
    """A driver's program that knows nothing of leases: it takes no arguments."""
    program = tmp_path / "aeronmd"
    program.write_text(f'#!/bin/sh\ntest $# = 0 && exec "{launching.find_binary(DriverConfig())}"\n')
    program.chmod(0o755)
    return program


def configuration(logs: list[Any]) -> set[str]:
    """The settings that a driver has printed."""
    return {entry["line"].strip() for entry in logs if entry["event"] == "driver_log"}


async def test_it_serves_its_directory_once_it_is_started() -> None:
    async with MediaDriver() as driver:
        assert driver.is_alive
        assert is_running(driver.pid)
        assert read_metadata(driver.aeron_dir).pid == driver.pid
        assert driver.version == "1.54.0"


async def test_it_leaves_nothing_when_it_is_closed(private: Path) -> None:
    async with MediaDriver() as driver:
        assert len(private_folders(private)) == 1
    assert not driver.is_alive
    assert not is_running(driver.pid)
    assert private_folders(private) == []
    assert await driver.wait_exit() == 0


async def test_its_private_folder_is_for_its_user_alone(private: Path) -> None:
    async with MediaDriver() as driver:
        (folder,) = private_folders(private)
        assert driver.aeron_dir == folder / "driver"
        for path in (folder.parent, folder, *folder.rglob("*")):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


async def test_it_has_a_session_of_its_own() -> None:
    async with MediaDriver() as driver:
        assert os.getsid(driver.pid) == driver.pid
        assert os.readlink(f"/proc/{driver.pid}/fd/0") == os.devnull


async def test_two_at_once_have_directories_of_their_own() -> None:
    async with MediaDriver() as first, MediaDriver() as second:
        assert first.aeron_dir != second.aeron_dir
        assert read_metadata(first.aeron_dir).pid == first.pid
        assert read_metadata(second.aeron_dir).pid == second.pid


async def test_closing_again_does_nothing() -> None:
    driver = MediaDriver()
    await driver.aclose()
    with pytest.raises(RuntimeError):
        await driver.start()
    async with MediaDriver() as driver:
        await driver.aclose()
        await driver.aclose()


async def test_what_was_not_started_says_so() -> None:
    driver = MediaDriver()
    assert not driver.is_alive
    with pytest.raises(DriverNotRunningError, match="not started"):
        _ = driver.pid


async def test_its_death_is_seen_at_once() -> None:
    async with MediaDriver() as driver:
        seen = anyio.Event()
        driver._on_exit(seen.set)
        os.kill(driver.pid, signal.SIGKILL)
        assert await driver.wait_exit() == -signal.SIGKILL
        await seen.wait()
        assert not driver.is_alive
        late = anyio.Event()
        driver._on_exit(late.set)
        await late.wait()


async def test_one_that_was_killed_leaves_nothing_either(private: Path) -> None:
    async with MediaDriver() as driver:
        os.kill(driver.pid, signal.SIGKILL)
    assert private_folders(private) == []


async def test_one_that_does_not_listen_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeron_async.driver.media_driver.STOP_PATIENCE", 0.2)
    async with MediaDriver() as driver:
        os.kill(driver.pid, signal.SIGSTOP)
    assert await driver.wait_exit() == -signal.SIGKILL


async def test_a_start_that_is_cancelled_leaves_nothing(private: Path) -> None:
    driver = MediaDriver()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await driver.start()
    assert not driver.is_alive
    assert private_folders(private) == []


async def test_it_serves_the_directory_that_it_is_given(aeron_dir: Path) -> None:
    async with MediaDriver(aeron_dir=aeron_dir) as driver:
        assert driver.aeron_dir == aeron_dir
        assert read_metadata(aeron_dir).pid == driver.pid
    assert list(aeron_dir.parent.iterdir()) == []


async def test_it_makes_the_folder_of_its_directory(aeron_dir: Path) -> None:
    async with MediaDriver(aeron_dir=aeron_dir / "deep" / "down") as driver:
        assert read_metadata(driver.aeron_dir).pid == driver.pid


async def test_a_directory_in_use_is_refused(aeron_dir: Path) -> None:
    async with MediaDriver(aeron_dir=aeron_dir) as first:
        with pytest.raises(DirectoryInUseError, match=str(aeron_dir)):
            await MediaDriver(aeron_dir=aeron_dir).start()
        assert read_metadata(aeron_dir).pid == first.pid
        assert first.is_alive


async def test_a_directory_that_another_kind_of_driver_uses_is_refused(aeron_dir: Path, aeronmd: Path) -> None:
    with running_binary("--dir", aeron_dir) as other:
        with pytest.raises(DirectoryInUseError, match=str(aeron_dir)):
            await MediaDriver(aeron_dir=aeron_dir).start()
        with pytest.raises(DirectoryInUseError, match=str(aeron_dir)):
            await MediaDriver(aeron_dir=aeron_dir, binary=aeronmd).start()
        assert read_metadata(aeron_dir).pid == other.process.pid
    assert [path.name for path in aeron_dir.parent.iterdir()] == ["driver"]


async def test_it_follows_at_once_on_one_that_was_killed(aeron_dir: Path) -> None:
    with running_binary("--dir", aeron_dir) as killed:
        killed.stop(signal.SIGKILL)
    async with MediaDriver(aeron_dir=aeron_dir) as driver:
        assert read_metadata(aeron_dir).pid == driver.pid


async def test_fields_reach_the_driver() -> None:
    config = DriverConfig(
        threading_mode="DEDICATED",
        term_buffer_length=1 << 20,
        ipc_term_buffer_length=128 << 10,
        term_buffer_sparse_file=True,
        mtu_length=4096,
        ipc_mtu_length=8192,
        client_liveness_timeout=7.5,
        image_liveness_timeout=6.0,
        publication_unblock_timeout=20.0,
        publication_linger_timeout=0.25,
        timer_interval=0.5,
        counters_values_buffer_length=4 << 20,
        resolver_name="here",
        resolver_interface="127.0.0.1:0",
        resolver_bootstrap_neighbor="127.0.0.1:8050",
        environment={"AERON_PRINT_CONFIGURATION": "1"},
    )
    with capture_logs() as logs:
        async with MediaDriver(config) as driver:
            metadata = read_metadata(driver.aeron_dir)
    assert metadata.counters_values_buffer_length == 4 << 20
    assert metadata.client_liveness_timeout == 7_500_000_000
    assert configuration(logs) >= {
        "threading_mode=DEDICATED",
        f"term_buffer_length={1 << 20}",
        f"ipc_term_buffer_length={128 << 10}",
        "term_buffer_sparse_file=1",
        "mtu_length=4096",
        "ipc_mtu_length=8192",
        "client_liveness_timeout_ns=7500000000",
        "image_liveness_timeout_ns=6000000000",
        "publication_unblock_timeout_ns=20000000000",
        "publication_linger_timeout_ns=250000000",
        "timer_interval_ns=500000000",
        f"counters_values_buffer_length={4 << 20}",
        "resolver_name=here",
        "resolver_interface=127.0.0.1:0",
    }


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (
            "balanced",
            {
                "threading_mode=SHARED_NETWORK",
                f"term_buffer_length={4 << 20}",
                f"ipc_term_buffer_length={4 << 20}",
                "term_buffer_sparse_file=0",
                f"counters_values_buffer_length={2 << 20}",
                f"low_file_store_warning_threshold={13 << 20}",
            },
        ),
        ("low_latency", {"threading_mode=DEDICATED", f"term_buffer_length={16 << 20}", "term_buffer_sparse_file=0"}),
        ("low_power", {"threading_mode=SHARED_NETWORK", "term_buffer_sparse_file=0"}),
    ],
)
async def test_a_profile_is_what_it_says(profile: Any, expected: set[str]) -> None:
    config = DriverConfig(profile=profile, environment={"AERON_PRINT_CONFIGURATION": "1"})
    with capture_logs() as logs:
        async with MediaDriver(config):
            pass
    assert configuration(logs) >= expected


async def test_what_loads_code_does_not_reach_the_driver_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AERON_DRIVER_DYNAMIC_LIBRARIES", "/no/such/library.so")
    async with MediaDriver() as driver:
        assert driver.is_alive
    named = DriverConfig(environment={"AERON_DRIVER_DYNAMIC_LIBRARIES": "/no/such/library.so"})
    with pytest.raises(DriverStartError, match="dynamic loading"):
        await MediaDriver(named).start()


async def test_its_log_is_forwarded(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with MediaDriver(DriverConfig(environment={"AERON_PRINT_CONFIGURATION": "1"})) as driver:
            await eventually(lambda: any(entry["event"] == "driver_log" for entry in logs))
            (started,) = (entry for entry in logs if entry["event"] == "driver_started")
            assert started["driver_pid"] == driver.pid
            assert started["aeron_dir"] == str(driver.aeron_dir)
    assert f"aeron_dir={driver.aeron_dir}" in configuration(logs)
    (exited,) = (entry for entry in logs if entry["event"] == "driver_exited")
    assert (exited["exit_code"], exited["log_level"]) == (0, "info")


async def test_its_errors_are_forwarded_each_as_often_as_its_count_changes() -> None:
    with capture_logs() as logs:
        async with MediaDriver() as driver, connect(driver=driver) as client:

            def counts() -> list[int]:
                return [entry["count"] for entry in logs if entry["event"] == "driver_error"]

            for times in (1, 2):
                with pytest.raises(RegistrationError):
                    await client.add_publication("aeron:udp?endpoint=nonsense", 1001)
                await eventually(lambda times=times: counts() == list(range(1, times + 1)))
    (error, _) = (entry for entry in logs if entry["event"] == "driver_error")
    assert "nonsense" in error["error"]
    assert error["driver_pid"] == driver.pid


async def test_a_failed_start_says_what_the_driver_said(private: Path) -> None:
    with pytest.raises(DriverStartError, match="mtuLength"):
        await MediaDriver(DriverConfig(mtu_length=1001)).start()
    assert private_folders(private) == []


async def test_without_a_bundled_driver_the_error_names_the_alternatives(
    monkeypatch: pytest.MonkeyPatch, private: Path
) -> None:
    monkeypatch.setattr(launching, "_BUNDLED_BINARY", Path("/no/such/driver"))
    with pytest.raises(DriverNotFoundError) as caught:
        await MediaDriver().start()
    for alternative in ("Rust", "binary=", "aeron_dir=", "AERON_DIR", '"external"'):
        assert alternative in str(caught.value)
    assert private_folders(private) == []


async def test_a_program_of_the_users_is_a_driver_too(aeronmd: Path, private: Path) -> None:
    async with MediaDriver(binary=aeronmd) as driver:
        assert driver.is_alive
        assert driver.version == "1.54.0"
        assert read_metadata(driver.aeron_dir).pid == driver.pid
    assert await driver.wait_exit() == 0
    assert private_folders(private) == []


async def test_a_program_of_the_users_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(DriverNotFoundError, match="nowhere"):
        await MediaDriver(binary=tmp_path / "nowhere").start()


async def test_a_program_that_is_no_driver_is_shown_with_what_it_said(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho I am no driver\nexit 9\n")
    program.chmod(0o755)
    with pytest.raises(DriverStartError, match=r"exit code 9.*I am no driver"):
        await MediaDriver(binary=program).start()


async def test_preloads_that_are_named_reach_a_program_of_the_users_only(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "preload: $LD_PRELOAD"\nexit 9\n')
    program.chmod(0o755)
    config = DriverConfig(binary=program, environment={"LD_PRELOAD": "/no/such/library.so"})
    with pytest.raises(DriverStartError, match=r"preload: /no/such/library\.so"):
        await MediaDriver(config).start()


async def test_one_that_never_becomes_ready_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "_START_TIMEOUT", 0.3)
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexec sleep 3600\n")
    program.chmod(0o755)
    with pytest.raises(DriverStartError, match="not ready"):
        await MediaDriver(binary=program).start()


@pytest.mark.skipif(sys.platform != "linux", reason="process descriptors are Linux's")
async def test_its_death_is_seen_without_process_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    async with MediaDriver() as driver:
        os.kill(driver.pid, signal.SIGKILL)
        assert await driver.wait_exit() == -signal.SIGKILL


async def test_a_place_that_is_not_the_users_alone_is_not_used(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (private / "aeron_async").mkdir()
    (private / "aeron_async").chmod(0o755)
    async with MediaDriver() as driver:
        assert private not in driver.aeron_dir.parents


async def test_no_place_at_all_is_an_error_that_says_what_to_set(
    private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeron_async.driver.files._candidates", lambda: iter([private / "no" / "place"]))
    with pytest.raises(AeronError, match="XDG_RUNTIME_DIR"):
        await MediaDriver().start()

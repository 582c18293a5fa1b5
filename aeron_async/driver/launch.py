"""Starting a driver, ours or another, and waiting until it is ready."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import anyio

from aeron_async import _tasks
from aeron_async.driver.config import DriverConfig
from aeron_async.driver.directory import CncReader
from aeron_async.driver.files import DriverFiles, driver_errors
from aeron_async.driver.locks import FileLock
from aeron_async.driver.process import DriverProcess, with_parent_death_signal
from aeron_async.errors import (
    DirectoryInUseError,
    DriverNotFoundError,
    DriverStartError,
    InsufficientStorageError,
)
from aeron_async.protocol.records import MalformedRecord

__all__ = ["STOP_PATIENCE", "find_binary", "has_heartbeat", "launch"]

# Seconds that a driver is given to become ready, and to end when it is told to.
_START_TIMEOUT = 30.0
STOP_PATIENCE = 10.0

_BUNDLED_BINARY = Path(__file__).parents[1] / "_bin" / "aeron-async-driver"
# Exit codes of the bundled driver: see its --help.
_DIRECTORY_IN_USE = 3
_NO_SPACE = 4

_READY_POLL = 0.02
# How old the heartbeat of a live driver can be, in seconds: Aeron's own default for its drivers.
_DRIVER_TIMEOUT = 10.0
_LOG_TAIL = 4096


def find_binary(config: DriverConfig) -> str:
    """The program that `config` starts. Raises `DriverNotFoundError` where it is missing."""
    if config.binary is not None:
        binary = shutil.which(config.binary)
        if binary is None:
            raise DriverNotFoundError(f"binary={os.fspath(config.binary)!r} is not a program that can be run")
        return os.path.abspath(binary)
    if not os.access(_BUNDLED_BINARY, os.X_OK):
        raise DriverNotFoundError(
            "this installation has no bundled media driver, because there was no Rust when it was built. Install Rust "
            "(rustup) and reinstall aeron-async; or name the program of another driver with DriverConfig(binary=...); "
            "or use a driver that runs already: name its directory with aeron_dir=... or the environment variable "
            'AERON_DIR, and leave driver out or set it to "external"'
        )
    return str(_BUNDLED_BINARY)


async def launch(config: DriverConfig, files: DriverFiles, alive: FileLock, lease_grace: float) -> DriverProcess:
    """Starts the driver of `config` in `files.aeron_dir`, and returns when it is ready.

    The lock `alive` is handed over to the driver, or given up. `lease_grace` is how long the driver goes on, in
    seconds, when nobody holds its lease any more.

    Raises `DriverNotFoundError`, `DirectoryInUseError`, `InsufficientStorageError`, `DriverStartError`. Nothing runs
    any more when it raises or is cancelled.
    """
    try:
        binary = find_binary(config)
        environment = {**config.build_environment(os.environ), "AERON_DIR": str(files.aeron_dir)}
        with driver_errors(f"the driver {binary} could not be started"):
            # A log of an earlier driver is not this one's.
            files.log.unlink(missing_ok=True)
            if config.binary is None:
                return await _launch_bundled(binary, environment, files, alive, lease_grace)
            return await _launch_custom(binary, environment, files)
    finally:
        alive.close()


async def _launch_bundled(
    binary: str, environment: dict[str, str], files: DriverFiles, alive: FileLock, lease_grace: float
) -> DriverProcess:
    read_fd, write_fd = os.pipe()
    command = [
        binary,
        f"--dir={files.aeron_dir}",
        f"--lease={files.lease}",
        f"--lease-grace={lease_grace}",
        *(f"--remove={path}" for path in files.removable),
        f"--alive-fd={alive.fd}",
        f"--ready-fd={write_fd}",
    ]
    try:
        try:
            process = DriverProcess(command, environment, files.log, pass_fds=(alive.fd, write_fd))
        finally:
            os.close(write_fd)
        await _until_ready(process, files, lambda: _reads_line(read_fd))
    finally:
        os.close(read_fd)
    return process


async def _reads_line(fd: int) -> bool:
    """Whether something comes out of the pipe before its other end is closed."""
    readable = anyio.Event()
    unwatch = _tasks.watch_readable(fd, readable.set)
    try:
        await readable.wait()
    finally:
        unwatch()
    return os.read(fd, 1) != b""


async def _launch_custom(binary: str, environment: dict[str, str], files: DriverFiles) -> DriverProcess:
    if has_heartbeat(files.aeron_dir):
        raise DirectoryInUseError(f"a live driver serves {files.aeron_dir}")
    started_at = time.time()
    command, environment = with_parent_death_signal([binary], environment)
    process = DriverProcess(command, environment, files.log)

    async def shows_heartbeat() -> bool:
        while not process.exit.is_set:
            if has_heartbeat(files.aeron_dir, since=started_at):
                return True
            await anyio.sleep(_READY_POLL)
        return False

    await _until_ready(process, files, shows_heartbeat)
    return process


def has_heartbeat(aeron_dir: Path, since: float = 0.0) -> bool:
    """Whether a driver that was started after the time `since` (of the epoch) shows that it lives in `aeron_dir`."""
    try:
        with closing(CncReader.open(aeron_dir)) as cnc:
            # The driver's clock reads whole milliseconds.
            is_later = cnc.metadata.start_timestamp / 1000 >= since - 0.001
            return cnc.is_ready and is_later and cnc.heartbeat_age() <= _DRIVER_TIMEOUT
    except (OSError, MalformedRecord):
        return False


async def _until_ready(
    process: DriverProcess, files: DriverFiles, becomes_ready: Callable[[], Awaitable[bool]]
) -> None:
    """Returns when `becomes_ready` does so with True. It returns False where the driver ends before."""
    try:
        with anyio.fail_after(_START_TIMEOUT):
            if await becomes_ready():
                return
            exit_code = await process.wait()
    except BaseException as error:
        with anyio.CancelScope(shield=True):
            await process.stop(STOP_PATIENCE)
        if isinstance(error, TimeoutError):
            raise _failure(f"was not ready after {_START_TIMEOUT:.0f} s", files) from error
        raise
    if exit_code == _DIRECTORY_IN_USE:
        raise DirectoryInUseError(f"a live driver serves {files.aeron_dir}")
    if exit_code == _NO_SPACE:
        raise InsufficientStorageError(
            f"the file system of {files.aeron_dir} has too little room for a driver. Free or enlarge it (a container's "
            "/dev/shm is 64 MiB unless told otherwise), name a directory elsewhere with aeron_dir=..., or set a "
            f"smaller counters_values_buffer_length. The driver's log ends with: {_log_tail(files.log)}"
        )
    raise _failure(f"ended with exit code {exit_code}", files)


def _failure(what: str, files: DriverFiles) -> DriverStartError:
    return DriverStartError(f"the driver for {files.aeron_dir} {what}. Its log ends with: {_log_tail(files.log)}")


def _log_tail(log: Path) -> str:
    try:
        content = log.read_bytes()
    except OSError as error:
        return f"({error})"
    return content[-_LOG_TAIL:].decode(errors="replace").strip() or "(nothing)"

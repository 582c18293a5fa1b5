"""A media driver that this process has started."""

from __future__ import annotations

import os
import shutil
import signal
import weakref
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from aeron_async._log import log
from aeron_async.driver.config import DriverConfig
from aeron_async.driver.directory import CncReader
from aeron_async.driver.files import DriverFiles, create_private_folder, driver_errors
from aeron_async.driver.forwarding import LogForwarder
from aeron_async.driver.launch import STOP_PATIENCE, has_heartbeat, launch
from aeron_async.driver.locks import FileLock
from aeron_async.driver.process import DriverProcess
from aeron_async.errors import DirectoryInUseError, DriverNotRunningError, DriverStartError
from aeron_async.protocol.records import MalformedRecord

__all__ = ["MediaDriver"]


# A driver whose owner has died notices that within a fraction of a second, and needs another to end.
_ORPHAN_PATIENCE = 5.0
_ORPHAN_POLL = 0.05


@dataclass(frozen=True, slots=True)
class _Run:
    """A driver that runs, or has run."""

    files: DriverFiles
    process: DriverProcess
    forwarder: LogForwarder
    version: str
    start_timestamp: int

    @classmethod
    async def start(cls, config: DriverConfig, files: DriverFiles, alive: FileLock, lease_grace: float) -> _Run:
        process = await launch(config, files, alive, lease_grace)
        try:
            cnc = CncReader.open(files.aeron_dir)
            version = cnc.aeron_version()
            forwarder = LogForwarder(process, cnc, files.log)
        except (OSError, MalformedRecord) as error:
            await process.stop(STOP_PATIENCE)
            raise DriverStartError(
                f"the driver for {files.aeron_dir} ended as soon as it was ready: {error}"
            ) from error
        run = cls(files, process, forwarder, version, cnc.metadata.start_timestamp)
        log.info("driver_started", aeron_dir=str(files.aeron_dir), driver_pid=process.pid, version=version)
        process.exit.subscribe(run._log_exit)
        return run

    def remove_leftovers(self) -> None:
        """Removes what the driver has not removed itself when it ended."""
        with suppress(OSError, MalformedRecord), closing(CncReader.open(self.files.aeron_dir)) as cnc:
            if cnc.metadata.start_timestamp == self.start_timestamp and self.process.exit_code != 0:
                shutil.rmtree(self.files.aeron_dir)
        self.files.remove_if_unused()

    def _log_exit(self) -> None:
        code = self.process.exit_code
        report = log.warning if code else log.info
        report("driver_exited", aeron_dir=str(self.files.aeron_dir), driver_pid=self.process.pid, exit_code=code)


class MediaDriver:
    """A media driver in a process of its own, for ``async with MediaDriver(config) as driver``.

    It ends with `aclose`, and by itself when the process that started it ends in whatever way. It is never restarted.

    Args:
        config: The driver's settings; None for the default ones.
        aeron_dir: The directory to serve, instead of the one in `config`. Where neither names one, the driver has a
            private directory that goes with it.
        binary: The driver's program, instead of the one in `config`.
    """

    def __init__(
        self,
        config: DriverConfig | None = None,
        *,
        aeron_dir: str | os.PathLike[str] | None = None,
        binary: str | os.PathLike[str] | None = None,
    ) -> None:
        config = config or DriverConfig()
        if aeron_dir is not None:
            config = replace(config, aeron_dir=aeron_dir)
        if binary is not None:
            config = replace(config, binary=binary)
        self._config = config
        self._owner_pid = os.getpid()
        self._lease: FileLock | None = None
        self._run: _Run | None = None
        self._is_started = False
        self._is_closed = False

    @classmethod
    async def _start_shared(
        cls, config: DriverConfig, files: DriverFiles, alive: FileLock, lease_grace: float
    ) -> MediaDriver:
        """Starts a driver on a lease that the caller holds, with others. `_abandon` lets go of it."""
        driver = cls(config)
        driver._run = await _Run.start(config, files, alive, lease_grace)
        return driver

    def _abandon(self) -> None:
        """Lets a shared driver go on for those who still use it."""
        if self.is_alive:
            self._started.forwarder.stop()
            self._started.process.abandon()

    def _let_go(self) -> None:
        """Ends the driver without waiting for it: it stops soon after its lease is free."""
        self._is_closed = True
        if self._run is None or self._lease is None or os.getpid() != self._owner_pid:
            return
        if self._config.binary is not None:
            _terminate(self._owner_pid, self._run.process)
        self._abandon()
        self._lease.release()

    def _on_exit(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Calls `callback` in the loop when the driver's process has ended; returns what undoes that."""
        return self._started.process.exit.subscribe(callback)

    def _is_responsive(self) -> bool:
        """Whether the driver's process runs and does its work."""
        return self.is_alive and has_heartbeat(self.aeron_dir)

    @property
    def aeron_dir(self) -> Path:
        """The directory that the driver serves, or did."""
        return self._started.files.aeron_dir

    @property
    def pid(self) -> int:
        """The driver's process id."""
        return self._started.process.pid

    @property
    def version(self) -> str:
        """The driver's version of Aeron, such as "1.54.0"; "" for a driver that does not say."""
        return self._started.version

    @property
    def is_alive(self) -> bool:
        """Whether the driver's process runs."""
        return self._run is not None and self._run.process.exit_code is None

    async def start(self) -> None:
        """Starts the driver, and returns when it serves its directory.

        Cancellation stops what was started. Raises `DirectoryInUseError` where a live driver serves the directory,
        `DriverNotFoundError` where there is no program to start, `InsufficientStorageError`, and `DriverStartError`
        with the end of the driver's log for all else.
        """
        if self._is_started or self._is_closed:
            raise RuntimeError("a MediaDriver is started once")
        self._is_started = True
        with driver_errors("a place for the driver cannot be had"):
            files, lease, alive = await _claim(self._config)
        try:
            self._run = await _Run.start(self._config, files, alive, lease_grace=0)
        except BaseException:
            lease.release()
            files.remove_if_unused()
            raise
        self._lease = lease
        if self._config.binary is not None:
            # It knows nothing of a lease.
            weakref.finalize(self, _terminate, self._owner_pid, self._run.process)

    async def aclose(self) -> None:
        """Stops the driver, and removes what it leaves; again it does nothing. Cannot be cancelled half-way."""
        self._is_closed = True
        run = self._run
        # A forked child holds neither the process nor the lease.
        if run is None or os.getpid() != self._owner_pid:
            return
        with anyio.CancelScope(shield=True):
            await run.process.stop(STOP_PATIENCE)
            await run.forwarder.wait()
            if self._lease is not None:
                self._lease.release()
            run.remove_leftovers()

    async def wait_exit(self) -> int:
        """Returns the exit code when the driver's process has ended: minus the signal's number for a signal."""
        return await self._started.process.wait()

    @property
    def _started(self) -> _Run:
        if self._run is None:
            raise DriverNotRunningError("this MediaDriver was not started: use `async with`, or await its start()")
        return self._run

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        if self._run is None:
            return "<MediaDriver, not started>"
        state = "alive" if self.is_alive else f"ended with {self._run.process.exit_code}"
        return f"<MediaDriver {self.pid} in {str(self.aeron_dir)!r}, {state}>"


def _terminate(owner_pid: int, process: DriverProcess) -> None:
    if os.getpid() == owner_pid:
        process.send_signal(signal.SIGTERM)


async def _claim(config: DriverConfig) -> tuple[DriverFiles, FileLock, FileLock]:
    """The files for a driver, its lease, held, and its `alive` lock, to be handed to it."""
    if config.directory is None:
        files, lease = create_private_folder()
        alive = FileLock(files.alive)
        alive.try_exclusive()
        return files, lease, alive
    files = DriverFiles.beside(config.directory)
    files.aeron_dir.parent.mkdir(parents=True, exist_ok=True)
    lease, alive = FileLock(files.lease), FileLock(files.alive)
    deadline = anyio.current_time() + _ORPHAN_PATIENCE
    while not (alive.try_exclusive() and lease.try_shared()):
        alive.release()
        # Nobody holds the lease of an orphan, until it takes the lease itself to end.
        is_orphan = lease.try_exclusive() or not lease.try_shared()
        lease.release()
        if not is_orphan or anyio.current_time() > deadline:
            raise DirectoryInUseError(f"a live driver serves {files.aeron_dir}")
        await anyio.sleep(_ORPHAN_POLL)
    return files, lease, alive

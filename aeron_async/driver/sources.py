"""Which driver a client uses, and where that driver comes from."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

import anyio

from aeron_async import _tasks
from aeron_async.driver.config import DriverConfig
from aeron_async.driver.directory import ServedDirectory
from aeron_async.driver.files import DriverFiles, default_aeron_dir, driver_errors
from aeron_async.driver.locks import FileLock
from aeron_async.driver.media_driver import MediaDriver
from aeron_async.driver.process import ExitSignal
from aeron_async.errors import DirectoryInUseError, DriverNotRunningError, DriverStartError

__all__ = ["DriverKind", "DriverSource", "choose_driver"]

DriverKind = Literal["embedded", "shared", "external"]

# How long a shared driver goes on without users, in seconds: long enough for one worker to follow another.
_SHARED_GRACE = 1.0
# How long a process waits for a shared driver that another process starts, or that is about to end, in seconds.
_JOIN_TIMEOUT = 30.0
_JOIN_POLL = 0.01
# How often a shared driver that another process has started is looked at, in seconds.
_ALIVE_POLL = 0.1


class DriverSource(ABC):
    """Where one `connect()` gets its driver from."""

    driver: MediaDriver | None = None
    """The driver, where it was started here or given by the user."""
    ends_with_users = False
    """Whether the driver ends after the last of those who use it has let go."""

    @abstractmethod
    async def acquire(self) -> Path:
        """Returns the directory of a driver; starts one where that is this source's business.

        Raises `DriverNotFoundError`, `DriverStartError`, `DirectoryInUseError`, `InsufficientStorageError`,
        `DriverAccessError`, `DriverNotRunningError`.
        """

    @abstractmethod
    def on_exit(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Calls `callback` in the loop when the process of the acquired driver has ended; returns what undoes that."""

    @abstractmethod
    async def release(self) -> None:
        """Lets go of the driver, and waits for the end of one that only this source used; again it does nothing."""

    @abstractmethod
    def let_go(self) -> None:
        """As `release`, for where nothing can be awaited: the driver ends by itself, a little later."""


class _External(DriverSource):
    """A driver that somebody else looks after."""

    def __init__(self, aeron_dir: Path) -> None:
        self._aeron_dir = aeron_dir

    async def acquire(self) -> Path:
        return self._aeron_dir

    def on_exit(self, callback: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    async def release(self) -> None:
        pass

    def let_go(self) -> None:
        pass


class _Given(DriverSource):
    """A driver that the user has started, and closes."""

    def __init__(self, driver: MediaDriver) -> None:
        self.driver: MediaDriver = driver

    async def acquire(self) -> Path:
        if not self.driver.is_alive:
            raise DriverNotRunningError(f"the driver to connect to does not run: {self.driver!r}")
        return self.driver.aeron_dir

    def on_exit(self, callback: Callable[[], None]) -> Callable[[], None]:
        return self.driver._on_exit(callback)

    async def release(self) -> None:
        pass

    def let_go(self) -> None:
        pass


class _Embedded(DriverSource):
    """A driver of this source alone. One that has died, or hangs, is followed by another."""

    ends_with_users = True

    def __init__(self, config: DriverConfig) -> None:
        self._config = config
        self._acquiring = anyio.Lock()

    async def acquire(self) -> Path:
        async with self._acquiring:
            if self.driver is not None and not self.driver._is_responsive():
                await self.release()
            if self.driver is None:
                driver = MediaDriver(self._config)
                await driver.start()
                self.driver = driver
            return self.driver.aeron_dir

    def on_exit(self, callback: Callable[[], None]) -> Callable[[], None]:
        assert self.driver is not None
        return self.driver._on_exit(callback)

    async def release(self) -> None:
        if self.driver is not None:
            driver, self.driver = self.driver, None
            await driver.aclose()

    def let_go(self) -> None:
        if self.driver is not None:
            driver, self.driver = self.driver, None
            driver._let_go()


class _Shared(DriverSource):
    """A driver of all processes that use its directory: the first of them starts it, it ends after the last."""

    ends_with_users = True

    def __init__(self, aeron_dir: str | os.PathLike[str], config: DriverConfig) -> None:
        self._files = DriverFiles.beside(aeron_dir)
        self._config = config
        self._owner_pid = os.getpid()
        self._lease = FileLock(self._files.lease)
        self._joined: _JoinedDriver | None = None
        self._acquiring = anyio.Lock()

    async def acquire(self) -> Path:
        async with self._acquiring:
            if not self._is_alive:
                self._drop()
                try:
                    with driver_errors("the driver cannot be shared"):
                        await self._take_lease()
                        await self._start_or_join()
                except BaseException:
                    self._lease.release()
                    with suppress(OSError):
                        self._files.remove_if_unused()
                    raise
            return self._files.aeron_dir

    def on_exit(self, callback: Callable[[], None]) -> Callable[[], None]:
        if self.driver is not None:
            return self.driver._on_exit(callback)
        assert self._joined is not None
        return self._joined.exit.subscribe(callback)

    async def release(self) -> None:
        self.let_go()

    def let_go(self) -> None:
        # A forked child holds nothing, and the loop that watches is not its own.
        if os.getpid() == self._owner_pid:
            self._drop()
            self._lease.release()

    @property
    def _is_alive(self) -> bool:
        if self.driver is not None:
            return self.driver.is_alive
        return self._joined is not None and not self._joined.exit.is_set

    def _drop(self) -> None:
        if self.driver is not None:
            self.driver._abandon()
            self.driver = None
        if self._joined is not None:
            self._joined.close()
            self._joined = None

    async def _take_lease(self) -> None:
        """From here on a driver that is not ending already does not end."""
        if self._lease.is_held:
            return
        self._lease.release()
        self._files.lease.parent.mkdir(parents=True, exist_ok=True)
        await self._until(self._lease.try_shared, "the driver before has not ended")

    async def _start_or_join(self) -> None:
        alive = FileLock(self._files.alive)
        await self._until(lambda: alive.try_exclusive() or self._join(), "the driver that was started is not ready")
        if self._joined is not None:
            return
        try:
            self.driver = await MediaDriver._start_shared(self._config, self._files, alive, _SHARED_GRACE)
        except DirectoryInUseError:
            raise DirectoryInUseError(
                f'a driver that was not started with driver="shared" serves {self._files.aeron_dir}: use '
                'driver="external" there'
            ) from None

    def _join(self) -> bool:
        served = ServedDirectory.open(self._files.aeron_dir)
        if served is not None:
            self._joined = _JoinedDriver(served)
        return served is not None

    async def _until(self, succeeds: Callable[[], bool], problem: str) -> None:
        """Returns when what other processes do has let `succeeds`."""
        deadline = anyio.current_time() + _JOIN_TIMEOUT
        while not succeeds():
            if anyio.current_time() > deadline:
                raise DriverStartError(f"{problem} after {_JOIN_TIMEOUT:.0f} s: {self._files.aeron_dir}")
            await anyio.sleep(_JOIN_POLL)


class _JoinedDriver:
    """A driver that another process has started. It may run in another container, so its process id says nothing."""

    def __init__(self, served: ServedDirectory) -> None:
        self.exit = ExitSignal()
        self._served = served
        self._task = _tasks.spawn(self._watch, "aeron_async: watch shared driver")

    def close(self) -> None:
        self._task.cancel()
        self._served.close()

    async def _watch(self) -> None:
        while not self.exit.is_set:
            await anyio.sleep(_ALIVE_POLL)
            if not self._served.is_alive():
                self.exit.set()


def choose_driver(
    aeron_dir: str | os.PathLike[str] | None,
    driver: DriverKind | MediaDriver | DriverConfig | None,
    driver_config: DriverConfig | None,
) -> DriverSource:
    """The source of the driver that the arguments of `connect()` and the environment name.

    An explicit `driver` comes first, then `aeron_dir`, then AERON_DIR, then an embedded driver.
    """
    if isinstance(driver, MediaDriver):
        if aeron_dir is not None or driver_config is not None:
            raise ValueError("a MediaDriver has its own directory and settings: leave out aeron_dir and driver_config")
        return _Given(driver)
    if isinstance(driver, DriverConfig):
        if driver_config is not None:
            raise ValueError("driver and driver_config both have settings")
        return choose_driver(aeron_dir, "embedded", driver)
    config = driver_config or DriverConfig()
    if driver is None:
        driver = "embedded" if aeron_dir is None and not os.environ.get("AERON_DIR") else "external"
    if driver == "embedded":
        return _Embedded(config if aeron_dir is None else replace(config, aeron_dir=aeron_dir))
    directory = aeron_dir or config.directory or os.environ.get("AERON_DIR") or default_aeron_dir()
    if driver == "shared":
        return _Shared(directory, config)
    if driver == "external":
        return _External(Path(os.path.abspath(directory)))
    raise ValueError(
        f'driver must be "embedded", "shared", "external", a MediaDriver or a DriverConfig, not {driver!r}'
    )

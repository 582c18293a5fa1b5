"""Where a driver's directory is, and the files that go with it.

They lie beside the directory, because the driver recreates that when it starts.
"""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from aeron_async._wake_fifos import wake_folder_of
from aeron_async.driver.locks import FileLock
from aeron_async.errors import DriverAccessError, DriverError, DriverStartError

__all__ = ["DriverFiles", "create_private_folder", "default_aeron_dir", "driver_errors", "private_base"]


def default_aeron_dir() -> Path:
    """The directory that Aeron's drivers and clients use where nothing names one."""
    user = os.environ.get("USER") or _user_name()
    base = "/dev/shm" if sys.platform == "linux" else tempfile.gettempdir()
    return Path(base) / f"aeron-{user}"


def _user_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return "default"


@contextmanager
def driver_errors(what: str) -> Iterator[None]:
    """Lets what the system refuses be a `DriverAccessError` or a `DriverStartError`."""
    try:
        yield
    except DriverError:
        raise
    except PermissionError as error:
        raise DriverAccessError(f"{what}: {error}") from error
    except OSError as error:
        raise DriverStartError(f"{what}: {error}") from error


@dataclass(frozen=True, slots=True)
class DriverFiles:
    """The directory that a driver serves, its lease, its lock, its log, and its clients' wake-up FIFOs."""

    aeron_dir: Path
    lease: Path
    alive: Path
    log: Path
    wake: Path
    folder: Path | None
    """The private folder that holds them all."""

    @classmethod
    def in_folder(cls, folder: Path) -> DriverFiles:
        """The files of a driver that has a private folder."""
        aeron_dir = folder / "driver"
        return cls(
            aeron_dir, folder / "lease", folder / "alive", folder / "driver.log", wake_folder_of(aeron_dir), folder
        )

    @classmethod
    def beside(cls, aeron_dir: str | os.PathLike[str]) -> DriverFiles:
        """The files of a driver that serves a directory somebody chose."""
        aeron_dir = Path(os.path.abspath(aeron_dir))
        lease, alive, log = (aeron_dir.with_name(f"{aeron_dir.name}.{name}") for name in ("lease", "alive", "log"))
        return cls(aeron_dir, lease, alive, log, wake_folder_of(aeron_dir), None)

    @property
    def removable(self) -> tuple[Path, ...]:
        """What is left when the driver's directory is gone, in the order in which it can be removed."""
        return (self.folder,) if self.folder is not None else (self.wake, self.log, self.alive, self.lease)

    def remove_if_unused(self) -> None:
        """Removes what no driver and no user of one holds, as a driver does itself whose lease has ended."""
        lease, alive = FileLock(self.lease), FileLock(self.alive)
        try:
            if lease.try_exclusive() and alive.try_exclusive():
                for path in self.removable:
                    if path.is_dir():
                        shutil.rmtree(path, ignore_errors=True)
                    else:
                        path.unlink(missing_ok=True)
        except FileNotFoundError:
            pass
        finally:
            lease.close()
            alive.close()


def create_private_folder() -> tuple[DriverFiles, FileLock]:
    """Makes a folder for a driver of this process alone, and takes the lease in it. Sweeps those of the dead.

    Raises `DriverStartError` where no place can be had.
    """
    base = private_base()
    _sweep(base)
    while True:
        files = DriverFiles.in_folder(Path(tempfile.mkdtemp(dir=base, prefix="")))
        lease = FileLock(files.lease)
        # Another process may sweep the folder before its lease is taken.
        with suppress(FileNotFoundError):
            if lease.try_shared():
                return files, lease


def private_base() -> Path:
    """The folder of this user, mode 0700, that holds the private folders.

    Raises `DriverStartError` where no place can be had.
    """
    problems = []
    for base in _candidates():
        try:
            base.mkdir(mode=0o700, exist_ok=True)
            status = base.lstat()
        except OSError as error:
            problems.append(f"{base}: {error.strerror}")
            continue
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077:
            return base
        problems.append(f"{base}: not a folder that belongs to this user alone")
    raise DriverStartError(f"there is no place for a private folder: {'; '.join(problems)}. Set XDG_RUNTIME_DIR")


def _candidates() -> Iterator[Path]:
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    if runtime.is_absolute():
        yield runtime / "aeron_async"
    for parent in ("/dev/shm", tempfile.gettempdir()):
        yield Path(parent) / f"aeron_async-{os.geteuid()}"


def _sweep(base: Path) -> None:
    for folder in base.iterdir():
        with suppress(OSError):
            if stat.S_ISDIR(folder.lstat().st_mode):
                DriverFiles.in_folder(folder).remove_if_unused()

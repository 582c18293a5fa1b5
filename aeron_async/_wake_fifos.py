"""The FIFOs through which publishers wake the readers of other processes, in a folder beside the driver's directory."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path

# How often a FIFO is made again that somebody has swept away meanwhile.
_ATTEMPTS = 10


def wake_folder_of(aeron_dir: Path) -> Path:
    """Where the FIFOs of a driver's clients are."""
    return aeron_dir.with_name(f"{aeron_dir.name}.wake")


class WakeFifos:
    """The FIFOs of the clients of one driver: each has the client's id for its name, and a lock while its owner lives.

    Only folders and FIFOs that belong to this user alone are used. Everything raises `OSError` where that cannot be.
    """

    def __init__(self, aeron_dir: Path) -> None:
        self._folder = wake_folder_of(Path(os.path.abspath(aeron_dir)))

    def create(self, client_id: int) -> int:
        """Makes the FIFO of a client of this process, and sweeps those of the dead; its descriptor."""
        for _ in range(_ATTEMPTS):
            self._make_folder()
            self._sweep()
            path = self._path(client_id)
            # What is left of an earlier driver's client, or swept away at once.
            with suppress(FileExistsError, FileNotFoundError):
                os.mkfifo(path, 0o600)
            with suppress(FileNotFoundError):
                fd = _open(path)
                if _lock(fd) and _is_at(fd, path):
                    return fd
                os.close(fd)
        raise OSError(errno.EEXIST, "another client's wake-up FIFO is in the way", str(self._path(client_id)))

    def open(self, client_id: int) -> int:
        """Opens the FIFO of somebody else's client to write to; its descriptor."""
        self._check_folder()
        return _open(self._path(client_id))

    def remove(self, client_id: int) -> None:
        """Removes the FIFO of a client of this process, and the folder with the last of them."""
        with suppress(OSError):
            self._path(client_id).unlink()
            self._folder.rmdir()

    def _path(self, client_id: int) -> Path:
        return self._folder / str(client_id)

    def _make_folder(self) -> None:
        with suppress(FileExistsError):
            self._folder.mkdir(mode=0o700)
        with suppress(FileNotFoundError):
            self._check_folder()

    def _check_folder(self) -> None:
        status = self._folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise OSError(errno.EPERM, "not a folder that belongs to this user alone", str(self._folder))

    def _sweep(self) -> None:
        with suppress(FileNotFoundError):
            for name in os.listdir(self._folder):
                with suppress(OSError):
                    _remove_if_dead(self._folder / name)


def _remove_if_dead(path: Path) -> None:
    fd = _open(path)
    try:
        if _lock(fd) and _is_at(fd, path):
            path.unlink()
    finally:
        os.close(fd)


def _open(path: Path) -> int:
    # For both directions: that needs nobody at the other end, and a write never meets a broken pipe.
    fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    status = os.fstat(fd)
    if not stat.S_ISFIFO(status.st_mode) or status.st_uid != os.geteuid():
        os.close(fd)
        raise OSError(errno.EPERM, "not a FIFO that belongs to this user", str(path))
    return fd


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False

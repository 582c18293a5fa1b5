"""Locks on files (flock) that say, to every process, that their holder lives."""

from __future__ import annotations

import fcntl
import os
import stat
import weakref
from pathlib import Path

__all__ = ["FileLock"]


class FileLock:
    """A lock on the file at `path`, which is created where it is missing. Nothing here waits.

    The file may be removed by whoever holds its lock exclusively; a lock on a removed file is worth nothing and never
    reported as taken.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        _locks.add(self)

    def __del__(self) -> None:
        self.close()

    @property
    def fd(self) -> int:
        """The descriptor that carries the lock."""
        assert self._fd is not None
        return self._fd

    @property
    def is_held(self) -> bool:
        """Whether the lock was taken, and the file is still the one at `path`."""
        return self._fd is not None and _is_file_at(self._fd, self.path)

    def try_shared(self) -> bool:
        """Takes the lock together with others who share it; False where somebody holds it exclusively."""
        return self._try(fcntl.LOCK_SH)

    def try_exclusive(self) -> bool:
        """Takes the lock alone; False where somebody holds it."""
        return self._try(fcntl.LOCK_EX)

    def release(self) -> None:
        """Gives the lock up, also on behalf of processes that were given a copy of its descriptor."""
        if self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            self.close()

    def close(self) -> None:
        """Closes this process's descriptor: the lock goes with the last copy of it."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)

    def _try(self, operation: int) -> bool:
        assert self._fd is None
        while True:
            fd = _open(self.path)
            try:
                fcntl.flock(fd, operation | fcntl.LOCK_NB)
                if _is_file_at(fd, self.path):
                    self._fd = fd
                    return True
            except BlockingIOError:
                return False
            finally:
                if self._fd is None:
                    os.close(fd)


def _open(path: Path) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        os.close(fd)
        raise PermissionError(f"{path} is not a file of this user")
    return fd


def _is_file_at(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False


_locks: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _close_in_child() -> None:
    # Not released: that would take the lock from the parent.
    for lock in _locks:
        lock.close()


os.register_at_fork(after_in_child=_close_in_child)

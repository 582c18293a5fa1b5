"""Locks that say that their holder lives."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aeron_async.driver.locks import FileLock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def test_several_share_a_lock_and_nobody_gets_it_alone(path: Path) -> None:
    first, second, other = FileLock(path), FileLock(path), FileLock(path)
    assert first.try_shared()
    assert second.try_shared()
    assert not other.try_exclusive()
    first.release()
    assert not other.try_exclusive()
    second.release()
    assert other.try_exclusive()


def test_who_has_it_alone_shares_it_with_nobody(path: Path) -> None:
    holder = FileLock(path)
    assert holder.try_exclusive()
    assert not FileLock(path).try_shared()
    assert not FileLock(path).try_exclusive()


def test_a_lock_that_nobody_refers_to_is_given_up(path: Path) -> None:
    holder = FileLock(path)
    assert holder.try_exclusive()
    del holder
    assert FileLock(path).try_exclusive()


def test_closing_leaves_the_lock_with_copies_of_the_descriptor_and_releasing_does_not(path: Path) -> None:
    holder = FileLock(path)
    assert holder.try_exclusive()
    handed_over = os.dup(holder.fd)
    holder.close()
    assert not FileLock(path).try_exclusive()
    os.close(handed_over)

    assert holder.try_exclusive()
    handed_over = os.dup(holder.fd)
    holder.release()
    assert FileLock(path).try_exclusive()
    os.close(handed_over)


def test_a_lock_on_a_removed_file_is_not_held(path: Path) -> None:
    holder = FileLock(path)
    assert not holder.is_held
    assert holder.try_shared()
    assert holder.is_held
    path.unlink()
    assert not holder.is_held
    # Others lock the file that is there now.
    assert FileLock(path).try_exclusive()
    assert not holder.is_held


def test_a_file_that_is_removed_while_it_is_locked_is_not_reported_as_locked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_look = iter([True])

    def flock(fd: int, operation: int) -> None:
        if next(first_look, False):
            path.unlink()

    monkeypatch.setattr("fcntl.flock", flock)
    lock = FileLock(path)
    assert lock.try_shared()
    assert lock.is_held
    lock.close()


def test_its_file_is_for_the_user_alone(path: Path) -> None:
    lock = FileLock(path)
    assert lock.try_shared()
    assert path.stat().st_mode & 0o077 == 0


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        FileLock(path).try_shared()
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_of_somebody_else_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.touch()
    monkeypatch.setattr("os.geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(PermissionError, match="lock"):
        FileLock(path).try_shared()

"""FIFOs of clients: private, locked while their owners live, and swept afterwards."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aeron_async._wake_fifos import WakeFifos


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "driver.wake"


@pytest.fixture
def fifos(tmp_path: Path) -> WakeFifos:
    return WakeFifos(tmp_path / "driver")


def test_what_is_written_by_others_is_read_by_the_owner(fifos: WakeFifos) -> None:
    own = fifos.create(1)
    other = fifos.open(1)
    assert os.write(other, b"x") == 1
    assert os.read(own, 64) == b"x"
    with pytest.raises(BlockingIOError):
        os.read(own, 64)
    os.close(other)
    os.close(own)


def test_the_folder_goes_with_the_last_fifo(fifos: WakeFifos, folder: Path) -> None:
    descriptors = [fifos.create(client_id) for client_id in (1, 2)]
    fifos.remove(1)
    assert os.listdir(folder) == ["2"]
    fifos.remove(2)
    fifos.remove(2)
    assert not folder.exists()
    for descriptor in descriptors:
        os.close(descriptor)


def test_fifos_of_the_dead_are_swept_and_those_of_the_living_stay(fifos: WakeFifos, folder: Path) -> None:
    dead, living = fifos.create(1), fifos.create(2)
    os.close(dead)
    os.close(fifos.create(3))
    assert sorted(os.listdir(folder)) == ["2", "3"]
    os.close(living)


def test_a_fifo_that_a_dead_client_of_the_same_id_has_left_is_used_again(fifos: WakeFifos) -> None:
    os.close(fifos.create(1))
    os.close(fifos.create(1))


def test_a_fifo_of_a_living_client_is_not_taken_over(fifos: WakeFifos) -> None:
    descriptor = fifos.create(1)
    with pytest.raises(FileExistsError):
        fifos.create(1)
    os.close(descriptor)


def test_who_has_no_fifo_cannot_be_signalled(fifos: WakeFifos) -> None:
    with pytest.raises(FileNotFoundError):
        fifos.open(1)
    descriptor = fifos.create(1)
    with pytest.raises(FileNotFoundError):
        fifos.open(2)
    os.close(descriptor)


def test_what_is_no_fifo_is_left_alone(fifos: WakeFifos, folder: Path, tmp_path: Path) -> None:
    folder.mkdir(mode=0o700)
    (folder / "1").touch()
    os.mkfifo(tmp_path / "elsewhere")
    (folder / "2").symlink_to(tmp_path / "elsewhere")
    for client_id in (1, 2):
        with pytest.raises(OSError, match=r"not a FIFO|symbolic links"):
            fifos.open(client_id)
        with pytest.raises(OSError, match=r"not a FIFO|symbolic links"):
            fifos.create(client_id)
    assert sorted(os.listdir(folder)) == ["1", "2"]


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_is_open_to_others_is_not_used(fifos: WakeFifos, folder: Path, mode: int) -> None:
    folder.mkdir()
    folder.chmod(mode)
    for use in (fifos.create, fifos.open):
        with pytest.raises(PermissionError, match="not a folder that belongs to this user alone"):
            use(1)

"""What is read of a driver in its directory."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aeron_async.driver.directory import CncReader, Observation, ServedDirectory
from aeron_async.protocol.records import MalformedRecord

ERROR_LOG_LENGTH = 256
ERROR_LOG_OFFSET = 128 + (1024 + 768) + (1024 + 128)
HEADER = struct.Struct("<iiiiiiqqqi")


def write_cnc(directory: Path, error_log: bytes, version: int = 512) -> None:
    """A CnC file that has room for no counters."""
    start = HEADER.pack(version, 1024 + 768, 1024 + 128, 0, 0, ERROR_LOG_LENGTH, 10**10, 0, 7, 4096)
    content = start.ljust(ERROR_LOG_OFFSET, b"\0") + error_log.ljust(ERROR_LOG_LENGTH, b"\0")
    (directory / "cnc.dat").write_bytes(content)


def errors_of(directory: Path) -> list[Observation]:
    with closing(CncReader.open(directory)) as cnc:
        return list(cnc.errors())


def record(text: bytes, count: int) -> bytes:
    """A record of the distinct error log; times are in milliseconds."""
    header = struct.pack("<iiqq", 24 + len(text), count, 2500, 1500)
    return (header + text).ljust((24 + len(text) + 7) // 8 * 8, b"\0")


def test_errors_are_read_in_their_order(tmp_path: Path) -> None:
    write_cnc(tmp_path, record(b"first", 3) + record("zwölf".encode(), 1))
    assert errors_of(tmp_path) == [
        Observation(0, 3, 1.5, 2.5, "first"),
        Observation(32, 1, 1.5, 2.5, "zwölf"),
    ]


def test_an_error_log_that_is_full_ends_where_it_does(tmp_path: Path) -> None:
    write_cnc(tmp_path, record(b"x" * (ERROR_LOG_LENGTH - 24), 1))
    assert [len(error.description) for error in errors_of(tmp_path)] == [ERROR_LOG_LENGTH - 24]


@pytest.mark.parametrize("length", [-1, 1, 23, ERROR_LOG_LENGTH + 1, 2**31 - 1])
def test_an_error_of_a_length_that_cannot_be_is_reported_as_such(tmp_path: Path, length: int) -> None:
    write_cnc(tmp_path, struct.pack("<iiqq", length, 1, 0, 0))
    with pytest.raises(MalformedRecord, match=str(length)):
        errors_of(tmp_path)


@given(st.binary(max_size=ERROR_LOG_LENGTH))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_read_or_refused(tmp_path: Path, error_log: bytes) -> None:
    write_cnc(tmp_path, error_log)
    try:
        errors = errors_of(tmp_path)
    except MalformedRecord:
        return
    assert len(errors) <= ERROR_LOG_LENGTH // 24


def test_a_file_is_not_ready_before_its_version_is_there(tmp_path: Path) -> None:
    write_cnc(tmp_path, b"", version=0)
    with closing(CncReader.open(tmp_path)) as cnc:
        assert not cnc.is_ready
    write_cnc(tmp_path, b"")
    with closing(CncReader.open(tmp_path)) as cnc:
        assert cnc.is_ready


def test_a_heartbeat_that_was_never_written_is_as_old_as_time(tmp_path: Path) -> None:
    write_cnc(tmp_path, b"")
    with closing(CncReader.open(tmp_path)) as cnc:
        assert cnc.heartbeat_age() > 365 * 24 * 3600


@pytest.mark.parametrize("damage", [lambda content: b"", lambda content: content[:40], lambda content: content[:-1]])
def test_a_file_that_is_too_short_is_refused(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    write_cnc(tmp_path, b"")
    path = tmp_path / "cnc.dat"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(MalformedRecord):
        CncReader.open(tmp_path)


def test_a_directory_without_a_driver_of_ours_is_not_served(tmp_path: Path) -> None:
    assert ServedDirectory.open(tmp_path) is None
    assert ServedDirectory.open(tmp_path / "nowhere") is None
    (tmp_path / "aeron-async.lock").touch()
    assert ServedDirectory.open(tmp_path) is None

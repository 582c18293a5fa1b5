"""The bundled driver's program, run by hand."""

from __future__ import annotations

import fcntl
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from subprocess import TimeoutExpired

import pytest

from tests.drivers import BinaryRun, read_metadata, running_binary, wait_until
from tests.support import LIMIT, scratch_folder


@pytest.fixture
def aeron_dir() -> Iterator[Path]:
    """Where the test may start a driver."""
    with scratch_folder() as folder:
        yield folder / "driver"


def hold(path: Path) -> int:
    """Takes the lease as a user of the driver does."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(fd, fcntl.LOCK_SH)
    return fd


def test_version_names_the_program_the_crate_and_aeron() -> None:
    code, output, _ = BinaryRun("--version").finish()
    assert code == 0
    assert output == "aeron-async-driver 0.1.0 (rusteron-media-driver 0.2.16, Aeron 1.54.0)\n"


def test_it_prints_one_line_of_json_when_it_is_ready(aeron_dir: Path) -> None:
    run = BinaryRun("--dir", aeron_dir)
    ready = json.loads(run.line())
    assert ready == {
        "pid": run.process.pid,
        "aeron_dir": str(aeron_dir),
        "version": "0.1.0",
        "aeron_version": "1.54.0",
    }
    assert read_metadata(aeron_dir).pid == run.process.pid
    assert run.stop() == (0, "", "")


def test_the_directory_comes_from_the_environment_where_no_argument_names_it(aeron_dir: Path) -> None:
    with running_binary(AERON_DIR=str(aeron_dir)) as run:
        assert read_metadata(aeron_dir).pid == run.process.pid


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_it_cleanly(aeron_dir: Path, number: signal.Signals) -> None:
    with running_binary("--dir", aeron_dir, "--delete-dir-on-exit") as run:
        assert run.stop(number) == (0, "", "")
    assert not aeron_dir.exists()


def test_it_keeps_its_directory_unless_told_otherwise(aeron_dir: Path) -> None:
    with running_binary("--dir", aeron_dir) as run:
        assert run.stop() == (0, "", "")
    assert (aeron_dir / "cnc.dat").exists()


def test_the_usual_variable_lets_it_delete_its_directory(aeron_dir: Path) -> None:
    with running_binary("--dir", aeron_dir, AERON_DIR_DELETE_ON_SHUTDOWN="1") as run:
        assert run.stop() == (0, "", "")
    assert not aeron_dir.exists()


@pytest.mark.parametrize("environment", [{}, {"AERON_DIR_DELETE_ON_START": "1", "AERON_DIR_DELETE_ON_SHUTDOWN": "1"}])
def test_it_refuses_the_directory_of_a_live_driver(aeron_dir: Path, environment: dict[str, str]) -> None:
    with running_binary("--dir", aeron_dir) as first:
        code, _, errors = BinaryRun("--dir", aeron_dir, "--delete-dir-on-exit", **environment).finish()
        assert code == 3
        assert f"a live driver serves {aeron_dir}" in errors
        assert read_metadata(aeron_dir).pid == first.process.pid


def test_it_takes_over_at_once_from_a_driver_that_was_killed(aeron_dir: Path) -> None:
    with running_binary("--dir", aeron_dir) as first:
        first.stop(signal.SIGKILL)
    with running_binary("--dir", aeron_dir) as second:
        assert read_metadata(aeron_dir).pid == second.process.pid


@pytest.mark.parametrize("content", [b"", b"\0" * 4096], ids=["empty", "zeroed"])
def test_it_takes_over_from_a_driver_that_left_a_broken_file(aeron_dir: Path, content: bytes) -> None:
    aeron_dir.mkdir()
    (aeron_dir / "cnc.dat").write_bytes(content)
    with running_binary("--dir", aeron_dir) as run:
        assert read_metadata(aeron_dir).pid == run.process.pid


def test_it_does_not_delete_what_no_driver_has_made(aeron_dir: Path) -> None:
    aeron_dir.mkdir()
    (aeron_dir / "thesis.tex").touch()
    code, _, errors = BinaryRun("--dir", aeron_dir, "--delete-dir-on-exit").finish()
    assert code == 1
    assert "thesis.tex" in errors
    assert (aeron_dir / "thesis.tex").exists()


def test_wrong_settings_end_it_with_aerons_reason(aeron_dir: Path) -> None:
    code, _, errors = BinaryRun("--dir", aeron_dir, AERON_MTU_LENGTH="1001").finish()
    assert code == 1
    assert "mtuLength" in errors
    assert not aeron_dir.exists()


def test_wrong_arguments_end_it(aeron_dir: Path) -> None:
    code, _, errors = BinaryRun("--leese", aeron_dir).finish()
    assert code == 2
    assert "--leese" in errors


def test_it_ends_with_the_last_holder_of_its_lease_and_removes_what_it_was_told_to(aeron_dir: Path) -> None:
    folder = aeron_dir.parent
    lease, other_file, other_folder = folder / "lease", folder / "log", folder / "more"
    other_file.touch()
    (other_folder / "deep").mkdir(parents=True)
    first, second = hold(lease), hold(lease)
    with running_binary(
        "--dir", aeron_dir, f"--lease={lease}", f"--remove={other_file}", f"--remove={other_folder}"
    ) as run:
        os.close(first)
        with pytest.raises(TimeoutExpired):
            run.process.wait(1.0)
        os.close(second)
        assert run.finish() == (0, "", "")
    assert not other_file.exists()
    assert not other_folder.exists()


def test_a_signal_leaves_what_it_removes_with_its_lease(aeron_dir: Path) -> None:
    lease, log = aeron_dir.parent / "lease", aeron_dir.parent / "log"
    log.touch()
    holder = hold(lease)
    with running_binary("--dir", aeron_dir, f"--lease={lease}", f"--remove={log}") as run:
        assert run.stop() == (0, "", "")
    assert log.exists()
    os.close(holder)


def test_it_needs_the_lease_it_is_told_of(aeron_dir: Path) -> None:
    code, _, errors = BinaryRun("--dir", aeron_dir, f"--lease={aeron_dir}.lease").finish()
    assert code == 1
    assert f"{aeron_dir}.lease" in errors


def test_it_goes_on_when_nobody_reads_its_output(aeron_dir: Path) -> None:
    run = BinaryRun("--dir", aeron_dir)
    run.process.stdout.close()
    wait_until(lambda: (aeron_dir / "aeron-async.lock").exists())
    run.process.terminate()
    assert run.process.wait(LIMIT) == 0
    run.process.stderr.close()


def test_it_prints_its_configuration_when_it_is_asked_to(aeron_dir: Path) -> None:
    run = BinaryRun("--dir", aeron_dir, AERON_PRINT_CONFIGURATION="1")
    lines = [run.line()]
    while not lines[-1].startswith('{"pid"'):
        lines.append(run.line())
    assert "    print_configuration_on_start=1\n" in lines
    assert json.loads(lines[-1])["pid"] == run.process.pid
    assert run.stop() == (0, "", "")

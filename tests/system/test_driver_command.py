"""`aeron-async driver`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aeron_async.driver import launch as launching
from aeron_async.tools import main
from tests.drivers import running_binary
from tests.support import LIMIT, scratch_folder

pytestmark = pytest.mark.usefixtures("runtime_dir")

VERSION = "aeron-async-driver 0.1.0 (rusteron-media-driver 0.2.16, Aeron 1.54.0)"


def test_it_says_what_an_embedded_driver_would_be(capsys: pytest.CaptureFixture[str], runtime_dir: Path) -> None:
    assert main(["driver"]) == 0
    lines = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines())
    assert {name: value.strip() for name, value in lines.items()} == {
        "mode": "embedded",
        "directory": f"{runtime_dir}/aeron_async/*/driver",
        "binary": str(launching._BUNDLED_BINARY),
        "version": VERSION,
    }


def test_it_says_the_same_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["driver", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["mode"], answer["version"]) == ("embedded", VERSION)


def test_it_says_which_driver_the_environment_names(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with scratch_folder() as folder:
        monkeypatch.setenv("AERON_DIR", str(folder / "driver"))
        assert main(["driver", "--json"]) == 0
        before = json.loads(capsys.readouterr().out)
        assert (before["mode"], before["directory"], before["version"]) == ("external", f"{folder}/driver", None)
        with running_binary():
            assert main(["driver", "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["version"] == "1.54.0"


def test_without_a_bundled_driver_it_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "_BUNDLED_BINARY", Path("/no/such/driver"))
    assert main(["driver", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["binary"], answer["version"]) == (None, None)
    assert main(["driver", "run"]) == 1
    assert "Rust" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_driver_runs_in_the_foreground_until_a_signal(number: signal.Signals) -> None:
    with scratch_folder() as folder:
        command = [sys.executable, "-m", "aeron_async.tools", "driver", "run", "--aeron-dir", str(folder / "driver")]
        run = subprocess.Popen(
            [*command, "--profile=low_power", "--set=AERON_PRINT_CONFIGURATION=1", "--set", "AERON_MTU_LENGTH=4096"],
            env={**os.environ, "AERON_DIR": "/not/this"},
            stdout=subprocess.PIPE,
            text=True,
        )
        lines = [run.stdout.readline()]
        while not lines[-1].startswith('{"pid"'):
            lines.append(run.stdout.readline())
        assert "    mtu_length=4096\n" in lines
        assert json.loads(lines[-1])["aeron_dir"] == f"{folder}/driver"
        # It is this very process: what supervises the command supervises the driver.
        assert json.loads(lines[-1])["pid"] == run.pid
        run.send_signal(number)
        rest, _ = run.communicate(timeout=LIMIT)
        assert (run.returncode, rest) == (0, "")
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("arguments", [[], ["drive"], ["driver", "run", "--set", "novalue"], ["driver", "--profile"]])
def test_arguments_that_it_does_not_know_end_it(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: aeron-async" in capsys.readouterr().err

"""A typed program of a user that uses the whole package: it passes a strict type checker, and it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

PROGRAM = Path(__file__).with_name("user_program.py")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the type checker knows already; the checks of a module share it."""
    return tmp_path_factory.mktemp("mypy")


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def type_check(program: Path, python_version: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """Checks a program with none of this project's settings."""
    options = ("--strict", "--config-file=", f"--python-version={python_version}", f"--cache-dir={cache}")
    return run("-m", "mypy", *options, program)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("python_version", ["3.11", "3.13"])
def test_the_user_program_is_well_typed(cache: Path, python_version: str) -> None:
    checked = type_check(PROGRAM, python_version, cache)
    assert (checked.returncode, checked.stdout) == (0, "Success: no issues found in 1 source file\n"), checked.stderr


@pytest.mark.timeout(600)
def test_misuse_is_a_type_error(tmp_path: Path, cache: Path) -> None:
    program = tmp_path / "misuse.py"
    program.write_text(
        "from aeron_async import ChannelUri, Client, Publication\n"
        "async def misuse(client: Client, publication: Publication) -> None:\n"
        "    publication.offer('text')\n"
        "    await publication.publish_vectored(['text'])\n"
        "    publication.try_claim(8).commit()\n"
        "    ChannelUri.ipc(term_lenght='64k')\n"
        "    (await client.add_publication('aeron:ipc', 1)).append_padding(32)\n"
        "    await client.add_subscription('aeron:ipc', '1')\n"
    )
    checked = type_check(program, "3.13", cache)
    errors = [int(line.split(":")[1]) for line in checked.stdout.splitlines() if ": error:" in line]
    assert errors == [3, 4, 5, 6, 7, 8], checked.stdout + checked.stderr


def test_the_user_program_runs() -> None:
    ran = run(PROGRAM)
    assert (ran.returncode, ran.stdout.splitlines()[-1:]) == (0, ["done"]), ran.stdout + ran.stderr

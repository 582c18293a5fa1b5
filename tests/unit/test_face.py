"""The two faces of the C core: which of them is used."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import aeron_async
from aeron_async import _face

FACES = {"speedups": "aeron_async._speedups", "pure": "aeron_async._pure_publication"}
SHOW = "import aeron_async; from aeron_async import _face; print(_face.NAME, _face.PublicationPath.__module__)"
OTHER_SOURCES = """
import sys, types
module = sys.modules["aeron_async._speedups"] = types.ModuleType("aeron_async._speedups")
module.FINGERPRINT = "other"
"""

has_speedups = find_spec("aeron_async._speedups") is not None


def run(program: str, pure: str) -> str:
    """What the program prints and logs."""
    package = Path(aeron_async.__file__).parents[1]
    return subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"AERON_ASYNC_PURE": pure, "PYTHONPATH": str(package)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    ).stdout


def test_the_face_in_use_is_the_one_that_was_asked_for() -> None:
    is_pure = os.environ.get("AERON_ASYNC_PURE", "0") not in ("", "0")
    expected = "speedups" if has_speedups and not is_pure else "pure"
    assert expected == _face.NAME
    assert _face.PublicationPath.__module__ == FACES[_face.NAME]
    assert issubclass(aeron_async.Publication, _face.PublicationPath)


@pytest.mark.parametrize(("pure", "expected"), [("1", "pure"), ("yes", "pure"), ("0", None), ("", None)])
def test_the_environment_asks_for_a_face(pure: str, expected: str | None) -> None:
    name = expected or ("speedups" if has_speedups else "pure")
    assert run(SHOW, pure) == f"{name} {FACES[name]}\n"


def test_speedups_of_other_sources_are_refused_and_the_pure_face_is_used() -> None:
    *logged, shown = run(OTHER_SOURCES + SHOW, "0").splitlines()
    assert shown == "pure aeron_async._pure_publication"
    assert "speedups_refused" in "".join(logged)
    assert "other sources" in "".join(logged)

"""A driver where this user may not have one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import run_program

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")

PROGRAM = """
    import anyio, os, sys
    from aeron_async import DriverAccessError, MediaDriver
    from aeron_async.driver import choose_driver

    async def main(aeron_dir):
        # By now everything is imported: the interpreter's own files may not be the other user's to read.
        os.setegid(65534)
        os.seteuid(65534)
        for start in (MediaDriver(aeron_dir=aeron_dir).start, choose_driver(aeron_dir, "shared", None).acquire):
            try:
                await start()
            except DriverAccessError as error:
                print(error)

    anyio.run(main, sys.argv[1])
"""


def test_no_permission_is_an_error_that_names_the_file(aeron_dir: Path) -> None:
    aeron_dir.parent.chmod(0o700)
    own, shared = run_program(PROGRAM, aeron_dir).splitlines()
    assert f"{aeron_dir}.alive" in own
    assert f"{aeron_dir}.lease" in shared


def test_a_file_of_somebody_else_in_the_drivers_place_is_refused(aeron_dir: Path) -> None:
    aeron_dir.parent.chmod(0o777)
    for name in ("alive", "lease"):
        file = aeron_dir.with_name(f"driver.{name}")
        file.touch()
        file.chmod(0o666)
    own, shared = run_program(PROGRAM, aeron_dir).splitlines()
    assert f"{aeron_dir}.alive is not a file of this user" in own
    assert f"{aeron_dir}.lease is not a file of this user" in shared

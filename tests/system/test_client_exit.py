"""Programs that end without closing their client, in every way a program can end."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import LIMIT, RUNNERS, Program, is_running, private_folders

NOISE = ("Task was destroyed", "Exception ignored", "never awaited", "never retrieved", "ResourceWarning")

RETURNS = """
    from aeron_async import connect

    async def main():
        client = await connect()
        subscription = await client.add_subscription("aeron:ipc", 1001)
        publication = await client.add_publication("aeron:ipc", 1001)
        await publication.publish(b"hello")
        async for message in subscription:
            print(client.driver.pid, flush=True)
            break
"""

RAISES = """
    from aeron_async import connect

    async def main():
        client = await connect()
        subscription = await client.add_subscription("aeron:ipc", 1001)
        print(client.driver.pid, flush=True)
        raise KeyError("of the user")
"""

ITERATES = """
    import signal
    from aeron_async import connect

    # A shell may have started the tests with this signal ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    async def main():
        async with connect() as client:
            subscription = await client.add_subscription("aeron:ipc", 1001)
            print(client.driver.pid, flush=True)
            async for message in subscription:
                pass
"""

EXITS = """
    import sys
    from aeron_async import connect

    async def main():
        async with connect() as client:
            print(client.driver.pid, flush=True)
            sys.exit(7)
"""


def soon(condition: Callable[[], bool]) -> bool:
    """Whether `condition()` becomes true."""
    deadline = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def leaves_nothing(driver_pid: str, runtime_dir: Path) -> bool:
    return soon(lambda: not is_running(int(driver_pid))) and soon(lambda: private_folders(runtime_dir) == [])


@pytest.fixture(params=list(RUNNERS))
def run(request: pytest.FixtureRequest) -> str:
    """The line that runs `main` on an event loop."""
    return f"\n    {RUNNERS[request.param]}\n"


def test_a_program_may_end_without_closing_its_client(runtime_dir: Path, run: str) -> None:
    with Program(RETURNS + run) as program:
        driver_pid = program.line()
        assert program.finish() == 0
        assert program.errors == ""
    assert leaves_nothing(driver_pid, runtime_dir)


def test_an_exception_that_ends_a_program_is_all_that_is_told(runtime_dir: Path, run: str) -> None:
    with Program(RAISES + run) as program:
        driver_pid = program.line()
        assert program.finish() == 1
        assert program.errors.rstrip().endswith("KeyError: 'of the user'")
        assert program.errors.count("Traceback") == 1
        assert not any(noise in program.errors for noise in NOISE)
    assert leaves_nothing(driver_pid, runtime_dir)


def test_an_interrupt_ends_a_program_that_reads(runtime_dir: Path, run: str) -> None:
    with Program(ITERATES + run) as program:
        driver_pid = program.line()
        program.signal(signal.SIGINT)
        assert program.finish() == -signal.SIGINT
        assert program.errors.rstrip().endswith("KeyboardInterrupt")
        assert not any(noise in program.errors for noise in NOISE)
    assert leaves_nothing(driver_pid, runtime_dir)


def test_sys_exit_inside_a_client_keeps_its_code(runtime_dir: Path, run: str) -> None:
    with Program(EXITS + run) as program:
        driver_pid = program.line()
        assert program.finish() == 7
        assert program.errors == ""
    assert leaves_nothing(driver_pid, runtime_dir)


def test_sigterm_leaves_no_driver_behind(runtime_dir: Path, run: str) -> None:
    with Program(ITERATES + run) as program:
        driver_pid = program.line()
        program.signal(signal.SIGTERM)
        assert program.finish() == -signal.SIGTERM
    assert leaves_nothing(driver_pid, runtime_dir)

"""What tests of drivers share: runs of the bundled driver's program, and programs that use a driver as clients do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from aeron_async.driver.config import DriverConfig
from aeron_async.driver.directory import CncReader
from aeron_async.driver.launch import find_binary
from aeron_async.protocol.cnc import CncMetadata
from tests.support import LIMIT, Program


def wait_until(condition: Callable[[], bool]) -> None:
    """Returns when `condition()` has become true."""
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "it has not become true"
        time.sleep(0.005)


def read_metadata(aeron_dir: Path) -> CncMetadata:
    """What the driver in `aeron_dir` says of itself."""
    with closing(CncReader.open(aeron_dir)) as cnc:
        assert cnc.is_ready
        return cnc.metadata


class BinaryRun:
    """A run of the bundled driver's program, as by hand."""

    def __init__(self, *arguments: str | Path, **environment: str) -> None:
        self.process = subprocess.Popen(
            [find_binary(DriverConfig()), *arguments],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        """The next line of its output."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def finish(self) -> tuple[int, str, str]:
        """Its exit code, and what it has still written to standard output and to standard error."""
        output, errors = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, output, errors

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """Sends a signal, and returns as `finish` does."""
        self.process.send_signal(number)
        return self.finish()


@contextmanager
def running_binary(*arguments: str | Path, **environment: str) -> Iterator[BinaryRun]:
    """A run of the bundled driver's program that is ready."""
    run = BinaryRun(*arguments, **environment)
    try:
        assert json.loads(run.line())["pid"] == run.process.pid
        yield run
    finally:
        if run.process.poll() is None:
            run.stop(signal.SIGKILL)


class DriverUser(Program):
    """A program that uses a driver: it does what it is told (see `tests/driver_user.py`), and answers in JSON."""

    def __init__(self, mode: str, aeron_dir: Path | None = None, **options: Any) -> None:
        options.update(mode=mode, aeron_dir=aeron_dir and str(aeron_dir))
        super().__init__("from tests.driver_user import run; run()", json.dumps(options))

    def hear(self) -> Any:
        """The next thing that it says."""
        return json.loads(self.line())

    def ask(self, command: str) -> Any:
        """Sends a command and returns the answer."""
        self.tell(command)
        return self.hear()

    def kill(self) -> None:
        """Ends it without a chance to clean up."""
        self.signal(signal.SIGKILL)
        self.finish()

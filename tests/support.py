"""What tests with a real driver share: its settings and directory, programs in processes of their own, and waiting."""

from __future__ import annotations

import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
import anyio.from_thread
import pytest

from aeron_async import Client, DriverConfig, MediaDriver, Publication, Subscription
from aeron_async.protocol.counter_types import CounterType

T = TypeVar("T")

LIMIT = 30.0
"""Seconds after which something that must come counts as never coming: against hangs, not an expectation."""

ROOT = Path(__file__).parents[1]

_SHM = Path("/dev/shm")

RUNNERS = {
    "asyncio": "import asyncio; asyncio.run(main())",
    "uvloop": "import uvloop; uvloop.run(main())",
    "trio": "import trio; trio.run(main)",
}
"""How a program runs its `main` on each event loop."""


def quick_config(**settings: Any) -> DriverConfig:
    """A driver with small terms that soon gives up what is gone."""
    quick: dict[str, Any] = {
        "term_buffer_length": 64 << 10,
        "ipc_term_buffer_length": 64 << 10,
        "image_liveness_timeout": 0.5,
        "publication_linger_timeout": 0.2,
        "timer_interval": 0.05,
    }
    return DriverConfig(**{**quick, **settings})


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder of its own for driver directories, in shared memory where there is some; removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="aeron_async-test-", dir=_SHM if _SHM.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def runtime_dir(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where embedded drivers of the test and of its programs have their private folders."""
    with scratch_folder() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
        monkeypatch.delenv("AERON_DIR", raising=False)
        yield folder


def private_folders(runtime_dir: Path) -> list[Path]:
    """The private folders of drivers that are there now."""
    return list(runtime_dir.glob("aeron_async/*"))


@contextmanager
def running_driver(**settings: Any) -> Iterator[MediaDriver]:
    """A driver for tests that do it no harm; an event loop in a thread of its own looks after it."""
    with scratch_folder() as folder, anyio.from_thread.start_blocking_portal() as portal:
        config = quick_config(aeron_dir=folder / "driver", **settings)
        with portal.wrap_async_context_manager(MediaDriver(config)) as driver:
            yield driver


async def eventually(condition: Callable[[], Any]) -> None:
    """Returns when `condition()` has become true."""
    with anyio.fail_after(LIMIT):
        while not condition():
            await anyio.sleep(0.005)


def free_udp_port() -> int:
    """A UDP port of the loopback interface that nobody uses now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def holds_nothing(client: Client) -> bool:
    """Whether the driver has no resource of any client: no counters but its own and the heartbeats."""
    return {info.type_id for info in client.counters} <= {CounterType.SYSTEM, CounterType.HEARTBEAT}


async def open_pair(
    client: Client, channel: str, stream_id: int = 1001, *, exclusive: bool = False
) -> tuple[Publication, Subscription]:
    """A publication and a subscription that are connected with each other."""
    subscription = await client.add_subscription(channel, stream_id)
    add = client.add_exclusive_publication if exclusive else client.add_publication
    publication = await add(channel, stream_id)
    await publication.wait_connected(LIMIT)
    await subscription.wait_connected(LIMIT)
    # The driver opens the window a moment after it has told of the connection.
    await eventually(lambda: publication.position_limit > publication.position)
    return publication, subscription


async def take(messages: AsyncIterator[T], count: int) -> list[T]:
    """The next `count` items of an iteration."""
    with anyio.fail_after(LIMIT):
        return [await anext(messages) for _ in range(count)]


_SEAL = struct.Struct("<qqI")


def sealed(publisher: int, number: int, length: int) -> bytes:
    """The message with a number of one of several publishers: a checksum over `length` bytes that depend on both."""
    body = random.Random(publisher << 32 | number).randbytes(length)
    return _SEAL.pack(publisher, number, zlib.crc32(body)) + body


def unseal(payload: bytes) -> tuple[int, int]:
    """The publisher and number of a sealed message, once its body is known to be whole."""
    publisher, number, checksum = _SEAL.unpack_from(payload)
    assert zlib.crc32(payload[_SEAL.size :]) == checksum, f"message {number} of publisher {publisher} is torn"
    return publisher, number


def is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Program:
    """A Python program in a process and session of its own; leaving the context kills it.

    It talks to the test in lines: `line()` waits for its next one, `tell()` sends it one. Nothing here waits longer
    than `LIMIT`.
    """

    def __init__(self, source: str, *arguments: object, environment: dict[str, str] | None = None) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the program
        self._output = b""
        self._process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(source), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._stdin, self._stdout, self._errors):
            stream.close()

    def line(self) -> str:
        """Its next line of output."""
        deadline = time.monotonic() + LIMIT
        while b"\n" not in self._output:
            if not self._read(deadline):
                raise AssertionError(f"the program ended without another line: {self._output!r}\n{self.errors}")
        line, _, self._output = self._output.partition(b"\n")
        return line.decode()

    def tell(self, line: str = "") -> None:
        """Sends it a line."""
        self._stdin.write(line.encode() + b"\n")

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        self._process.send_signal(number)

    def finish(self) -> int:
        """Its exit code, once it has ended; what it has still written goes to `output`."""
        deadline = time.monotonic() + LIMIT
        while self._read(deadline):
            pass
        return self._process.wait(max(0.1, deadline - time.monotonic()))

    @property
    def output(self) -> str:
        """What it has written and no `line()` has taken."""
        return self._output.decode()

    @property
    def errors(self) -> str:
        """What it has written to standard error."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._stdout], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise AssertionError(f"the program has said nothing for {LIMIT} s\n{self.errors}")
        chunk = os.read(self._stdout.fileno(), 1 << 16)
        self._output += chunk
        return bool(chunk)


def run_program(source: str, *arguments: object, environment: dict[str, str] | None = None) -> str:
    """Runs a program that must succeed and complain of nothing; its output."""
    with Program(source, *arguments, environment=environment) as program:
        code = program.finish()
        assert (code, program.errors) == (0, ""), f"exit code {code}\n{program.output}\n{program.errors}"
        return program.output

"""A peer program as a process: started, told to go, heard, and never left behind.

Its contract is in the README ("Peer programs"). Nothing here waits without a limit.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).parents[2]

LIMIT = 30.0
"""Seconds that a peer may take to get ready, or to end beyond its time: against hangs."""


_LAST_WORDS = 0.5


class PeerError(Exception):
    """A peer failed, or its counts or sums are not those that were expected."""


class Peer:
    """A run of a peer program; leaving the context ends it."""

    def __init__(
        self, command: Sequence[str], mode: str, *, environment: Mapping[str, str] | None = None, **options: object
    ) -> None:
        """Starts `command` in `mode`; each option becomes an argument (`aeron_dir=…`: `--aeron-dir …`)."""
        arguments = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", str(value))]
        self._mode = mode
        self._limit = LIMIT + float(str(options.get("seconds", 0)))
        self._output = b""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the peer
        self._process = subprocess.Popen(
            [*command, mode, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if exc is not None:
            self._process.kill()
        else:
            self.release()
            try:
                self._process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                stream.close()

    def wait_ready(self) -> None:
        """Returns when the peer has said that it is connected."""
        line = self._line()
        if line != "ready":
            raise PeerError(f"{self._mode} said {line!r} instead of 'ready'")

    def go(self) -> None:
        """Starts what it was made ready for."""
        self._tell(b"go\n")

    def result(self) -> dict[str, Any]:
        """The figures that it gives in the end."""
        line = self._line()
        try:
            result: dict[str, Any] = json.loads(line)
        except ValueError:
            raise PeerError(f"{self._mode} said {line!r} instead of figures in JSON") from None
        return result

    def release(self) -> None:
        """Closes its standard input: what only serves others, or waits for nothing but that, ends."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _tell(self, text: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(text)
        except BrokenPipeError:
            raise PeerError(self._obituary()) from None

    def _line(self) -> str:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline = time.monotonic() + self._limit
        while b"\n" not in self._output:
            if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise PeerError(self._silence())
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                raise PeerError(self._obituary())
            self._output += chunk
        line, _, self._output = self._output.partition(b"\n")
        return line.decode(errors="replace").strip()

    def _silence(self) -> str:
        # Peers in Python then say where they are; the others end.
        self._process.send_signal(signal.SIGUSR1)
        time.sleep(_LAST_WORDS)
        return f"{self._mode} has said nothing for {self._limit:.0f} s. {self._complaint()}"

    def _obituary(self) -> str:
        return f"{self._mode} ended with status {self._process.wait(LIMIT)}. {self._complaint()}"

    def _complaint(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").strip()[-2000:]

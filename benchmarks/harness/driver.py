"""The media driver that all peers of a run share."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio.from_thread

from aeron_async import DriverConfig, MediaDriver
from aeron_async.driver.launch import find_binary

_SHM = Path("/dev/shm")

TERM_LENGTH = 16 << 20
"""Bytes in a term of every log: the window of a publication is half of it."""


@contextmanager
def running_driver(prefix: Sequence[str] = (), *, environment: Mapping[str, str] = {}) -> Iterator[MediaDriver]:
    """Our driver in a directory of its own in shared memory, which goes with it.

    `prefix` is a command that runs its arguments as a command; `environment` has settings besides those of the profile.
    """
    with (
        tempfile.TemporaryDirectory(prefix="aeron_async-benchmark-", dir=_SHM if _SHM.is_dir() else None) as folder,
        tempfile.TemporaryDirectory() as programs,
        anyio.from_thread.start_blocking_portal() as portal,
    ):
        config = DriverConfig(
            aeron_dir=Path(folder) / "driver",
            binary=_prefixed(prefix, Path(programs)) if prefix else None,
            term_buffer_length=TERM_LENGTH,
            ipc_term_buffer_length=TERM_LENGTH,
            environment=environment,
        )
        with portal.wrap_async_context_manager(MediaDriver(config)) as driver:
            yield driver


def _prefixed(prefix: Sequence[str], folder: Path) -> Path:
    """A program that runs the bundled driver behind a prefix."""
    program = folder / "driver"
    program.write_text(f'#!/bin/sh\nexec {shlex.join([*prefix, find_binary(DriverConfig())])} "$@"\n')
    program.chmod(0o700)
    return program

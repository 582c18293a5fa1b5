"""What a driver writes, into the log of this process."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import anyio.lowlevel

from aeron_async import _tasks
from aeron_async._log import log
from aeron_async.driver.directory import CncReader
from aeron_async.driver.process import DriverProcess
from aeron_async.protocol.records import MalformedRecord

__all__ = ["LogForwarder"]


# Seconds between two looks at the driver's files.
_INTERVAL = 0.5


class LogForwarder:
    """Follows a driver's log file (event `driver_log`) and its distinct error log (event `driver_error`).

    Ends by itself after the driver has, and closes `cnc`.
    """

    def __init__(self, process: DriverProcess, cnc: CncReader, log_path: Path) -> None:
        self._process = process
        self._cnc = cnc
        self._log = log.bind(driver_pid=process.pid)
        # Opened now: the file may go with the driver.
        self._log_fd = os.open(log_path, os.O_RDONLY | os.O_CLOEXEC)
        self._partial_line = b""
        self._error_counts: dict[int, int] = {}
        self._task = _tasks.spawn(self._run, "aeron_async: forward the driver's log")

    async def wait(self) -> None:
        """Returns when the last line has been forwarded."""
        await self._task.wait()

    def stop(self) -> None:
        """Ends at once."""
        self._task.cancel()
        self._close()

    async def _run(self) -> None:
        # Where it is stopped before it starts, nothing is open any more.
        await anyio.lowlevel.checkpoint()
        try:
            while not self._process.exit.is_set:
                self._forward()
                with anyio.move_on_after(_INTERVAL):
                    await self._process.exit.wait()
            self._forward()
        finally:
            self._close()

    def _close(self) -> None:
        if self._log_fd >= 0:
            os.close(self._log_fd)
            self._log_fd = -1
            self._cnc.close()

    def _forward(self) -> None:
        self._forward_log()
        try:
            self._forward_errors()
        except MalformedRecord as error:
            self._log.warning("driver_error_log_unreadable", error=str(error))

    def _forward_log(self) -> None:
        while data := os.read(self._log_fd, 1 << 16):
            *lines, self._partial_line = (self._partial_line + data).split(b"\n")
            for line in lines:
                self._log.info("driver_log", line=line.decode(errors="replace"))

    def _forward_errors(self) -> None:
        for observation in self._cnc.errors():
            if self._error_counts.get(observation.offset) != observation.count:
                self._error_counts[observation.offset] = observation.count
                self._log.warning(
                    "driver_error",
                    error=observation.description,
                    count=observation.count,
                    first=observation.first_timestamp,
                    last=observation.last_timestamp,
                )

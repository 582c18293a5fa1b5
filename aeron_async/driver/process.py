"""The process of a driver: started apart from this one's terminal and signals, and watched by the running loop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio

from aeron_async import _tasks

__all__ = ["DriverProcess", "ExitSignal", "with_parent_death_signal"]

# How often a process is looked at where no descriptor tells of its end, in seconds.
_EXIT_POLL = 0.05


class ExitSignal:
    """Tells that a driver has ended, once."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._callbacks: dict[object, Callable[[], None]] = {}

    @property
    def is_set(self) -> bool:
        """Whether the driver has ended."""
        return self._event.is_set()

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Calls `callback` in the loop when the driver has ended, soon if it has already; returns what undoes that."""
        key = object()
        self._callbacks[key] = callback
        if self.is_set:
            _tasks.call_soon(self._call_back)

        def unsubscribe() -> None:
            self._callbacks.pop(key, None)

        return unsubscribe

    def set(self) -> None:
        """The driver has ended."""
        self._event.set()
        self._call_back()

    async def wait(self) -> None:
        """Returns when the driver has ended."""
        await self._event.wait()

    def _call_back(self) -> None:
        while self._callbacks:
            _, callback = self._callbacks.popitem()
            callback()


class DriverProcess:
    """A driver that this process has started, and reaps when it ends."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: Path, pass_fds: Sequence[int] = ()
    ) -> None:
        log_fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            # Not the event loop's own subprocess: that would kill the driver when the loop is closed.
            self._popen = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log_fd,
                stderr=log_fd,
                pass_fds=pass_fds,
                start_new_session=True,
                umask=0o077,
            )
        finally:
            os.close(log_fd)
        self.exit = ExitSignal()
        self._stop_watching = self._watch()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, minus the signal's number where a signal ended it, None while it runs."""
        return self._popen.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Sends a signal to the process, if it still runs."""
        self._popen.send_signal(number)

    async def wait(self) -> int:
        """Returns the exit code when the process has ended."""
        while not self.exit.is_set:
            # Who waits may do so in another loop than the one that watches.
            with anyio.move_on_after(_EXIT_POLL):
                await self.exit.wait()
            self._reap()
        assert self.exit_code is not None
        return self.exit_code

    async def stop(self, patience: float) -> None:
        """Ends the process: politely, and after `patience` seconds by force."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.send_signal(number)
            with anyio.move_on_after(patience):
                await self.wait()
                return

    def abandon(self) -> None:
        """Lets the process go on, unwatched, until it ends by itself."""
        self._stop_watching()
        # A thread, because no loop may be left by then; without it the ended process would stay as a zombie.
        threading.Thread(target=self._popen.wait, name="aeron_async: reap driver", daemon=True).start()

    def _watch(self) -> Callable[[], None]:
        try:
            pidfd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            return _tasks.spawn(self._poll, "aeron_async: watch driver").cancel
        stop_watching = _tasks.watch_readable(pidfd, self._reap)

        def stop() -> None:
            nonlocal pidfd
            if pidfd >= 0:
                stop_watching()
                os.close(pidfd)
                pidfd = -1

        return stop

    async def _poll(self) -> None:
        while not self.exit.is_set:
            await anyio.sleep(_EXIT_POLL)
            self._reap()

    def _reap(self) -> None:
        if self._popen.poll() is not None and not self.exit.is_set:
            self._stop_watching()
            self.exit.set()


# The signal comes when the *thread* that started the process ends: processes are started from the loop's own thread.
_WITH_PARENT_DEATH_SIGNAL = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
parent, count = int(sys.argv[1]), int(sys.argv[2])
preloads, command = sys.argv[3 : 3 + count], sys.argv[3 + count :]
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
if os.getppid() != parent:
    sys.exit("the process that started the driver has ended")
os.execvpe(command[0], command, {**os.environ, **dict(preload.split("=", 1) for preload in preloads)})
"""


def with_parent_death_signal(
    command: Sequence[str], environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """The command and environment that run `command` so that it is terminated when this process ends.

    Where the system has no such signal, they are `command` and `environment` themselves.
    """
    if sys.platform != "linux" or not sys.executable:
        return list(command), dict(environment)
    # What is preloaded is meant for the driver, and may not even load in the interpreter in between.
    preloads = [f"{name}={value}" for name, value in environment.items() if name.startswith("LD_")]
    rest = {name: value for name, value in environment.items() if not name.startswith("LD_")}
    wrapper = [sys.executable, "-I", "-S", "-c", _WITH_PARENT_DEATH_SIGNAL, str(os.getpid()), str(len(preloads))]
    return [*wrapper, *preloads, *command], rest

"""Programs of others as processes: started, read, and never left behind."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from tests import java
from tests.interop.stream import LENGTHS

HERE = Path(__file__).parent
PEER_TIMEOUT = 90.0
STOP_TIMEOUT = 15.0


class Peer:
    """A running program of somebody else; its standard output and errors are read as one text."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        self._process = process
        self._output = TextReceiveStream(process.stdout, errors="replace")
        self.text = ""
        """What it has printed so far."""

    async def read_until(self, text: str) -> None:
        """Read what it prints until `text` is there."""
        with anyio.fail_after(PEER_TIMEOUT):
            while text not in self.text:
                try:
                    self.text += await self._output.receive()
                except anyio.EndOfStream:
                    raise AssertionError(f"no {text!r} in what the peer printed:\n{self.text}") from None

    async def finish(self) -> None:
        """Read to the end, and fail unless it ended well."""
        with anyio.fail_after(PEER_TIMEOUT):
            async for text in self._output:
                self.text += text
            assert await self._process.wait() == 0, self.text

    async def stop(self) -> None:
        """Ask a program that runs for ever to end, and wait until it has."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
            with anyio.move_on_after(STOP_TIMEOUT):
                await self._process.wait()
                return
            self._process.kill()


@contextlib.asynccontextmanager
async def running(command: list[str], *, stdin: bytes = b"") -> AsyncIterator[Peer]:
    """Run a program while the context is open; `stdin` is all that it can read."""
    process = await anyio.open_process(command, stderr=subprocess.STDOUT)
    async with process:
        assert process.stdin is not None
        peer = Peer(process)
        try:
            await process.stdin.send(stdin)
            await process.stdin.aclose()
            yield peer
        except BaseException:
            with anyio.CancelScope(shield=True):
                process.kill()
            raise
        await peer.stop()


def java_stream(mode: str, aeron_dir: Path, channel: str, stream_id: int) -> list[str]:
    """Return the command line of a Java program that publishes or receives the verified stream."""
    lengths = ",".join(map(str, LENGTHS))
    return java.java_command(HERE / "java" / "StreamPeer.java", mode, aeron_dir, channel, str(stream_id), lengths)


def pyaeron_stream(mode: str, aeron_dir: Path, channel: str, stream_id: int) -> list[str]:
    """Return the command line of a pyaeron program that publishes or receives the verified stream."""
    lengths = ",".join(map(str, LENGTHS))
    return [sys.executable, str(HERE / "pyaeron_peer.py"), mode, str(aeron_dir), channel, str(stream_id), lengths]


def free_udp_port() -> int:
    """Return a UDP port of the loopback address that nobody uses at the moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

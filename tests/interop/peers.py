"""Programs of others as processes: started, read, and never left behind."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Protocol

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from tests import java
from tests.interop.stream import CHANNEL_PARAMETERS, LENGTHS
from tests.support import free_udp_port

HERE = Path(__file__).parent
JAVA_STREAM = HERE / "java" / "StreamPeer.java"
PEER_TIMEOUT = 90.0
STOP_TIMEOUT = 15.0


class PeerCommand(Protocol):
    """Makes a command line; modes, and what the rest of the arguments is to each, are those of `StreamPeer.java`."""

    def __call__(
        self, mode: str, aeron_dir: Path, channel: str, stream_id: int, *rest: str, lengths: Sequence[int] = LENGTHS
    ) -> list[str]: ...


class Peer:
    """A running program of somebody else; its standard output and errors are read as one text."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        self._process = process
        self._output = TextReceiveStream(process.stdout, errors="replace")
        self.text = ""
        """What it has printed so far."""

    async def read_until(self, text: str, count: int = 1) -> None:
        """Read what it prints until `text` is there, `count` times, and the line of the last one is whole."""
        with anyio.fail_after(PEER_TIMEOUT):
            while self.text[: self.text.rfind("\n") + 1].count(text) < count:
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
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            raise
        await peer.stop()


def java_stream(
    mode: str,
    aeron_dir: Path,
    channel: str,
    stream_id: int,
    *rest: str,
    lengths: Sequence[int] = LENGTHS,
    version: str = java.AERON_VERSION,
) -> list[str]:
    """Return the command line of a Java program that publishes or receives the verified stream."""
    listed = ",".join(map(str, lengths))
    return java.java_command(JAVA_STREAM, mode, aeron_dir, channel, str(stream_id), listed, *rest, version=version)


def pyaeron_stream(
    mode: str, aeron_dir: Path, channel: str, stream_id: int, *rest: str, lengths: Sequence[int] = LENGTHS
) -> list[str]:
    """Return the command line of a pyaeron program that publishes or receives the verified stream."""
    listed = ",".join(map(str, lengths))
    program = [sys.executable, str(HERE / "pyaeron_peer.py")]
    return [*program, mode, str(aeron_dir), channel, str(stream_id), listed, *rest]


def channel_of(media: str) -> str:
    """Return an IPC channel, or a UDP channel of a port of its own, with room for the verified stream."""
    if media == "ipc":
        return f"aeron:ipc?{CHANNEL_PARAMETERS}"
    return f"aeron:udp?endpoint=127.0.0.1:{free_udp_port()}|{CHANNEL_PARAMETERS}"

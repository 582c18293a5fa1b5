"""Ready, go and the end, on an event loop."""

from __future__ import annotations

import asyncio
import sys


class Cues:
    """The lines that a peer is sent."""

    def __init__(self, lines: asyncio.StreamReader) -> None:
        self._lines = lines

    @classmethod
    async def open(cls) -> Cues:
        lines = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(lines)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
        return cls(lines)

    def say_ready(self) -> None:
        """Says that the peer is ready."""
        print("ready", flush=True)

    async def wait_for_go(self) -> None:
        """Says so, and returns when the peer is to begin."""
        self.say_ready()
        if await self._lines.readline() != b"go\n":
            raise SystemExit("standard input was closed instead of saying go")

    async def end(self) -> None:
        """Returns when the peer is no longer needed."""
        while await self._lines.readline():
            pass

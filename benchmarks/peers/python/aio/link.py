"""What a client of the asyncio suite must be able to do: the interface between the roles and the clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from benchmarks.peers.python.messages import Payload

END = b"\0"
"""The message behind the last one of a one-way stream."""

Call = Callable[[Payload], Awaitable[bytes]]
"""Sends a request and returns its reply."""

Send = Callable[[Sequence[Payload]], None]
"""Sends messages in order and drops none; blocks the thread while there is no room."""

OnMessage = Callable[[bytes], bool]
"""Takes a message; whether another one is wanted. What it is given may be a view that is valid during the call only."""

Consume = Callable[[OnMessage], Awaitable[None]]
"""Hands over messages as they come until no other one is wanted."""


class Link(Protocol):
    """One end of a link to another process."""

    def echo(self) -> AbstractAsyncContextManager[None]:
        """Returns each request to where it came from while the context is open."""

    def dial(self) -> AbstractAsyncContextManager[Call]:
        """The other end of `echo`."""

    def receive(self) -> AbstractAsyncContextManager[Consume]:
        """The receiving end of a one-way stream, the one that is opened first."""

    def send(self) -> AbstractAsyncContextManager[Send]:
        """The sending end of a one-way stream."""

    def hold(self, count: int) -> AbstractAsyncContextManager[None]:
        """Receives from `count` streams, each with a task of its own that waits for messages."""

    def visit(self, count: int) -> AbstractAsyncContextManager[None]:
        """Connects to each of the streams that the other end holds, and stays silent."""

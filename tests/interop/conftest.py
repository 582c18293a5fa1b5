"""What the tests with programs of others share: the loop, the client, the channels."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

import aeron_async
from tests import java
from tests.interop.peers import JAVA_STREAM, PeerCommand, channel_of, java_stream, pyaeron_stream


@pytest.fixture
def anyio_backend() -> Any:
    """One event loop is enough here: what crosses to the others does not depend on it."""
    return "asyncio"


@pytest.fixture(params=["ipc", "udp"])
def channel(request: pytest.FixtureRequest) -> str:
    return channel_of(request.param)


@pytest.fixture
async def client() -> AsyncIterator[aeron_async.Client]:
    """A client on a bundled driver of its own."""
    async with aeron_async.connect() as client:
        yield client


@pytest.fixture(scope="session")
def java_peer() -> PeerCommand:
    """The Java end of the verified stream, compiled here so that no event loop waits for it."""
    java.compiled(JAVA_STREAM)
    return java_stream


@pytest.fixture
def pyaeron_peer() -> PeerCommand:
    """The pyaeron end of the verified stream."""
    pytest.importorskip("pyaeron", reason="pyaeron has wheels for CPython 3.12 to 3.15 only")
    return pyaeron_stream


@pytest.fixture(params=["java_peer", "pyaeron_peer"])
def peer_command(request: pytest.FixtureRequest) -> PeerCommand:
    """Each of the others' ends."""
    command: PeerCommand = request.getfixturevalue(request.param)
    return command

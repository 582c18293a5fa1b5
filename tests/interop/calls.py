"""Our end of calls that cross between this library and others; `java/RpcPeer.java` does the same."""

from __future__ import annotations

import random

import anyio
import pytest

import aeron_async
from aeron_async import rpc
from tests.interop.peers import PEER_TIMEOUT


async def reverse(request: bytes) -> bytes:
    """Answers as the Java server does."""
    if request.startswith(b"fail:"):
        raise ValueError(request.removeprefix(b"fail:").decode())
    return request[::-1]


async def exchange(remote: rpc.Remote, seed: int) -> None:
    """Many calls at once, and one that fails."""
    lengths = random.Random(seed)

    async def call() -> None:
        request = lengths.randbytes(lengths.randrange(5000))
        assert await remote.call(request, timeout=PEER_TIMEOUT) == request[::-1]

    async with anyio.create_task_group() as tasks:
        for _ in range(500):
            tasks.start_soon(call)
    with pytest.raises(aeron_async.RemoteError, match=r"^größer als 5 €$"):
        await remote.call("fail:größer als 5 €".encode(), timeout=PEER_TIMEOUT)
    assert remote.ignored_frames == 0

"""Aeron's echo samples with us on the bundled driver: every message comes back on another stream."""

from __future__ import annotations

import anyio
import pytest

import aeron_async
from tests import java
from tests.interop.peers import HERE, PEER_TIMEOUT, channel_of, running
from tests.interop.samples import STREAM_ID
from tests.interop.stream import MAX_PAYLOAD, messages

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

ECHO = HERE / "java" / "EchoPeer.java"


@pytest.fixture(scope="module", autouse=True)
def echo_peer() -> None:
    """The Java end, compiled here so that no event loop waits for it."""
    java.compiled(ECHO)


@pytest.mark.parametrize("media", ["ipc", "udp"])
async def test_what_we_send_is_echoed(client: aeron_async.Client, media: str) -> None:
    # It echoes fragments as they are.
    sent = [message for message in messages() if len(message) <= MAX_PAYLOAD] * 20
    there, back = channel_of(media), channel_of(media)
    arguments = (there, str(STREAM_ID), back, str(STREAM_ID + 1), str(len(sent)))
    command = java.java_command(ECHO, *arguments, properties={"aeron.dir": client.aeron_dir})
    async with (
        await client.add_subscription(back, STREAM_ID + 1) as echoes,
        await client.add_publication(there, STREAM_ID) as publication,
        running(command) as peer,
    ):
        await echoes.wait_connected(timeout=PEER_TIMEOUT)
        await publication.wait_connected(timeout=PEER_TIMEOUT)
        received = []
        with anyio.fail_after(PEER_TIMEOUT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(publication.publish_many, sent)
                async for payload in echoes.payloads():
                    received.append(payload)
                    if len(received) == len(sent):
                        break
        await peer.finish()
        assert f"echoed {len(sent)} fragments, {sum(map(len, sent))} bytes" in peer.text
    assert received == sent

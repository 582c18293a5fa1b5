"""An older Java client, of Aeron 1.49.3, with us on the bundled driver: the verified stream in both directions."""

from __future__ import annotations

import pytest

import aeron_async
from tests import java
from tests.interop.exchange import publish_to, receive_from
from tests.interop.peers import JAVA_STREAM, java_stream, running

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

STREAM_ID = 1001


@pytest.fixture(scope="module", autouse=True)
def older_peer() -> None:
    """The Java end, compiled here so that no event loop waits for it."""
    java.compiled(JAVA_STREAM, java.OLDER_AERON_VERSION)


async def test_it_receives_what_we_publish(client: aeron_async.Client, channel: str) -> None:
    async with (
        await client.add_publication(channel, STREAM_ID) as publication,
        running(
            java_stream("subscribe", client.aeron_dir, channel, STREAM_ID, version=java.OLDER_AERON_VERSION)
        ) as peer,
    ):
        await publish_to(peer, publication)


async def test_we_receive_what_it_publishes(client: aeron_async.Client, channel: str) -> None:
    async with (
        await client.add_subscription(channel, STREAM_ID) as subscription,
        running(java_stream("publish", client.aeron_dir, channel, STREAM_ID, version=java.OLDER_AERON_VERSION)) as peer,
    ):
        await receive_from(subscription, peer)

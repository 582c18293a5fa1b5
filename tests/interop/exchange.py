"""Our end of a verified stream."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import anyio

import aeron_async
from tests.interop.peers import PEER_TIMEOUT, Peer
from tests.interop.stream import LENGTHS, messages


async def publish_to(peer: Peer, publication: aeron_async.Publication, lengths: Sequence[int] = LENGTHS) -> None:
    """Publish the stream; the peer has to say that it got all of it."""
    expected = messages(lengths)
    await publication.wait_connected(timeout=PEER_TIMEOUT)
    for message in expected:
        await publication.publish(message, timeout=PEER_TIMEOUT)
    await peer.finish()
    assert f"ok: {len(expected)} messages" in peer.text


async def receive_from(
    subscription: aeron_async.Subscription, sender: Peer | None = None, lengths: Sequence[int] = LENGTHS
) -> None:
    """Receive the stream and nothing else; a sender that is a program has to end well."""
    expected = messages(lengths)
    received: list[aeron_async.Message] = []
    with anyio.fail_after(PEER_TIMEOUT):
        async for message in subscription:
            received.append(message)
            if len(received) == len(expected):
                break
    for number, (message, content) in enumerate(zip(received, expected, strict=True)):
        assert bytes(message) == content, f"message {number} differs"
    headers = [message.header for message in received]
    assert {header.session_id for header in headers} == {headers[0].session_id}
    assert {header.stream_id for header in headers} == {subscription.stream_id}
    assert all(before.position < after.position for before, after in itertools.pairwise(headers))
    if sender is not None:
        await sender.finish()
        assert f"ok: {len(expected)} messages" in sender.text
    assert len(subscription.poll_batch()) == 0

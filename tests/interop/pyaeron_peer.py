"""The pyaeron end of a verified stream, as a program: it takes the arguments of `java/StreamPeer.java`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyaeron

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.interop.stream import messages

TIMEOUT = 60.0
END_FLAG = 0x40


def attempts(what: str) -> Iterator[None]:
    """Yield until the caller leaves the loop. Raises `TimeoutError` where it does not."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        yield
    raise TimeoutError(what)


def publish(aeron: pyaeron.Aeron, channel: str, stream_id: int, expected: list[bytes], mode: str) -> None:
    add = aeron.add_exclusive_publication if mode == "exclusive" else aeron.add_publication
    with add(channel, stream_id) as publication:
        for message in expected:
            # pyaeron claims no empty messages.
            if mode == "claim" and 0 < len(message) <= publication.max_payload_length:
                claim(publication, len(message)).abort()
                claimed = claim(publication, len(message))
                memoryview(claimed.buffer)[:] = message
                claimed.commit()
                continue
            for _ in attempts("publishing"):
                if publication.offerv(pieces(message)) if mode == "vector" else publication.offer(message):
                    break
                time.sleep(0.0001)


def pieces(message: bytes) -> list[bytes]:
    first, second = len(message) // 3, len(message) // 2
    return [message[:first], message[first:second], message[second:]]


def claim(publication: pyaeron.Publication, length: int) -> pyaeron.BufferClaim:
    for _ in attempts("claiming"):
        claimed = publication.try_claim(length)
        if claimed:
            return claimed
        time.sleep(0.0001)
    raise AssertionError("attempts end by an exception")


def receive(aeron: pyaeron.Aeron, channel: str, stream_id: int, expected: list[bytes]) -> None:
    received: list[bytes] = []
    fragments: list[bytes] = []

    def on_fragment(buffer: pyaeron.BufferView, header: pyaeron.Header) -> None:
        # pyaeron's own assembler forgets a message whose fragments do not all come in one poll.
        fragments.append(bytes(buffer))
        if header.flags & END_FLAG:
            received.append(b"".join(fragments))
            fragments.clear()

    with aeron.add_subscription(channel, stream_id) as subscription:
        print("subscribed", flush=True)
        for _ in attempts("receiving"):
            if len(received) >= len(expected):
                break
            if not subscription.poll(on_fragment, assemble=False):
                time.sleep(0.0001)
    assert received == expected


def main(mode: str, aeron_dir: str, channel: str, stream_id: str, lengths: str) -> None:
    expected = messages([int(length) for length in lengths.split(",")])
    with pyaeron.Aeron(dir=aeron_dir) as aeron:
        if mode == "subscribe":
            receive(aeron, channel, int(stream_id), expected)
        else:
            publish(aeron, channel, int(stream_id), expected, mode)
    print(f"ok: {len(expected)} messages")


if __name__ == "__main__":
    main(*sys.argv[1:])

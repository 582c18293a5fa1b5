"""The two faces of the C core are one library: the same calls do the same, and say the same where they refuse."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import numpy as np

import aeron_async
from aeron_async import Action, ChannelUri, Header, Publication, Subscription
from tests.support import LIMIT, open_pair, run_program

# A session of the same id, from the same place on, that crosses into the next term. All that is sent fits into its
# window, so that nothing depends on the driver's pace.
TERM_LENGTH = 1 << 20
CHANNEL = str(
    ChannelUri.ipc(
        session_id=78,
        mtu=1408,
        term_length=TERM_LENGTH,
        initial_term_id=-1,
        term_id=-1,
        term_offset=TERM_LENGTH - (16 << 10),
    )
)

NO_LIMIT = 1 << 30
LENGTHS = (0, 1, 31, 32, 33, 500, 1376, 1377, 3000)

PROGRAM = """
    import json
    import sys
    import anyio
    from tests.system.test_fast_paths_faces import report

    print(json.dumps(anyio.run(report, sys.argv[1])))
"""

REFUSALS: dict[str, Callable[[Any, Any], object]] = {
    "a text": lambda publication, subscription: publication.offer("text"),
    "a number among many": lambda publication, subscription: publication.offer_many([b"", 5]),
    "a strided view": lambda publication, subscription: publication.offer(memoryview(b"1234")[::2]),
    "a strided array among many": lambda publication, subscription: publication.offer_many([np.zeros(4)[::2]]),
    "too long": lambda publication, subscription: publication.offer(bytes(1 << 20)),
    "one of many too long": lambda publication, subscription: publication.offer_many([b"", bytes(1 << 20)]),
    "records too long": lambda publication, subscription: publication.offer_array(bytes(1 << 20), itemsize=1 << 20),
    "repeated too long": lambda publication, subscription: publication.offer_repeated(bytes(1 << 20), 2),
    "single bytes": lambda publication, subscription: publication.offer_array(b"abc"),
    "no divisor": lambda publication, subscription: publication.offer_array(b"abc", itemsize=2),
    "a negative count": lambda publication, subscription: publication.offer_repeated(b"", -1),
    "a claim too long": lambda publication, subscription: publication.try_claim(5000),
    "batches of none": lambda publication, subscription: subscription.batches(0),
    "no action": lambda publication, subscription: subscription.controlled_poll(lambda payload, header: 7),
    "no item": lambda publication, subscription: subscription.poll_batch(1)[1],
    "no record": lambda publication, subscription: subscription.poll_batch(1).as_array("V7"),
    "reading while reading": lambda publication, subscription: subscription.poll(
        lambda payload, header: subscription.poll_batch()
    ),
}


def refusal(call: Callable[[Any, Any], object], publication: Publication, subscription: Subscription) -> str:
    """What a call says that is refused."""
    try:
        return f"not refused: {call(publication, subscription)!r}"
    except Exception as error:
        return f"{type(error).__module__}.{type(error).__qualname__}: {error}"


async def offers(publication: Publication) -> list[int]:
    """Messages of many kinds, and what their offers give."""
    chance = random.Random(11)
    results: list[int] = []
    for turn in range(70):
        message = chance.randbytes(chance.choice(LENGTHS))
        match turn % 7:
            case 0:
                results.append(publication.offer(message, reserved_value=-turn))
            case 1:
                results.append(publication.offer_many([message, bytearray(message), b""]))
            case 2:
                results.append(publication.offer_array(np.arange(turn)))
            case 3:
                results.append(publication.offer_repeated(message, 3))
            case 4:
                results.append(publication.offer_vectored([message, b"", message]))
            case 5:
                results.append(await publication.publish(message, reserved_value=turn))
            case _:
                results.append(await publication.publish_many([message] * 2))
    return results


async def report(aeron_dir: str) -> dict[str, list[str]]:
    """What this process's face makes of the same calls, in words."""
    async with aeron_async.connect(aeron_dir) as client:
        publication, polls = await open_pair(client, CHANNEL)
        batches, iterations, blocks, refused = [
            await client.add_subscription(CHANNEL, publication.stream_id) for _ in range(4)
        ]
        for subscription in (batches, iterations, blocks, refused):
            await subscription.wait_connected(LIMIT)
        told: dict[str, list[str]] = {"offers": list(map(repr, await offers(publication)))}

        def handle(payload: memoryview, header: Header) -> Any:
            told["polls"].append(f"{header} {bytes(payload).hex()}")
            return Action.BREAK if len(told["polls"]) % 3 == 0 else None

        told["polls"] = []
        while fragments := (polls.poll(handle, 3) + polls.controlled_poll(handle, 4)):
            told["polls"].append(f"{fragments} fragments to {polls.images[0].position}")

        told["batches"] = []
        while batch := batches.poll_batch(5, max_bytes=2000):
            columns = (batch.buffer, batch.offsets, batch.stream_positions, batch.session_ids, batch.reserved_values)
            told["batches"] += [repr(batch), *(f"{column.format} {bytes(column).hex()}" for column in columns)]

        told["iterations"] = []
        with anyio.fail_after(LIMIT):
            while iterations.images[0].position < publication.position:
                if len(told["iterations"]) % 2:
                    told["iterations"].append((await anext(iterations.payloads())).hex())
                else:
                    message = await anext(aiter(iterations))
                    told["iterations"].append(f"{message!r} {bytes(message).hex()}")

        told["blocks"] = []
        while blocks.block_poll(lambda frames, *ids: told["blocks"].append(f"{ids} {bytes(frames).hex()}"), NO_LIMIT):
            pass

        told["refusals"] = [f"{name}: {refusal(call, publication, refused)}" for name, call in REFUSALS.items()]
        await publication.aclose()
        told["refusals"].append(refusal(lambda publication, _: publication.offer(b""), publication, refused))
        return told


def test_both_faces_do_and_say_the_same(aeron_dir: Path) -> None:
    pure, chosen = (
        json.loads(run_program(PROGRAM, aeron_dir, environment={"AERON_ASYNC_PURE": value})) for value in ("1", "")
    )
    assert pure == chosen
    assert len(pure["polls"]) > 100
    assert not [text for text in pure["refusals"][:-1] if "not refused" in text]
    assert pure["refusals"][-1] == "not refused: <OfferResult.CLOSED: -4>"

"""Waiting for what was published to arrive, before a driver that only its publisher uses is stopped."""

from __future__ import annotations

import anyio

from aeron_async.counters import CountersReader
from aeron_async.protocol.counter_types import CounterType

# How long a receiver may be silent before it counts as gone: it reports every 200 ms. In seconds.
_SILENCE = 0.6
# How long a publication lingers for receivers that have lost something; a little longer than the driver's default.
_LIMIT = 6.0
_POLL = 0.02


async def drain(counters: CountersReader, registration_ids: set[int]) -> None:
    """Returns when the receivers of closed network publications have all of them, or are gone.

    The driver forgets a closed unicast publication once its receiver has reached the end of the stream, and any other
    after its linger timeout.
    """
    if not registration_ids:
        return
    status_messages = counters.find(type_id=CounterType.SYSTEM, label="Status Messages received")
    with anyio.move_on_after(_LIMIT):
        heard, silent_since = -1, anyio.current_time()
        while _sending(counters, registration_ids) and anyio.current_time() - silent_since < _SILENCE:
            now_heard = sum(counters[info.id] for info in status_messages)
            if now_heard != heard:
                heard, silent_since = now_heard, anyio.current_time()
            await anyio.sleep(_POLL)


def _sending(counters: CountersReader, registration_ids: set[int]) -> bool:
    return any(
        int.from_bytes(info.key[:8], "little", signed=True) in registration_ids
        for info in counters.find(type_id=CounterType.SENDER_POSITION)
    )

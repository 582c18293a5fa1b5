"""How far a subscriber is behind its publisher, by the positions that the driver's counters show: the same for all."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import anyio.from_thread

import aeron_async
from aeron_async import CountersReader
from aeron_async.protocol.counter_types import CounterType

_PERIOD = 0.01
_STREAM_ID = struct.Struct("<8x4xi")
"""In the key of a position: registration id, session id, stream id."""


class Lag:
    """The largest distance seen between two positions."""

    def __init__(self) -> None:
        self.largest = 0
        """In bytes of the stream."""

    @contextmanager
    def watching(self, aeron_dir: Path, stream_id: int) -> Iterator[None]:
        """Looks at the positions of a stream, every 10 ms while the context is open."""
        is_over = threading.Event()
        connection = aeron_async.connect(aeron_dir, driver="external", client_name="benchmark")
        with (
            anyio.from_thread.start_blocking_portal() as portal,
            portal.wrap_async_context_manager(connection) as client,
            ThreadPoolExecutor(1) as executor,
        ):
            watch = executor.submit(self._watch, client.counters, stream_id, is_over)
            try:
                yield
            finally:
                is_over.set()
            watch.result()

    def _watch(self, counters: CountersReader, stream_id: int, is_over: threading.Event) -> None:
        published = _position(counters, CounterType.PUBLISHER_POS, stream_id)
        consumed = _position(counters, CounterType.SUBSCRIBER_POSITION, stream_id)
        while not is_over.wait(_PERIOD):
            self.largest = max(self.largest, counters[published] - counters[consumed])


def _position(counters: CountersReader, type_id: CounterType, stream_id: int) -> int:
    """The id of the counter of a position."""
    found = counters.find(type_id=type_id)
    return next(info.id for info in found if _STREAM_ID.unpack_from(info.key)[0] == stream_id)

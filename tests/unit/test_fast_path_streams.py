"""Everything that is published comes out, however it is read: on a log that nothing but the library touches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pytest
import uvloop
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

import aeron_async
from tests.fakes import FakeDriver, FakeLog
from tests.stream_machine import Shape, Stream, StreamMachine
from tests.support import LIMIT
from tests.unit.rig import STREAM_ID, Bench

T = TypeVar("T")


class CleanedLog(FakeLog):
    """A log buffer that is cleaned behind its reader, as a driver does it."""

    def clean(self, begin: int, end: int) -> None:
        """Overwrites the frames between two positions with zeros."""
        while begin < end:
            stop = min(end, (begin // self.term_length + 1) * self.term_length)
            self._file.write(self._offset(begin), bytes(stop - begin))
            begin = stop


class FakeStream(Stream):
    """A publication and its subscriber on a fake driver, which does nothing but what the test says."""

    def __init__(self, shape: Shape, loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self._directory = TemporaryDirectory()
        self._runner = asyncio.Runner(loop_factory=loop_factory)
        self._driver = FakeDriver(Path(self._directory.name))
        self._driver.beat()
        self._log = CleanedLog(
            self._driver.aeron_dir / "stream.logbuffer",
            shape.term_length,
            shape.mtu_length,
            shape.initial_term_id,
            -3,
            STREAM_ID,
            shape.begin,
        )
        self._cleaned = shape.begin
        self._client = self.run(self._connect())
        bench = Bench(self._driver, self._client._session.conductor)
        add = bench.add_exclusive_publication if shape.is_exclusive else bench.add_publication
        self.publication, _, self._limit = add(self._log)
        self.subscription = bench.add_subscription()
        self._position = bench.add_image(self.subscription, self._log, join_position=shape.begin).position
        self.go_on()

    async def _connect(self) -> aeron_async.Client:
        return await aeron_async.connect(self._driver.aeron_dir, driver_timeout=10 * LIMIT)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def go_on(self) -> None:
        self._log.clean(self._cleaned, self._position.value)
        self._cleaned = self._position.value
        self._limit.value = self._cleaned + self._log.term_length // 2

    async def finish(self, awaitable: Awaitable[T]) -> T:
        task = asyncio.ensure_future(awaitable)
        try:
            while not task.done():
                self.go_on()
                await asyncio.sleep(0)
            return await task
        finally:
            task.cancel()

    def close(self) -> None:
        self.run(self._client.aclose())
        self._runner.close()
        self._log.close()
        self._driver.close()
        self._directory.cleanup()


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_what_is_accepted_is_received_whatever_is_used_to_publish_and_to_read(
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    run_state_machine_as_test(
        lambda: StreamMachine(lambda shape: FakeStream(shape, loop_factory)),  # type: ignore[arg-type]
        settings=settings(max_examples=30, stateful_step_count=40, deadline=None),
    )

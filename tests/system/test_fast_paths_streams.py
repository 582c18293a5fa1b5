"""Everything that is published comes out, however it is read: on a real driver, which moves the window and cleans."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import uvloop
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from aeron_async import ChannelUri, Client, connect
from aeron_async.protocol.frames import compute_term_id, compute_term_offset, position_bits_to_shift
from tests.stream_machine import Shape, Stream, StreamMachine
from tests.support import open_pair

T = TypeVar("T")

_stream_ids = itertools.count(1)


class DriverStream(Stream):
    """A publication and its subscriber on a real driver."""

    def __init__(self, client: Client, runner: asyncio.Runner, shape: Shape) -> None:
        self._runner = runner
        bits = position_bits_to_shift(shape.term_length)
        channel = ChannelUri.ipc(
            mtu=shape.mtu_length,
            term_length=shape.term_length,
            initial_term_id=shape.initial_term_id,
            term_id=compute_term_id(shape.begin, bits, shape.initial_term_id),
            term_offset=compute_term_offset(shape.begin, bits),
        )
        self.publication, self.subscription = self.run(
            open_pair(client, str(channel), next(_stream_ids), exclusive=shape.is_exclusive)
        )

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def go_on(self) -> None:
        """The driver does it."""

    async def finish(self, awaitable: Awaitable[T]) -> T:
        return await awaitable

    def close(self) -> None:
        self.run(self.publication.aclose())
        self.run(self.subscription.aclose())


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner


@pytest.fixture
def idle_client(aeron_dir: Path, runner: asyncio.Runner) -> Iterator[Client]:
    """A client whose loop runs only when there is something to do."""

    async def open_client() -> Client:
        return await connect(aeron_dir)

    client = runner.run(open_client())
    yield client
    runner.run(client.aclose())


def test_what_is_accepted_is_received_whatever_is_used_to_publish_and_to_read(
    idle_client: Client, runner: asyncio.Runner
) -> None:
    run_state_machine_as_test(
        lambda: StreamMachine(lambda shape: DriverStream(idle_client, runner, shape)),  # type: ignore[arg-type]
        settings=settings(max_examples=20, stateful_step_count=40, deadline=None),
    )

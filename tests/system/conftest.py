"""Fixtures of the tests that use a driver without harming it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import aeron_async
from tests.response_routes import Route, route_of
from tests.support import free_udp_port, running_driver
from tests.support import runtime_dir as runtime_dir

_stream_ids = itertools.count(1001)


@pytest.fixture(scope="module")
def aeron_dir() -> Iterator[Path]:
    """The directory of a driver that the tests of a module share."""
    with running_driver() as driver:
        yield driver.aeron_dir


@pytest.fixture
async def client(aeron_dir: Path) -> AsyncIterator[aeron_async.Client]:
    async with aeron_async.connect(aeron_dir, keepalive_interval=0.1) as client:
        yield client


@pytest.fixture
async def other_client(aeron_dir: Path) -> AsyncIterator[aeron_async.Client]:
    """A second client of the same driver."""
    async with aeron_async.connect(aeron_dir) as client:
        yield client


@pytest.fixture
def stream_id() -> int:
    """A stream id that no other test uses."""
    return next(_stream_ids)


@pytest.fixture(params=["ipc", "udp"])
def channel(request: pytest.FixtureRequest) -> str:
    """IPC, and UDP on a port of the test's own."""
    return "aeron:ipc" if request.param == "ipc" else f"aeron:udp?endpoint=127.0.0.1:{free_udp_port()}"


@pytest.fixture(params=["ipc", "udp"])
def route(request: pytest.FixtureRequest, stream_id: int) -> Route:
    """Where requests and responses of the test's own go."""
    # Responses have the next stream id.
    return route_of(request.param, 2 * stream_id)

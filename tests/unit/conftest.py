"""Fixtures of the unit tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import aeron_async
from tests.fakes import FakeDriver
from tests.unit.rig import Bench, PublicationStream, Rig


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[FakeDriver]:
    """A fake driver."""
    driver = FakeDriver(tmp_path)
    yield driver
    driver.close()


@pytest.fixture
def rig(driver: FakeDriver) -> Rig:
    """A conductor on the fake driver, with no loop."""
    return Rig(driver)


@pytest.fixture(params=["shared", "exclusive"])
def add(request: pytest.FixtureRequest) -> Callable[..., PublicationStream]:
    """Adds a publication of each kind."""
    return {"shared": Bench.add_publication, "exclusive": Bench.add_exclusive_publication}[request.param]


@pytest.fixture
def stream(rig: Rig, add: Callable[..., PublicationStream]) -> PublicationStream:
    """A publication of each kind."""
    return add(rig)


@pytest.fixture
async def client(driver: FakeDriver, anyio_backend: Any) -> AsyncIterator[aeron_async.Client]:
    """A client that is connected to the fake driver.

    No duty cycle comes by itself in a test's time, so that what should bring one about has to do it.
    """
    driver.beat()
    async with aeron_async.connect(
        driver.aeron_dir, driver_timeout=60.0, keepalive_interval=3600.0, loop_stall_limit=7200.0
    ) as client:
        yield client


@pytest.fixture
def bench(client: aeron_async.Client, driver: FakeDriver) -> Bench:
    """What answers `client` in the driver's name."""
    return Bench(driver, client._session.conductor)

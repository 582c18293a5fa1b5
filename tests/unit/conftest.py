"""Fixtures of the unit tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import FakeDriver
from tests.unit.rig import Rig


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

"""Fixtures of the tests that harm what they use: each has a driver directory of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import runtime_dir as runtime_dir
from tests.support import scratch_folder


@pytest.fixture
def aeron_dir() -> Iterator[Path]:
    """Where the test may start a driver."""
    with scratch_folder() as folder:
        yield folder / "driver"

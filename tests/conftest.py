"""Fixtures that every test may use."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest

# How fast an example runs on a busy machine says nothing about the library.
hypothesis.settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("unhurried")

BACKENDS = {
    "asyncio": ("asyncio", {}),
    "uvloop": ("asyncio", {"use_uvloop": True}),
    "trio": ("trio", {}),
}


@pytest.fixture(params=list(BACKENDS))
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Async tests (marked `anyio`) run on each of these."""
    return BACKENDS[request.param]

"""Fixtures that every test may use."""

from __future__ import annotations

from typing import Any

import pytest

BACKENDS = {
    "asyncio": ("asyncio", {}),
    "uvloop": ("asyncio", {"use_uvloop": True}),
    "trio": ("trio", {}),
}


@pytest.fixture(params=list(BACKENDS))
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Async tests (marked `anyio`) run on each of these."""
    return BACKENDS[request.param]

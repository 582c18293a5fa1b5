"""`async with` for whatever has an `aclose`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from aeron_async.errors import ForkedClientError


class ClosedOnExit(ABC):
    """Closed when its `async with` is left."""

    __slots__ = ()

    @abstractmethod
    async def aclose(self) -> None:
        """Closes it; again it does nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self.aclose()
        except ForkedClientError:
            # What else leaves the block in a forked child says more.
            if exc is None:
                raise

"""The small interface through which publications, subscriptions and counters reach their client."""

from __future__ import annotations

from typing import Any, Final, Protocol

from aeron_async._waker import Place
from aeron_async.channel import ChannelUri
from aeron_async.errors import AeronError, ClosedError
from aeron_async.idle import IdleStrategy


class _ClientTimeout:
    def __repr__(self) -> str:
        return "CLIENT_TIMEOUT"


CLIENT_TIMEOUT: Final = _ClientTimeout()
"""The default of every `timeout` parameter: the client's `driver_timeout`."""

Timeout = float | None | _ClientTimeout


class Control(Protocol):
    """What a resource asks of the client that owns it."""

    def seconds(self, timeout: Timeout) -> float | None:
        """A timeout in seconds, the default resolved; None for no limit."""

    def check_process(self) -> None:
        """Raises `ForkedClientError` in a forked child."""

    def closed_error(self, resource: type[ClosedError]) -> AeronError:
        """Why a resource of this kind is closed: the client's reason, or its own."""

    async def close_resource(self, registration_id: int) -> None:
        """Closes the resource, tells the driver, and waits for its answer."""

    async def reject_image(self, correlation_id: int, position: int, reason: str) -> None:
        """Rejects an image at a position, and waits for the driver's answer."""

    def local_socket_addresses(self, channel_status_id: int) -> list[str]:
        """The socket addresses in use by the channel whose status counter has this id."""

    async def add_destination(self, owner_id: int, uri: str | ChannelUri, timeout: Timeout) -> int:
        """Adds a destination to an open publication or subscription; its registration id."""

    async def remove_destination(self, owner_id: int, destination: str | ChannelUri | int, timeout: Timeout) -> None:
        """Removes a destination by its channel or its registration id."""

    async def wait_publication(self, publication: Any, kind: int) -> None:
        """Returns soon after an `aa_publication_t` is ready in the way of `kind` (AA_WATCH_...)."""

    def waiting_place(self, idle: IdleStrategy | None) -> Place:
        """Where a reader waits by a strategy, by default by the client's."""

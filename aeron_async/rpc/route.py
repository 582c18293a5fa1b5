"""Which way requests and responses go: what a server and its diallers have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from aeron_async._log import log
from aeron_async.channel import ChannelUri
from aeron_async.errors import ChannelError, RegistrationError
from aeron_async.protocol.error_codes import ErrorCode

T = TypeVar("T")

# A channel that was closed a moment ago can be there in the driver a little longer, closing.
_CLOSING_CHANNEL_RETRIES = 100
_CLOSING_CHANNEL_PAUSE = 0.05


class Route:
    """The channels and streams of requests and responses, and what strays there."""

    def __init__(
        self,
        channel: str | ChannelUri,
        stream_id: int,
        response_channel: str | ChannelUri | None,
        response_stream_id: int | None,
    ) -> None:
        """Fills in the defaults. Raises `ChannelError`."""
        self.channel = _parsed(channel)
        self.stream_id = stream_id
        self.response_channel = _derived(self.channel) if response_channel is None else _parsed(response_channel)
        if self.response_channel.get("control_mode") != "response":
            raise ChannelError(f"response_channel={str(response_channel)!r} needs control-mode=response")
        self.response_stream_id = stream_id + 1 if response_stream_id is None else response_stream_id
        self.ignored_frames = 0

    def ignore(self, reason: object, session_id: int) -> None:
        """Counts a frame that does not belong here, and logs the first, the second, the fourth and so on."""
        self.ignored_frames += 1
        if self.ignored_frames & (self.ignored_frames - 1) == 0:
            log.warning(
                "rpc_frame_ignored",
                reason=str(reason),
                session_id=session_id,
                route=str(self),
                ignored_frames=self.ignored_frames,
            )

    def __str__(self) -> str:
        return f"channel={str(self.channel)!r} stream_id={self.stream_id}"


async def added(add: Callable[[], Awaitable[T]]) -> T:
    """What `add` adds, tried again while the driver is still closing the same channel."""
    for _ in range(_CLOSING_CHANNEL_RETRIES):
        try:
            return await add()
        except RegistrationError as error:
            if error.code != ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE:
                raise
        await anyio.sleep(_CLOSING_CHANNEL_PAUSE)
    return await add()


def _parsed(channel: str | ChannelUri) -> ChannelUri:
    return channel if isinstance(channel, ChannelUri) else ChannelUri.parse(channel)


def _derived(channel: ChannelUri) -> ChannelUri:
    """The response channel that goes with a request channel."""
    if channel.media == "ipc":
        return ChannelUri.ipc(control_mode="response")
    host, _, port = (channel.get("endpoint") or "").rpartition(":")
    if not port.isdecimal() or int(port) == 0:
        raise ChannelError(
            f"{str(channel)!r} has no endpoint with a port to derive response_channel from: it must be given"
        )
    return ChannelUri.udp(control_mode="response", control=f"{host}:{int(port) + 1}")

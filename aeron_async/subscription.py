"""Subscriptions: where messages leave a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio

from aeron_async._closing import ClosedOnExit
from aeron_async._control import CLIENT_TIMEOUT, Control, Timeout
from aeron_async._local_addresses import CHANNEL_ACTIVE
from aeron_async._native import lib
from aeron_async._readable import Readable
from aeron_async._reader import Handles, Reader
from aeron_async.batch import Header, Message, MessageBatch
from aeron_async.channel import ChannelUri, is_ipc
from aeron_async.errors import NotConnectedError, SubscriptionClosedError
from aeron_async.idle import IdleStrategy
from aeron_async.image import Image

__all__ = ["Header", "Image", "Message", "MessageBatch", "Subscription"]


class Subscription(ClosedOnExit, Readable):
    """A subscription: the images of all publishers of a channel and stream id.

    Obtained from `Client.add_subscription`. One reader at a time. Source: Aeron's `Subscription`.
    """

    # Without a dictionary its methods are found several times as fast.
    __slots__ = (
        "__weakref__",
        "_channel_status",
        "_channel_status_id",
        "_closed",
        "_control",
        "_images",
        "_images_changed",
        "_resolved_endpoint",
        "channel",
        "registration_id",
        "stream_id",
    )

    def __init__(
        self,
        control: Control,
        *,
        channel: str,
        stream_id: int,
        registration_id: int,
        channel_status: Any | None,
        channel_status_id: int,
        idle: IdleStrategy | None = None,
    ) -> None:
        self._control = control
        self._reader = Reader(control, idle=idle, local_stream_id=stream_id if is_ipc(channel) else None)
        self._images: tuple[Image, ...] = ()
        self._handles = Handles()
        self._closed = False
        self._channel_status = channel_status
        self._channel_status_id = channel_status_id
        self._resolved_endpoint: str | None = None
        self._images_changed = anyio.Event()
        self.channel = channel
        """The channel URI as it was given."""
        self.stream_id = stream_id
        self.registration_id = registration_id
        """The correlation id of the command that added this subscription."""

    @property
    def images(self) -> tuple[Image, ...]:
        """The images that are there now."""
        return self._images

    @property
    def image_count(self) -> int:
        """How many images are there now."""
        return len(self._images)

    def image_by_session_id(self, session_id: int) -> Image | None:
        """The image of that session, or None."""
        return next((image for image in self.images if image.session_id == session_id), None)

    @property
    def is_connected(self) -> bool:
        """Whether a publisher is there: an image that is open."""
        return any(not image.is_closed for image in self.images)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, by itself or with its client."""
        return self._closed

    @property
    def channel_status(self) -> int:
        """The channel's status: 1 active, 0 initialising, -1 errored, -2 closing (Aeron's `ChannelEndpointStatus`)."""
        return int(lib.aa_counter_value(self._channel_status)) if self._channel_status is not None else CHANNEL_ACTIVE

    def block_poll(self, handler: Callable[[memoryview, int, int], None], limit: int) -> int:
        """Hands a block of each image, of at most `limit` bytes, to `handler(block, session_id, term_id)`.

        Returns the bytes of all of them. Otherwise as `Image.block_poll`. Source: `Subscription.blockPoll`.
        """
        return sum(image.block_poll(handler, limit) for image in self._images)

    @property
    def local_socket_addresses(self) -> list[str]:
        """The addresses, as `host:port`, that the channel receives on: one, or one a destination.

        None for IPC and for a spy, until the channel is active, and once closed. Source:
        `Subscription.localSocketAddresses`.
        """
        return [] if self._closed else self._control.local_socket_addresses(self._channel_status_id)

    @property
    def resolved_endpoint(self) -> str | None:
        """The address that the channel receives on, as `host:port`; of several the first that was found.

        None where there is none, or none yet. Once known it does not change. Source: `Subscription.resolvedEndpoint`.
        """
        if self._resolved_endpoint is None:
            self._resolved_endpoint = next(iter(self.local_socket_addresses), None)
        return self._resolved_endpoint

    def try_resolve_channel_endpoint_port(self) -> str | None:
        """The channel with the port that the operating system chose where its endpoint asks for port 0.

        None as long as that port is not known, and the channel as it is where its endpoint asks for no such port or its
        destinations are added by hand. Raises `ChannelError` where `ChannelUri` cannot read the channel. Source:
        `Subscription.tryResolveChannelEndpointPort`.
        """
        uri = ChannelUri.parse(self.channel)
        endpoint = uri.get("endpoint")
        if endpoint is None or not endpoint.endswith(":0") or uri.get("control-mode") == "manual":
            return self.channel
        resolved = self.resolved_endpoint
        if resolved is None:
            return None
        return str(uri.replace(endpoint=f"{endpoint.removesuffix(':0')}:{resolved.rpartition(':')[2]}"))

    async def wait_connected(self, timeout: Timeout = CLIENT_TIMEOUT) -> None:
        """Returns when a publisher is connected.

        `timeout` is in seconds; None waits without limit. Raises `NotConnectedError` when it runs out,
        `SubscriptionClosedError` or the client's reason.
        """
        with anyio.move_on_after(self._control.seconds(timeout)):
            while not self.is_connected:
                if self._closed:
                    raise self._control.closed_error(SubscriptionClosedError)
                await self._images_changed.wait()
            return
        raise NotConnectedError(f"no publisher is connected: channel={self.channel!r} stream_id={self.stream_id}")

    async def add_destination(self, uri: str | ChannelUri, *, timeout: Timeout = CLIENT_TIMEOUT) -> int:
        """Adds a channel to receive from, to a subscription on a channel with `control-mode=manual`.

        `timeout` is in seconds. Cancelled or late, the destination is removed again.

        Returns the destination's registration id, for `remove_destination`. Raises `RegistrationError`,
        `AddTimeoutError`, `SubscriptionClosedError` or the client's reason. Source: `Subscription.addDestination`.
        """
        self._check_open()
        return await self._control.add_destination(self.registration_id, uri, timeout)

    async def remove_destination(
        self, uri_or_registration_id: str | ChannelUri | int, *, timeout: Timeout = CLIENT_TIMEOUT
    ) -> None:
        """Removes a destination, by the channel it was added with or by its registration id.

        `timeout` is in seconds; cancelled or late, it may still be done. Raises as `add_destination`, and `ValueError`
        for an id that is none of this subscription's. Source: `Subscription.removeDestination`.
        """
        self._check_open()
        await self._control.remove_destination(self.registration_id, uri_or_registration_id, timeout)

    async def aclose(self) -> None:
        """Closes the subscription and waits for the driver's answer; again it does nothing."""
        await self._control.close_resource(self.registration_id)

    def __repr__(self) -> str:
        return (
            f"<Subscription channel={self.channel!r} stream_id={self.stream_id} "
            f"images={self.image_count} is_closed={self._closed}>"
        )

    def _check_open(self) -> None:
        self._control.check_process()
        if self._closed:
            raise self._control.closed_error(SubscriptionClosedError)

    def _add_image(self, image: Image) -> None:
        self._change_images((*self.images, image))

    def _remove_image(self, image: Image) -> None:
        self._change_images(tuple(other for other in self.images if other is not image))
        image._close()

    def _close(self) -> None:
        self._closed = True
        if self._channel_status is not None:
            lib.aa_counter_close(self._channel_status)
        for image in self.images:
            image._close()
        self._change_images(())

    def _forget_read_ahead(self) -> None:
        """What was read ahead is the parent's to deliver: a forked child's part."""
        if any(map(self._reader.has_ahead, (self, *self.images))):
            self._reader.drop_ahead()

    def _change_images(self, images: tuple[Image, ...]) -> None:
        self._images = images
        self._handles = Handles([image._handle for image in images])
        self._reader.wake()
        changed, self._images_changed = self._images_changed, anyio.Event()
        changed.set()

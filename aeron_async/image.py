"""Images: one publisher's session each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from aeron_async._control import Control
from aeron_async._core import log_info, log_terms
from aeron_async._native import lib
from aeron_async._readable import DEFAULT_FRAGMENT_LIMIT, Readable
from aeron_async._reader import Handles, Reader
from aeron_async.action import Action
from aeron_async.batch import Header
from aeron_async.block import Block
from aeron_async.errors import SubscriptionClosedError

MAX_REASON_LENGTH = 1023


class Image(Readable):
    """One publisher's session as its subscriber sees it.

    Source: Aeron's `Image`. Closed, it keeps its last values.
    """

    __slots__ = (
        "__weakref__",
        "_control",
        "_handle",
        "_log",
        "_terms",
        "correlation_id",
        "initial_term_id",
        "join_position",
        "mtu_length",
        "session_id",
        "source_identity",
        "subscription_registration_id",
        "term_buffer_length",
    )

    def __init__(
        self,
        handle: Any,
        log: Any,
        reader: Reader,
        control: Control,
        *,
        session_id: int,
        correlation_id: int,
        subscription_registration_id: int,
        source_identity: str,
    ) -> None:
        info = log_info(log)
        self._handle = handle
        self._log = log
        self._terms: memoryview | None = None
        self._reader = reader
        self._control = control
        self._handles = Handles((handle,))
        self.session_id = session_id
        self.correlation_id = correlation_id
        """The driver's id of the image; for IPC the publication's registration id."""
        self.subscription_registration_id = subscription_registration_id
        self.source_identity = source_identity
        """Where it comes from: the source's address and port, or `aeron:ipc`."""
        self.initial_term_id: int = info.initial_term_id
        self.term_buffer_length: int = info.term_length
        self.mtu_length: int = info.mtu_length
        self.join_position: int = lib.aa_image_join_position(handle)
        """The stream position in bytes that reading started at."""

    @property
    def position(self) -> int:
        """The stream position in bytes up to which messages were delivered."""
        self._reader.settle()
        return int(lib.aa_image_position(self._handle))

    @property
    def is_closed(self) -> bool:
        """Whether the publisher has gone, or the subscription was closed."""
        return bool(lib.aa_image_is_closed(self._handle))

    @property
    def is_end_of_stream(self) -> bool:
        """Whether the publisher has ended the stream and all of it was read."""
        self._reader.settle()
        return bool(lib.aa_image_is_end_of_stream(self._handle))

    @property
    def end_of_stream_position(self) -> int:
        """The stream position in bytes of the end; the largest 64-bit value while it is not known."""
        return int(lib.aa_image_end_of_stream_position(self._handle))

    @property
    def active_transport_count(self) -> int:
        """How many transports the image comes in on."""
        return int(lib.aa_image_active_transport_count(self._handle))

    @property
    def is_publication_revoked(self) -> bool:
        """Whether the publisher has revoked the publication."""
        return bool(lib.aa_image_is_publication_revoked(self._handle))

    def bounded_poll(
        self,
        handler: Callable[[memoryview, Header], None],
        limit_position: int,
        fragment_limit: int = DEFAULT_FRAGMENT_LIMIT,
    ) -> int:
        """As `poll`, but reads no fragment that begins at `limit_position` (bytes) or behind it.

        Source: `Image.boundedPoll` with an `ImageFragmentAssembler`.
        """
        return self._reader.poll_images(self, handler, fragment_limit, limit_position=limit_position)

    def bounded_controlled_poll(
        self,
        handler: Callable[[memoryview, Header], Action | None],
        limit_position: int,
        fragment_limit: int = DEFAULT_FRAGMENT_LIMIT,
    ) -> int:
        """As `controlled_poll`, but reads no fragment that begins at `limit_position` (bytes) or behind it.

        Source: `Image.boundedControlledPoll` with an `ImageControlledFragmentAssembler`.
        """
        return self._reader.poll_images(
            self, handler, fragment_limit, limit_position=limit_position, is_controlled=True
        )

    def block_poll(self, handler: Callable[[memoryview, int, int], None], limit: int) -> int:
        """Hands the frames that are there, as one block, to `handler(block, session_id, term_id)`.

        They are whole frames of one term, headers included, in place and `limit` bytes of them at most: none where
        the next frame is longer. Padding ends a block; where it comes first it is the whole block, however long.
        Fragments are not reassembled. The view is read-only; it stays safe to read, but its content may change after
        the call. Where the handler raises, the block counts as taken, as the messages of `poll` do.

        Returns the length of the block in bytes; 0 where nothing is there, and once closed. Raises `RuntimeError`
        while another read is under way, and where the next message was read in part by a call of another kind;
        `CorruptFileError`, `ForkedClientError`. Source: `Image.blockPoll`.
        """
        reading = _BlockReading(self, limit)
        block = reading.begin()
        frames = block.buffer
        length = len(frames)
        try:
            if length:
                handler(frames, block.session_id, block.term_id)
        finally:
            reading.end(is_taken=True)
        return length

    def block(self, limit: int) -> AbstractContextManager[Block]:
        """The frames that are there, as `block_poll` would hand them out, for the time of a `with`.

        The position moves past them when the block is left without an exception, so that what an exception or a
        cancellation has interrupted is read again. Nobody else may read meanwhile. Raises as `block_poll`.
        """
        return _BlockReading(self, limit)

    async def reject(self, reason: str) -> None:
        """Tells the publisher, which loses the image as a receiver, that the stream is not wanted, and why.

        The image becomes unavailable; the publisher's clients hear of `reason` by `on_publication_error`. The driver
        may connect the two again after its image liveness timeout. `reason` has up to 1023 bytes in UTF-8. Returns when
        the driver has accepted it; cancelled, it may still be done.

        Raises `RegistrationError`, also for an image of a spy, which has none to reject; `SubscriptionClosedError` once
        the image is closed, or the client's reason; `AddTimeoutError`, `ValueError`. Source: `Image.reject`.
        """
        if self.is_closed:
            self._control.check_process()
            raise self._control.closed_error(SubscriptionClosedError)
        if len(reason.encode()) > MAX_REASON_LENGTH:
            raise ValueError(f"a reason of {len(reason.encode())} bytes is longer than {MAX_REASON_LENGTH}")
        await self._control.reject_image(self.correlation_id, self.position, reason)

    def __repr__(self) -> str:
        return (
            f"<Image session_id={self.session_id} source_identity={self.source_identity!r} "
            f"position={self.position} is_closed={self.is_closed}>"
        )

    def _close(self) -> None:
        self._reader.settle()
        lib.aa_image_close(self._handle)


class _BlockReading(AbstractContextManager[Block]):
    """A block while it is read, and nobody else may read."""

    __slots__ = ("_block", "_image", "_limit")

    _block: Block

    def __init__(self, image: Image, limit: int) -> None:
        self._image = image
        self._limit = limit

    def begin(self) -> Block:
        image = self._image
        reader = image._reader
        reader.claim(image)
        try:
            native = reader.scan_block(image._handle, self._limit)
            if not native.length and image.is_closed:
                image._control.check_process()
            terms = image._terms
            if terms is None:
                terms = image._terms = log_terms(image._log)
            self._block = Block(native, image._handle, terms, image.session_id)
        except BaseException:
            reader.release()
            raise
        return self._block

    def end(self, is_taken: bool) -> None:
        self._block._leave(is_taken)
        self._image._reader.release()

    def __enter__(self) -> Block:
        return self.begin()

    def __exit__(self, exc_type: type[BaseException] | None, *exc: object) -> None:
        self.end(is_taken=exc_type is None)

"""The one reader of a subscription, which all the ways to read share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from aeron_async._control import Control
from aeron_async._core import check, raise_for
from aeron_async._native import ffi, lib
from aeron_async._waker import ImagesPlace
from aeron_async.action import Action
from aeron_async.batch import Header, MessageBatch
from aeron_async.errors import SubscriptionClosedError
from aeron_async.idle import IdleStrategy

# What an iteration reads ahead of its caller, and so also how much it delivers before other tasks get a turn.
AHEAD_MESSAGES = 256
_AHEAD_BYTES = 256 << 10

# What one poll copies for its handler at most; the next one reads on.
_POLL_BYTES = 4 << 20

NO_LIMIT_POSITION = (1 << 63) - 1
_NO_LIMIT = (1 << 31) - 1


class Handles:
    """Handles of images, as the array that the C core takes."""

    __slots__ = ("array", "count", "kept")

    def __init__(self, handles: Sequence[Any] = ()) -> None:
        self.count = len(handles)
        self.array = ffi.new("aa_image_t *[]", handles)
        # The array itself keeps nothing alive.
        self.kept = handles


class Source(Protocol):
    """What is read: a subscription or an image."""

    _handles: Handles
    """The images that are read now."""

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be read."""


class ReadAhead:
    """Messages that an iteration has copied and not yet delivered."""

    __slots__ = ("batch", "count", "data", "index", "offsets", "source")

    def __init__(self, batch: MessageBatch, source: Source) -> None:
        self.batch = batch
        self.source = source
        self.count = len(batch)
        self.data = batch._data
        self.offsets: list[int] = batch.offsets.tolist()
        self.index = 0


class Reader:
    """The one reader of a subscription: its native batch, its turn among the images, its read-ahead.

    Every way to read starts from the committed positions, so that calls of different kinds may follow each other.
    """

    def __init__(
        self, control: Control, *, idle: IdleStrategy | None = None, local_stream_id: int | None = None
    ) -> None:
        """`idle` is how the reader waits, by default as its client does.

        `local_stream_id` is the stream's id where its publishers are on the same driver.
        """
        self._control = control
        self._idle = idle
        self._local_stream_id = local_stream_id
        self._error = ffi.new("aa_error_t *")
        self._native = ffi.gc(lib.aa_batch_create(), lib.aa_batch_release)
        self._start = 0
        self._ahead: ReadAhead | None = None
        self._owner: object | None = None
        self._place: ImagesPlace | None = None

    # --- who reads ---------------------------------------------------------------------------------------------

    def claim(self, owner: object) -> None:
        """Makes `owner` the one who reads; raises where somebody else is in the middle of it."""
        if self._owner is not None:
            raise RuntimeError(
                "another iteration, poll or block of this subscription is under way; only one may read at a time"
            )
        self._owner = owner

    def release(self) -> None:
        """Nobody reads any more."""
        self._owner = None

    # --- scans and commits -------------------------------------------------------------------------------------

    def _scan(self, images: Handles, fragments: int, messages: int, max_bytes: int) -> Any:
        """Reads on from the committed positions; what it finds is committed by `_commit`."""
        self._ahead = None
        start = self._next_start(images.count)
        code = lib.aa_batch_scan(
            self._native, images.array, images.count, start, fragments, messages, max_bytes, self._error
        )
        return self._scanned(code)

    def _scan_image(self, image: Any, limit_position: int, fragments: int) -> Any:
        """As `_scan`, in one image and up to a position."""
        self._ahead = None
        code = lib.aa_batch_scan_image(self._native, image, limit_position, fragments, _POLL_BYTES, self._error)
        return self._scanned(code)

    def _scanned(self, code: int) -> Any:
        if code != lib.AA_OK and self._native.count == 0:
            raise_for(self._error)
        return self._native

    def _next_start(self, count: int) -> int:
        """The image that is the first to be read, another one each time."""
        if count > 1:
            self._start = (self._start + 1) % count
            return self._start
        return 0

    def _commit(self, count: int) -> None:
        lib.aa_batch_commit(self._native, count)

    def _clear(self) -> None:
        lib.aa_batch_clear(self._native)

    def _check_silence(self, source: Source) -> None:
        """Raises where nothing is read because this is a forked child."""
        if source.is_closed:
            self._control.check_process()

    # --- batches -----------------------------------------------------------------------------------------------

    def read_batch(self, source: Source, limit: int, max_bytes: int) -> MessageBatch:
        """Takes what is there, up to the limits."""
        native = self._scan(source._handles, _NO_LIMIT, limit, max_bytes)
        batch = MessageBatch(native)
        self._commit(native.count)
        self._clear()
        if not batch:
            self._check_silence(source)
        return batch

    # --- polls -------------------------------------------------------------------------------------------------

    def poll(self, source: Source, handler: Callable[[memoryview, Header], Any], fragment_limit: int) -> int:
        """Hands what is there to `handler`; the number of fragments read."""
        self.claim(source)
        try:
            self._scan(source._handles, fragment_limit, _NO_LIMIT, _POLL_BYTES)
            fragments = self._hand_out(handler, is_controlled=False)
        finally:
            self.release()
        if not fragments:
            self._check_silence(source)
        return fragments

    def poll_images(
        self,
        source: Source,
        handler: Callable[[memoryview, Header], Any],
        fragment_limit: int,
        *,
        limit_position: int = NO_LIMIT_POSITION,
        is_controlled: bool = False,
    ) -> int:
        """As `poll`, but each image by itself: up to a position, or until its handler ends it."""
        images = source._handles
        fragments = 0
        self.claim(source)
        try:
            start = self._next_start(images.count)
            for image in (*images.kept[start:], *images.kept[:start]):
                if fragments == fragment_limit:
                    break
                self._scan_image(image, limit_position, fragment_limit - fragments)
                fragments += self._hand_out(handler, is_controlled)
        finally:
            self.release()
        if not fragments:
            self._check_silence(source)
        return fragments

    def _hand_out(self, handler: Callable[[memoryview, Header], Any], is_controlled: bool) -> int:
        """Hands out what was scanned, and commits what was taken; the number of fragments of that."""
        native = self._native
        fragments: int = native.fragments
        if not native.count:
            return fragments
        batch = MessageBatch(native)
        data = batch.buffer
        offsets = batch.offsets
        taken = 0
        try:
            for index in range(len(batch)):
                taken += 1
                with data[offsets[index] : offsets[index + 1]] as payload:
                    action = handler(payload, batch._header(index))
                if not is_controlled or action is None:
                    continue
                if not isinstance(action, Action):
                    raise TypeError(f"a handler of a controlled poll returns an Action or None, not {action!r}")
                if action is Action.COMMIT:
                    self._commit(taken)
                elif action is not Action.CONTINUE:
                    taken -= action is Action.ABORT
                    return int(native.fragment_ends[taken - 1]) if taken else 0
        finally:
            self._commit(taken)
            self._clear()
        return fragments

    # --- blocks ------------------------------------------------------------------------------------------------

    def scan_block(self, image: Any, limit: int) -> Any:
        """The frames at the image's position (`aa_block_t`), `limit` bytes of them at most."""
        if lib.aa_image_is_within_message(image):
            raise RuntimeError(
                "the next message was read in part, so no block can begin with it; a poll or an iteration reads on"
            )
        self._ahead = None
        self._clear()
        block = ffi.new("aa_block_t *")
        check(lib.aa_block_scan(image, limit, block, self._error), self._error)
        return block

    # --- iterations --------------------------------------------------------------------------------------------

    def next_ahead(self, source: Source) -> ReadAhead | None:
        """The read-ahead that `source` may take its next message from, or None where there is none now."""
        ahead = self._ahead
        if ahead is not None and ahead.source is source:
            return ahead
        native = self._scan(source._handles, _NO_LIMIT, AHEAD_MESSAGES, _AHEAD_BYTES)
        if not native.count:
            self._clear()
            return None
        self._ahead = ReadAhead(MessageBatch(native), source)
        return self._ahead

    def take(self, ahead: ReadAhead) -> int:
        """Marks the next message of the read-ahead as delivered; its index."""
        index = ahead.index
        ahead.index = index + 1
        self._commit(index + 1)
        if ahead.index == ahead.count:
            self._ahead = None
            self._clear()
        return index

    def is_at_end(self, source: Source) -> bool:
        """Whether an iteration over `source` is over; raises the client's reason where that is why."""
        if not source.is_closed or (self._ahead is not None and self._ahead.source is source):
            return False
        self._control.check_process()
        error = self._control.closed_error(SubscriptionClosedError)
        if isinstance(error, SubscriptionClosedError):
            return True
        raise error

    def park(self, source: Source) -> Awaitable[None]:
        """What returns when `source` may have something to read, or its images or its state have changed.

        To be awaited at once.
        """
        if self._place is None:
            self._place = self._control.waiting_place(self._idle, self._local_stream_id)
        return self._place.wait_images(source._handles.array, source._handles.count)

    def wake(self) -> None:
        """Somebody who is parked looks again."""
        if self._place is not None:
            self._place.wake()

"""The one reader of a subscription, which all the ways to read share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import Any, NoReturn, Protocol, TypeVar

import anyio.lowlevel

from aeron_async._control import Control
from aeron_async._core import check, raise_for
from aeron_async._face import ReaderPath
from aeron_async._native import ffi, lib
from aeron_async._waker import ImagesPlace
from aeron_async.action import Action
from aeron_async.batch import Header, MessageBatch
from aeron_async.errors import SubscriptionClosedError
from aeron_async.idle import IdleStrategy

# What one poll copies for its handler at most; the next one reads on.
POLL_BYTES = 4 << 20

NO_LIMIT_POSITION = (1 << 63) - 1

T = TypeVar("T", covariant=True)


class Handles:
    """Handles of images, as the array that the C core takes."""

    __slots__ = ("address", "array", "count", "kept")

    def __init__(self, handles: Sequence[Any] = ()) -> None:
        self.count = len(handles)
        self.array = ffi.new("aa_image_t *[]", handles)
        self.address = int(ffi.cast("uintptr_t", self.array))
        # The array itself keeps nothing alive.
        self.kept = handles


class Source(Protocol):
    """What is read: a subscription or an image."""

    _handles: Handles
    """The images that are read now."""

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be read."""


class Iteration(Protocol[T]):
    """An iteration of either face."""

    @property
    def source(self) -> Any:
        """What it is over: a `Source`."""

    @property
    def is_turn_over(self) -> bool:
        """Whether it is the turn of other tasks."""

    def begin_turn(self) -> None:
        """Others have had theirs."""

    def take(self) -> T | None:
        """The next item, or None where there is none now; called by the one who reads."""


class Reader(ReaderPath):
    """The one reader of a subscription: its native batch, its turn among the images, its read-ahead.

    Every way to read starts from the committed positions, so that calls of different kinds may follow each other. This
    is what is not hot of it, and the rare cases of what is.
    """

    def __init__(
        self, control: Control, *, idle: IdleStrategy | None = None, local_stream_id: int | None = None
    ) -> None:
        """`idle` is how the reader waits, by default as its client does.

        `local_stream_id` is the stream's id where its publishers are on the same driver.
        """
        super().__init__(MessageBatch)
        self._control = control
        self._idle = idle
        self._local_stream_id = local_stream_id
        self._batch = ffi.cast("aa_batch_t *", self._batch_address)
        self._failure = ffi.cast("aa_error_t *", self._error_address)
        self._place: ImagesPlace | None = None

    def _refuse(self) -> NoReturn:
        raise RuntimeError(
            "another iteration, poll or block of this subscription is under way; only one may read at a time"
        )

    def _fail(self) -> NoReturn:
        raise_for(self._failure)

    def _check_silence(self, source: Source) -> None:
        """Raises where nothing is read because this is a forked child."""
        if source.is_closed:
            self._control.check_process()

    # --- polls -------------------------------------------------------------------------------------------------

    def poll_images(
        self,
        source: Source,
        handler: Callable[[memoryview, Header], Any],
        fragment_limit: int,
        *,
        limit_position: int = NO_LIMIT_POSITION,
        is_controlled: bool = False,
    ) -> int:
        """Hands what is there to `handler`, each image by itself: up to a position, or until its handler ends it.

        The number of fragments read.
        """
        images = source._handles
        fragments = 0
        self.claim(source)
        try:
            start = self.next_start(images.count)
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

    def _scan_image(self, image: Any, limit_position: int, fragments: int) -> None:
        """Reads on from the committed position of an image up to another."""
        self.drop_ahead()
        code = lib.aa_batch_scan_image(self._batch, image, limit_position, fragments, POLL_BYTES, self._failure)
        if code != lib.AA_OK and self._batch.count == 0:
            self._fail()

    def _hand_out(self, handler: Callable[[memoryview, Header], Any], is_controlled: bool) -> int:
        """Hands out what was scanned, and commits what was taken; the number of fragments of that."""
        native = self._batch
        fragments: int = native.fragments
        if not native.count:
            return fragments
        batch = self.take_batch()
        payloads = batch.buffer
        taken = 0
        try:
            for begin, end in pairwise(batch.offsets.tolist()):
                taken += 1
                with payloads[begin:end] as payload:
                    action = handler(payload, batch._header(taken - 1))
                if not is_controlled or action is None:
                    continue
                if not isinstance(action, Action):
                    raise TypeError(f"a handler of a controlled poll returns an Action or None, not {action!r}")
                if action is Action.COMMIT:
                    lib.aa_batch_commit(native, taken)
                elif action is not Action.CONTINUE:
                    taken -= action is Action.ABORT
                    return int(native.messages.rows[taken - 1].fragment_end) if taken else 0
        finally:
            lib.aa_batch_commit(native, taken)
            lib.aa_batch_clear(native)
        return fragments

    # --- blocks ------------------------------------------------------------------------------------------------

    def scan_block(self, image: Any, limit: int) -> Any:
        """The frames at the image's position (`aa_block_t`), `limit` bytes of them at most."""
        if lib.aa_image_is_within_message(image):
            raise RuntimeError(
                "the next message was read in part, so no block can begin with it; a poll or an iteration reads on"
            )
        self.drop_ahead()
        block = ffi.new("aa_block_t *")
        check(lib.aa_block_scan(image, limit, block, self._failure), self._failure)
        return block

    # --- iterations --------------------------------------------------------------------------------------------

    async def next_of(self, iteration: Iteration[T]) -> T:
        """The next item of an iteration that has to wait for it, or for its turn."""
        source = iteration.source
        self.claim(iteration)
        try:
            if iteration.is_turn_over:
                await anyio.lowlevel.checkpoint()
                iteration.begin_turn()
            while not self.is_at_end(source):
                item = iteration.take()
                if item is not None:
                    return item
                iteration.begin_turn()
                await self.park(source)
        finally:
            self.release()
        raise StopAsyncIteration

    def is_at_end(self, source: Source) -> bool:
        """Whether an iteration over `source` is over; raises the client's reason where that is why."""
        if not source.is_closed or self.has_ahead(source):
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

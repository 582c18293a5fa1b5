"""A publisher that never waits: messages are queued, and sent in the background."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import Self

import anyio

from aeron_async._buffers import BytesLike, bytes_of
from aeron_async._control import CLIENT_TIMEOUT, Timeout
from aeron_async._log import log
from aeron_async._native import lib
from aeron_async._tasks import call_soon, spawn
from aeron_async.errors import AeronError, BackPressuredError, MessageTooLongError
from aeron_async.protocol.frames import DATA_HEADER_LENGTH
from aeron_async.publication import OfferResult, Publication


class BatchPublisher:
    """Queues messages for a publication and sends them in order.

    What a turn of the loop has queued goes in one native call, and what finds no room as soon as there is some.
    ``async with BatchPublisher(publication) as batch: batch.publish(b"...")`` leaves the block when everything is sent.
    Nothing is dropped while the publication and the loop live, also where the block is left by an exception or
    cancelled. `max_pending` is how many messages may be queued; None for no limit.

    Belongs to the client's loop. It closes nothing: the publication may be used directly, too.
    """

    def __init__(self, publication: Publication, max_pending: int | None = None) -> None:
        if max_pending is not None and max_pending < 1:
            raise ValueError(f"max_pending={max_pending} is less than 1")
        self.publication = publication
        self.max_pending = max_pending
        self._queue: deque[bytes] = deque()
        self._queued_length = 0
        self._sent = 0
        self._is_due = False
        self._closed = False
        self._error: AeronError | None = None
        self._progress: anyio.Event | None = None

    @property
    def pending(self) -> int:
        """How many messages are queued and not yet in the stream."""
        return len(self._queue)

    def publish(self, data: BytesLike) -> None:
        """Queues one message; never waits. What could change later, anything but bytes, is copied.

        Raises `BackPressuredError` where `max_pending` messages are queued already; `MessageTooLongError`; `TypeError`
        and `BufferError` as `Publication.offer`; `PublicationClosedError`, the client's reason, or
        `MaxPositionExceededError` once nothing can be sent any more; `RuntimeError` after the end of the block.
        """
        if self._closed:
            raise RuntimeError("this BatchPublisher is closed")
        message = bytes_of(data)
        if len(message) > self.publication.max_message_length:
            raise MessageTooLongError(len(message), self.publication.max_message_length)
        self._check()
        if self.max_pending is not None and len(self._queue) >= self.max_pending:
            raise self._back_pressured(f"max_pending={self.max_pending} messages are queued")
        self._queue.append(message)
        self._queued_length += _framed_length(message)
        if not self._is_due:
            self._is_due = True
            call_soon(self._send)

    async def flush(self, timeout: Timeout = CLIENT_TIMEOUT) -> None:
        """Returns when all that was queued before the call is in the stream.

        `timeout` is in seconds; None waits without limit. Cancelling it drops nothing. Raises `BackPressuredError` when
        the time runs out, also where nobody is connected; `PublicationClosedError`, the client's reason, or
        `MaxPositionExceededError` where messages can never be sent. The error's `pending` is how many were not.
        """
        target = self._sent + len(self._queue)
        with anyio.move_on_after(self.publication._control.seconds(timeout)):
            while self._sent < target:
                self._check()
                self._progress = self._progress or anyio.Event()
                await self._progress.wait()
            return
        raise self._back_pressured(f"subscribers are too slow, or none is connected: {self.publication!r}")

    async def aclose(self, timeout: Timeout = CLIENT_TIMEOUT) -> None:
        """Takes no more messages, and returns when all are in the stream; as `flush`."""
        self._closed = True
        await self.flush(timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if exc_type is None:
            await self.aclose()
            return
        self._closed = True
        if issubclass(exc_type, Exception):
            try:
                await self.flush()
            except AeronError as error:
                # The block's own exception matters more.
                log.warning("batch_not_flushed", pending=error.pending, error=str(error))

    def __repr__(self) -> str:
        return f"<BatchPublisher of {self.publication!r}, {self.pending} pending>"

    def _check(self) -> None:
        if self._error is not None:
            self._error.pending = len(self._queue)
            raise self._error.with_traceback(None)

    def _back_pressured(self, why: str) -> BackPressuredError:
        error = BackPressuredError(f"{why}; {len(self._queue)} messages are not sent")
        error.pending = len(self._queue)
        return error

    def _send(self) -> None:
        """Makes one native call, and sees to it that the next one comes where it must."""
        self._is_due = False
        messages = self._that_fit()
        try:
            result = self.publication.offer_many(messages)
        except AeronError as error:
            self._fail(error)
            return
        if result > 0:
            self._forget(result)
        if not self._queue:
            return
        self._is_due = True
        if result in (len(messages), OfferResult.ADMIN_ACTION):
            call_soon(self._send)
        elif result > 0 or result in (OfferResult.BACK_PRESSURED, OfferResult.NOT_CONNECTED):
            spawn(self._send_later, "aeron_async: BatchPublisher")
        else:
            self._fail(self.publication._error(result))

    async def _send_later(self) -> None:
        await self.publication._control.wait_publication(self.publication._handle, lib.AA_WATCH_WRITABLE)
        self._send()

    def _that_fit(self) -> list[bytes]:
        """The next messages: those that fit into the window now, and the one that crosses its end."""
        room = self.publication.available_window
        if self._queued_length <= room:
            return list(self._queue)
        messages = []
        for message in self._queue:
            messages.append(message)
            room -= _framed_length(message)
            if room <= 0:
                break
        return messages

    def _forget(self, count: int) -> None:
        """The first messages are in the stream."""
        for _ in range(count):
            self._queued_length -= _framed_length(self._queue.popleft())
        self._sent += count
        self._wake()

    def _fail(self, error: AeronError) -> None:
        error.add_note(f"{len(self._queue)} messages of the BatchPublisher are not sent")
        self._error = error
        self._wake()

    def _wake(self) -> None:
        progress, self._progress = self._progress, None
        if progress is not None:
            progress.set()


def _framed_length(message: bytes) -> int:
    """About what a message takes of the window."""
    return len(message) + DATA_HEADER_LENGTH

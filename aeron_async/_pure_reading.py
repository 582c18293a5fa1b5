"""The message path of readers over `_native`: what stands in for the classes of the same names in `_speedups`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import get_ident
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from aeron_async._native import ffi, lib
from aeron_async._pure_messages import (
    AHEAD_MESSAGES,
    BatchPath,
    Header,
    Message,
    batch_of,
    header_of,
    payloads_of,
    rows_of,
)
from aeron_async._tasks import soon

if TYPE_CHECKING:
    from aeron_async._reader import Handles, Reader
    from aeron_async.batch import MessageBatch

# What an iteration reads ahead of its caller, beside AHEAD_MESSAGES.
_AHEAD_BYTES = 256 << 10

# How much an iteration delivers before other tasks get a turn: 1 a message, and 1 a KiB.
_TURN = 256

# Messages that are worth a run: so many at least that are there already, of so many bytes on average at most.
_RUN_MESSAGES = 8
_RUN_BYTES = 1 << 10

# What one poll copies for its handler at most; the next one reads on.
_POLL_BYTES = 4 << 20

_NO_LIMIT = (1 << 31) - 1

T = TypeVar("T")

_commit = lib.aa_batch_commit


class ReaderPath:
    """What all the ways to read share: the native batch, who reads, the turn among the images, the read-ahead."""

    def __init__(self, batch_type: type[BatchPath]) -> None:
        self._batch_type = batch_type
        self._native = ffi.gc(lib.aa_batch_create(), lib.aa_batch_release)
        if not self._native:
            raise MemoryError("no memory for a batch")
        self._error = ffi.new("aa_error_t *")
        self._start = 0
        self._owner: object | None = None
        self._ahead: _ReadAhead | None = None

    @property
    def _batch_address(self) -> int:
        """Where the native batch is (`aa_batch_t`)."""
        return int(ffi.cast("uintptr_t", self._native))

    @property
    def _error_address(self) -> int:
        """Where the last error is (`aa_error_t`)."""
        return int(ffi.cast("uintptr_t", self._error))

    def claim(self, owner: object) -> None:
        """Makes `owner` the one who reads; raises where somebody else is in the middle of it."""
        if self._owner is not None:
            self._refuse()
        self._owner = owner
        ahead = self._ahead
        if ahead is not None and (count := ahead.end_run()):
            self._advance(ahead, count)

    def release(self) -> None:
        """Nobody reads any more."""
        self._owner = None

    def drop_ahead(self) -> None:
        """Forgets what was read ahead: it is read again."""
        if self._ahead is not None:
            self._ahead.end_run()
            self._ahead = None
        lib.aa_batch_clear(self._native)

    def settle(self) -> None:
        """Moves the positions past everything that was delivered, unless whoever reads now has done so.

        From another thread than the iteration's it does nothing: the loop does it at its next turn.
        """
        ahead = self._ahead
        if ahead is None or ahead.thread != get_ident() or self._owner is not None:
            return
        with suppress(RuntimeError):
            self.claim(self)
            self.release()

    def has_ahead(self, source: Any) -> bool:
        """Whether something was read ahead for iterations over `source`."""
        return self._ahead is not None and self._ahead.source is source

    def next_start(self, count: int) -> int:
        """Which of `count` images is the first to be read: another one each time."""
        if count < 2:
            return 0
        self._start = (self._start + 1) % count
        return self._start

    def take_batch(self) -> MessageBatch:
        """What the last scan found."""
        received = lib.aa_batch_take(self._native)
        if not received:
            raise MemoryError("no memory for a batch")
        batch: MessageBatch = batch_of(received, self._batch_type)
        return batch

    def _scan(self, images: Handles, fragments: int, messages: int, max_bytes: int) -> Any:
        """Reads on from the committed positions; the native batch."""
        self._ahead = None
        native = self._native
        start = self.next_start(images.count)
        code = lib.aa_batch_scan(native, images.array, images.count, start, fragments, messages, max_bytes, self._error)
        if code and not native.count:
            self._fail()
        return native

    def _read_batch(self, source: ReadablePath, limit: int, max_bytes: int) -> MessageBatch:
        native = self._scan(source._handles, _NO_LIMIT, limit, max_bytes)
        batch = self.take_batch()
        _commit(native, native.count)
        lib.aa_batch_clear(native)
        if not batch:
            self._check_silence(source)
        return batch

    def _next_ahead(self, source: ReadablePath) -> _ReadAhead | None:
        """What iterations over `source` may take their next message from, or None where nothing is there now."""
        ahead = self._ahead
        if ahead is None or ahead.source is not source:
            native = self._scan(source._handles, _NO_LIMIT, AHEAD_MESSAGES, _AHEAD_BYTES)
            if not native.count:
                lib.aa_batch_clear(native)
                return None
            self._ahead = ahead = _ReadAhead(native, source)
        return ahead

    def _advance(self, ahead: _ReadAhead, count: int = 1) -> None:
        """Marks the next message of the read-ahead, or so many, as delivered."""
        ahead.index += count
        _commit(self._native, ahead.index)
        if ahead.index == ahead.count:
            self.drop_ahead()

    if TYPE_CHECKING:
        # What the subclass has for the rare cases, on both faces.
        def _refuse(self) -> None: ...
        def _fail(self) -> None: ...
        def _check_silence(self, source: Any) -> None: ...


class _ReadAhead:
    """Messages that were read and that no caller has been given: those from `index` on.

    While there is a run, its iteration delivers the next ones without telling anybody.
    """

    __slots__ = ("_rows", "_run", "count", "index", "is_worth_runs", "native", "payloads", "source", "thread")

    def __init__(self, native: Any, source: ReadablePath) -> None:
        self.native = native
        self.source = source
        self.count: int = native.count
        self.payloads = payloads_of(native.messages)
        self.index = 0
        self.is_worth_runs = self.count >= _RUN_MESSAGES and native.messages.nbytes <= self.count * _RUN_BYTES
        self._rows: bytes | None = None
        self._run: tuple[_Payloads, Iterator[bytes], int] | None = None
        self.thread = 0
        """Where the run is, or was."""

    def begin_run(self, iteration: _Payloads, limit: int) -> Iterator[bytes]:
        """The next messages, at most `limit`."""
        payloads = self.payloads[self.index : self.index + limit]
        run = iter(payloads)
        self._run = iteration, run, len(payloads)
        self.thread = get_ident()
        return run

    def end_run(self) -> int:
        """How many messages the run has delivered, if there is one; it delivers no more."""
        if self._run is None:
            return 0
        iteration, run, count = self._run
        self._run = None
        # At once, whatever other threads do.
        count -= len(list(run))
        iteration.run_has_ended(count)
        self.is_worth_runs = count >= _RUN_MESSAGES
        return count

    def header(self, index: int) -> Header:
        if self._rows is None:
            # The native batch holds them as long as this is the read-ahead.
            self._rows = rows_of(self.native.messages)
        return header_of(self._rows, index)


class ReadablePath:
    """The hot methods of what is read: a subscription or an image."""

    __slots__ = ("_handles", "_reader")

    _reader: Reader
    _handles: Handles
    """The images that are read now."""

    if TYPE_CHECKING:

        @property
        def is_closed(self) -> bool: ...

    def poll(self, handler: Callable[[memoryview, Header], None], fragment_limit: int = 10) -> int:
        """Hands messages to `handler(payload, header)`, fragments reassembled.

        At most `fragment_limit` fragments are read. A payload is valid during the call only. Where the handler raises,
        the exception comes out of here and the message counts as delivered.

        Returns the number of fragments read; 0 once closed. Raises `RuntimeError` while another read is under way,
        `CorruptFileError`, `ForkedClientError`. Source: `Subscription.poll` with a `FragmentAssembler`.
        """
        reader = self._reader
        reader.claim(self)
        try:
            reader._scan(self._handles, fragment_limit, _NO_LIMIT, _POLL_BYTES)
            fragments = reader._hand_out(handler, is_controlled=False)
        finally:
            reader.release()
        if not fragments:
            reader._check_silence(self)
        return fragments

    def poll_batch(self, limit: int = 1024, *, max_bytes: int = 4 << 20) -> MessageBatch:
        """Takes what is there: at most `limit` whole messages of at most `max_bytes` bytes together.

        At least one message is taken where there is one, however long. Empty once closed. Raises as `poll`.
        """
        reader = self._reader
        reader.claim(self)
        try:
            return reader._read_batch(self, limit, max_bytes)
        finally:
            reader.release()

    def _iterate_messages(self) -> Iteration[Message]:
        return _Messages(self)

    def _iterate_payloads(self) -> Iteration[bytes]:
        return _Payloads(self)

    def _iterate_batches(self, limit: int, max_bytes: int) -> Iteration[MessageBatch]:
        return _Batches(self, limit, max_bytes)


class Iteration(Generic[T]):
    """An iteration over what a source delivers; leaving it in any way loses and repeats nothing."""

    __slots__ = ("_left", "_reader", "source")

    def __init__(self, source: ReadablePath) -> None:
        self.source = source
        self._reader = source._reader
        self._left = _TURN

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        reader = self._reader
        if self._left > 0:
            reader.claim(self)
            try:
                item = self.take()
            finally:
                reader.release()
            if item is not None:
                return item
        return await reader.next_of(self)

    def take(self) -> T | None:
        """The next item, or None where there is none now; called by the one who reads."""
        raise NotImplementedError

    @property
    def is_turn_over(self) -> bool:
        """Whether it is the turn of other tasks."""
        return self._left <= 0

    def begin_turn(self) -> None:
        """Others have had theirs."""
        self._left = _TURN


class _Payloads(Iteration[bytes]):
    """Messages that come faster than the loop turns are delivered in runs, whose positions are committed together.

    A run ends with the loop's turn, or as soon as anybody else reads or asks for a position.
    """

    __slots__ = ("_run",)

    def __init__(self, source: ReadablePath) -> None:
        super().__init__(source)
        self._run: Iterator[bytes] = iter(())

    async def __anext__(self) -> bytes:
        for payload in self._run:
            return payload
        return await super().__anext__()

    def take(self) -> bytes | None:
        ahead = self._reader._next_ahead(self.source)
        if ahead is None:
            return None
        payload = ahead.payloads[ahead.index]
        self._reader._advance(ahead)
        self._left -= 1 + (len(payload) >> 10)
        if ahead.is_worth_runs and ahead.index < ahead.count and self._left > 0 and soon(self._reader.settle):
            self._run = ahead.begin_run(self, self._left)
        return payload

    def run_has_ended(self, count: int) -> None:
        """So many messages were delivered by it."""
        self._left -= count


class _Messages(Iteration[Message]):
    __slots__ = ()

    def take(self) -> Message | None:
        ahead = self._reader._next_ahead(self.source)
        if ahead is None:
            return None
        message = Message(ahead.payloads[ahead.index], ahead.header(ahead.index))
        self._reader._advance(ahead)
        self._left -= 1 + (len(message) >> 10)
        return message


class _Batches(Iteration["MessageBatch"]):
    __slots__ = ("_limit", "_max_bytes")

    def __init__(self, source: ReadablePath, limit: int, max_bytes: int) -> None:
        super().__init__(source)
        self._limit = limit
        self._max_bytes = max_bytes

    def take(self) -> MessageBatch | None:
        batch = self._reader._read_batch(self.source, self._limit, self._max_bytes)
        self._left -= len(batch) + (batch.nbytes >> 10)
        return batch or None

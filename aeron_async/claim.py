"""Claims: room for a message in the log buffer itself, filled in place."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from aeron_async._control import Control
from aeron_async._core import pinned
from aeron_async._native import ffi, lib
from aeron_async.errors import AeronError, ForkedClientError
from aeron_async.protocol.frames import FrameFlags

_MIN_INT64, _MAX_INT64 = -(1 << 63), (1 << 63) - 1


class BufferClaim:
    """A frame that a publication has reserved for the caller to fill in place.

    Obtained from `Publication.try_claim` and `Publication.claim`. As a context manager it is committed when the block
    is left, and aborted when that is by an exception. One that nobody has committed is aborted when it is garbage
    collected. Messages behind it in the stream wait for it, so hold it briefly: on a shared publication the driver
    makes padding of a claim that was held for its `publication_unblock_timeout` (15 s by default), also where its
    process has died; on an exclusive one nobody does before the publication is closed.

    May be used from any thread. Source: Aeron's `BufferClaim`.
    """

    def __init__(self, handle: Any, control: Control, *, length: int, position: int) -> None:
        self._handle = ffi.gc(handle, lib.aa_claim_release)
        self._control = control
        self._outcome: str | None = None
        self._flags = int(FrameFlags.UNFRAGMENTED)
        self._reserved_value = 0
        self._buffer = pinned(lib.aa_claim_data(self._handle), length, self._handle)
        self.length = length
        """Length of the message in bytes."""
        self.position = position
        """The stream position in bytes after the message."""

    @property
    def buffer(self) -> memoryview:
        """Where the message goes: writable, `length` bytes of the log buffer itself.

        Released by `commit` and `abort`, after which this raises `ValueError`. A view that was taken from it stays safe
        to use, but what it writes then is lost, or damages a later message.
        """
        self._check_open()
        return self._buffer

    @property
    def reserved_value(self) -> int:
        """The signed 64-bit value that will travel in the frame's header; 0 unless it is set."""
        return self._reserved_value

    @reserved_value.setter
    def reserved_value(self, value: int) -> None:
        self._check_open()
        if not _MIN_INT64 <= value <= _MAX_INT64:
            raise ValueError(f"reserved_value={value} does not fit into 64 bits")
        self._reserved_value = value

    @property
    def flags(self) -> int:
        """The frame's flags: begin 0x80 and end 0x40 of a message, both unless they are set otherwise."""
        return self._flags

    @flags.setter
    def flags(self, flags: int) -> None:
        self._check_open()
        if not 0 <= flags <= 0xFF:
            raise ValueError(f"flags={flags} does not fit into 8 bits")
        self._flags = flags

    def commit(self) -> None:
        """Makes the message available to subscribers; again it does nothing.

        Works also after the publication was closed. Raises `ValueError` after `abort`; `AeronError` where the driver
        has made padding of the claim, which was held for too long; `ForkedClientError`. Source: `BufferClaim.commit`.
        """
        if self._outcome == "committed":
            return
        self._check_open()
        self._finish("committed")
        if lib.aa_claim_commit(self._handle, self._flags, self._reserved_value) != lib.AA_OK:
            raise AeronError(
                "the message is lost: its claim was held for too long, and the driver has made padding of it "
                "(publication_unblock_timeout)"
            )

    def abort(self) -> None:
        """Gives the claim up: subscribers pass over it. Again it does nothing.

        Raises `ValueError` after `commit`; `ForkedClientError`. Source: `BufferClaim.abort`.
        """
        if self._outcome == "aborted":
            return
        self._check_open()
        self._finish("aborted")
        lib.aa_claim_abort(self._handle)

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._outcome is None:
            if exc_type is None:
                self.commit()
            else:
                self.abort()

    def __del__(self) -> None:
        if self._outcome is None:
            # In a forked child it is the parent's to finish.
            with suppress(ForkedClientError):
                self.abort()

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"<BufferClaim of {self.length} bytes, {self._outcome or 'open'}>"

    def _check_open(self) -> None:
        self._control.check_process()
        if self._outcome is not None:
            raise ValueError(f"the claim is {self._outcome} already")

    def _finish(self, outcome: str) -> None:
        self._outcome = outcome
        # Something like a numpy array may still look through it.
        with suppress(BufferError):
            self._buffer.release()

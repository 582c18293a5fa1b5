"""The C core's files and errors, for the control path: what opens them, and the one translator of their results."""

from __future__ import annotations

import errno
import os
from typing import Any, NoReturn

from aeron_async._native import ffi, lib
from aeron_async.errors import (
    CncVersionError,
    CorruptFileError,
    DriverAccessError,
    DriverError,
    DriverNotRunningError,
    InsufficientStorageError,
)
from aeron_async.protocol.cnc import RING_BUFFER_TRAILER_LENGTH
from aeron_async.protocol.frames import PARTITION_COUNT


def check(code: int, error: Any) -> None:
    """Raises what `error` (`aa_error_t *`) tells where `code` is not AA_OK."""
    if code != lib.AA_OK:
        raise_for(error)


def raise_for(error: Any) -> NoReturn:
    """Raises the exception that stands for an `aa_error_t`."""
    text = ffi.string(error.text).decode(errors="replace")
    if error.code == lib.AA_NOT_READY:
        raise DriverNotRunningError(text)
    if error.code == lib.AA_VERSION:
        raise CncVersionError(text)
    if error.code == lib.AA_CORRUPT:
        raise CorruptFileError(text)
    if error.code == lib.AA_SYSTEM:
        if error.system in (errno.EACCES, errno.EPERM):
            raise DriverAccessError(error.system, f"{text}: {os.strerror(error.system)}")
        if error.system in (errno.ENOSPC, errno.EDQUOT):
            raise InsufficientStorageError(text)
        if error.system == errno.ENOMEM:
            raise MemoryError(text)
        raise OSError(error.system, f"{text}: {os.strerror(error.system)}")
    raise DriverError(text)


def open_log(path: str) -> Any:
    """Maps the log buffer at `path`; the mapping goes with the last object that uses it."""
    error = ffi.new("aa_error_t *")
    log = ffi.new("aa_log_t **")
    # As the driver wrote it, whatever the locale is.
    check(lib.aa_log_open(path.encode(errors="surrogateescape"), log, error), error)
    return ffi.gc(log[0], lib.aa_log_release)


def log_info(log: Any) -> Any:
    """The constants of a mapped log buffer (`aa_log_info_t`)."""
    info = ffi.new("aa_log_info_t *")
    lib.aa_log_info(log, info)
    return info


def log_terms(log: Any) -> memoryview:
    """The three terms of a mapped log buffer, read-only; it stays mapped as long as any view of them lives."""
    return pinned(lib.aa_log_terms(log), PARTITION_COUNT * log_info(log).term_length, log).toreadonly()


def address_of(handle: Any) -> int:
    """Where a handle of the C core points to: what `_speedups` takes it by."""
    return int(ffi.cast("uintptr_t", handle))


def pinned(data: Any, length: int, owner: Any) -> memoryview:
    """The bytes at `data`, a pointer; `owner`, and with it their mapping, lives as long as any view of them."""
    held = ffi.gc(data, lambda _, owner=owner: None)
    return memoryview(ffi.buffer(held, length))


class Cnc:
    """A mapped CnC file: the driver's control buffers and counters."""

    def __init__(self, path: str) -> None:
        """Maps `path`.

        Raises `DriverNotRunningError` where the file is absent or not yet initialised, `CncVersionError`,
        `CorruptFileError`, `DriverAccessError`.
        """
        error = ffi.new("aa_error_t *")
        cnc = ffi.new("aa_cnc_t **")
        check(lib.aa_cnc_open(os.fsencode(path), cnc, error), error)
        self.handle = ffi.gc(cnc[0], lib.aa_cnc_release)
        info = ffi.new("aa_cnc_info_t *")
        lib.aa_cnc_info(self.handle, info)
        self.client_liveness_timeout_ns: int = info.client_liveness_timeout_ns
        self.max_command_length: int = (info.to_driver_buffer_length - RING_BUFFER_TRAILER_LENGTH) // 8

    def driver_heartbeat(self) -> int:
        """Epoch milliseconds of the driver's last heartbeat; -1 once it has shut down."""
        return int(lib.aa_cnc_driver_heartbeat(self.handle))

    def next_correlation_id(self) -> int:
        """An id that no other command to this driver has."""
        return int(lib.aa_cnc_next_correlation_id(self.handle))

    def send(self, type_id: int, command: bytes) -> bool:
        """Writes a command of at most `max_command_length` bytes to the to-driver buffer; False without room now."""
        return bool(lib.aa_cnc_send(self.handle, type_id, command, len(command)) == lib.AA_OK)

    def client_heartbeat(self, client_id: int, now_ms: int) -> bool:
        """Sets the client's heartbeat counter; False where the driver has none for it."""
        return bool(lib.aa_cnc_client_heartbeat(self.handle, client_id, now_ms))

    def client_label(self, client_id: int, text: str) -> bool:
        """Appends `text` to the label of the client's heartbeat counter; False where the driver has none for it."""
        encoded = text.encode()
        return bool(lib.aa_cnc_client_label(self.handle, client_id, encoded, len(encoded)))


class Broadcast:
    """The client's place in the to-clients broadcast."""

    def __init__(self, cnc: Cnc) -> None:
        handle = lib.aa_broadcast_open(cnc.handle)
        if handle == ffi.NULL:
            raise MemoryError("no memory for a broadcast receiver")
        self.handle = ffi.gc(handle, lib.aa_broadcast_release)
        self._record = ffi.new("uint8_t[]", lib.aa_broadcast_max_record_length(self.handle))
        self._type_id = ffi.new("int32_t *")

    def receive(self) -> tuple[int, bytes] | None:
        """The next record's type id and content, or None.

        Raises `Lapped` where the driver has overwritten what was not read, `CorruptFileError`.
        """
        length = lib.aa_broadcast_receive(self.handle, self._type_id, self._record, len(self._record))
        if length >= 0:
            return self._type_id[0], bytes(ffi.buffer(self._record, length))
        if length == lib.AA_NOTHING:
            return None
        if length == lib.AA_LAPPED:
            raise Lapped
        raise CorruptFileError("the driver's broadcast holds a record whose length cannot be true")


class Lapped(Exception):
    """The broadcast has gone past what this client had read."""

"""What a driver's directory says of the driver that serves it. Reads files, maps nothing."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any

from aeron_async.protocol.cnc import (
    CNC_FILE,
    COUNTER_METADATA_LENGTH,
    COUNTER_VALUE_LENGTH,
    METADATA_LENGTH,
    RING_BUFFER_CONSUMER_HEARTBEAT_OFFSET,
    RING_BUFFER_TRAILER_LENGTH,
    CncMetadata,
    SemanticVersion,
    decode_counter,
)
from aeron_async.protocol.counter_types import CounterType, SystemCounter
from aeron_async.protocol.records import MalformedRecord, align

__all__ = ["CncReader", "Observation", "ServedDirectory"]

# The driver of ours that serves a directory holds a lock on this file in it.
_LOCK_FILE = "aeron-async.lock"
_INT64 = Struct("<q")
_ERROR_HEADER = Struct("<iiqq")


@dataclass(frozen=True, slots=True)
class Observation:
    """A distinct error that the driver has observed."""

    offset: int
    count: int
    first_timestamp: float
    last_timestamp: float
    description: str


class CncReader:
    """The CnC file of one run of a driver. Raises `MalformedRecord` for what cannot be true."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.metadata = CncMetadata.decode(self._read(0, METADATA_LENGTH))
        if self.metadata.cnc_version != 0:
            self.metadata.check(os.fstat(fd).st_size)

    @classmethod
    def open(cls, aeron_dir: Path) -> CncReader:
        """Opens the file in `aeron_dir`. Raises `OSError` and `MalformedRecord` where that is not possible."""
        fd = os.open(aeron_dir / CNC_FILE, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return cls(fd)
        except BaseException:
            os.close(fd)
            raise

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)

    @property
    def is_ready(self) -> bool:
        """Whether the driver has written all of the metadata."""
        return self.metadata.cnc_version != 0

    def heartbeat_age(self) -> float:
        """Seconds since the driver's last heartbeat; since the epoch where it has said that it ends."""
        trailer = self.metadata.to_clients_buffer_offset - RING_BUFFER_TRAILER_LENGTH
        (heartbeat,) = self._unpack(_INT64, trailer + RING_BUFFER_CONSUMER_HEARTBEAT_OFFSET)
        return float(time.time() - heartbeat / 1000)

    def aeron_version(self) -> str:
        """The driver's version of Aeron, "" where it does not say."""
        records = SystemCounter.AERON_VERSION + 1
        counter = decode_counter(
            self._read(self.metadata.counters_metadata_buffer_offset, records * COUNTER_METADATA_LENGTH),
            self._read(self.metadata.counters_values_buffer_offset, records * COUNTER_VALUE_LENGTH),
            SystemCounter.AERON_VERSION,
        )
        if counter is None or counter.type_id != CounterType.SYSTEM or counter.value == 0:
            return ""
        return str(SemanticVersion.unpack(counter.value))

    def errors(self) -> Iterator[Observation]:
        """The distinct errors that the driver has observed, in the order in which it first did."""
        base, end = self.metadata.error_log_buffer_offset, self.metadata.error_log_buffer_length
        offset = 0
        while offset + _ERROR_HEADER.size <= end:
            length, count, last, first = self._unpack(_ERROR_HEADER, base + offset)
            if length == 0:
                return
            if not _ERROR_HEADER.size <= length <= end - offset:
                raise MalformedRecord(f"the error log holds a record of {length} bytes at {offset}")
            text = self._read(base + offset + _ERROR_HEADER.size, length - _ERROR_HEADER.size)
            yield Observation(offset, count, first / 1000, last / 1000, text.decode(errors="replace"))
            offset += align(length, 8)

    def _unpack(self, layout: Struct, offset: int) -> tuple[Any, ...]:
        return layout.unpack(self._read(offset, layout.size))

    def _read(self, offset: int, length: int) -> bytes:
        data = os.pread(self._fd, length, offset)
        if len(data) < length:
            raise MalformedRecord(f"{CNC_FILE} ends before {offset + length}")
        return data


class ServedDirectory:
    """One run of a driver of ours in a directory, seen by the lock that it holds there."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def open(cls, aeron_dir: Path) -> ServedDirectory | None:
        """The run that is ready in `aeron_dir`, or None."""
        try:
            served = cls(os.open(aeron_dir / _LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            return None
        if served.is_alive():
            return served
        served.close()
        return None

    def is_alive(self) -> bool:
        """Whether the driver still runs."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._fd, fcntl.LOCK_UN)
        return False

    def close(self) -> None:
        """Stops looking."""
        os.close(self._fd)

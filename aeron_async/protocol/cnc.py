"""The command-and-control file `cnc.dat`: how a driver and its clients share memory.

```
0                  metadata, padded to 128 bytes
128                to-driver buffer: a ring buffer of commands, and its trailer
.                  to-clients buffer: a broadcast of responses, and its trailer
.                  counters metadata buffer: a record of 512 bytes for each counter
.                  counters values buffer: a record of 128 bytes for each counter
.                  error log buffer
```
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING

from aeron_async.protocol.records import MalformedRecord, Record, unpack

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = [
    "BROADCAST_LATEST_OFFSET",
    "BROADCAST_TAIL_INTENT_OFFSET",
    "BROADCAST_TAIL_OFFSET",
    "BROADCAST_TRAILER_LENGTH",
    "CNC_FILE",
    "CNC_VERSION",
    "COUNTER_KEY_OFFSET",
    "COUNTER_LABEL_LENGTH_OFFSET",
    "COUNTER_LABEL_OFFSET",
    "COUNTER_MAX_KEY_LENGTH",
    "COUNTER_MAX_LABEL_LENGTH",
    "COUNTER_METADATA_LENGTH",
    "COUNTER_RECORD_ALLOCATED",
    "COUNTER_RECORD_RECLAIMED",
    "COUNTER_RECORD_UNUSED",
    "COUNTER_VALUE_LENGTH",
    "METADATA_LENGTH",
    "RECORD_ALIGNMENT",
    "RECORD_HEADER_LENGTH",
    "RING_BUFFER_CONSUMER_HEARTBEAT_OFFSET",
    "RING_BUFFER_CORRELATION_COUNTER_OFFSET",
    "RING_BUFFER_HEAD_CACHE_OFFSET",
    "RING_BUFFER_HEAD_OFFSET",
    "RING_BUFFER_TAIL_OFFSET",
    "RING_BUFFER_TRAILER_LENGTH",
    "CncMetadata",
    "CounterRecord",
    "SemanticVersion",
    "decode_counter",
    "read_cnc",
]

CNC_FILE = "cnc.dat"
METADATA_LENGTH = 128

RECORD_HEADER_LENGTH = 8
"""Before each record of the ring buffer and of the broadcast: int32 length, header included, and int32 type id."""
RECORD_ALIGNMENT = 8

# Offsets into the ring buffer's trailer, which is the end of its buffer.
RING_BUFFER_TAIL_OFFSET = 128
RING_BUFFER_HEAD_CACHE_OFFSET = 256
RING_BUFFER_HEAD_OFFSET = 384
RING_BUFFER_CORRELATION_COUNTER_OFFSET = 512
RING_BUFFER_CONSUMER_HEARTBEAT_OFFSET = 640
RING_BUFFER_TRAILER_LENGTH = 768

# Offsets into the broadcast's trailer, which is the end of its buffer.
BROADCAST_TAIL_INTENT_OFFSET = 0
BROADCAST_TAIL_OFFSET = 8
BROADCAST_LATEST_OFFSET = 16
BROADCAST_TRAILER_LENGTH = 128

COUNTER_VALUE_LENGTH = 128
COUNTER_METADATA_LENGTH = 512
COUNTER_KEY_OFFSET = 16
COUNTER_MAX_KEY_LENGTH = 112
COUNTER_LABEL_LENGTH_OFFSET = 128
COUNTER_LABEL_OFFSET = 132
COUNTER_MAX_LABEL_LENGTH = 380
COUNTER_RECORD_RECLAIMED = -1
COUNTER_RECORD_UNUSED = 0
COUNTER_RECORD_ALLOCATED = 1


@dataclass(frozen=True, slots=True, order=True)
class SemanticVersion:
    """A version as Aeron packs it into an int32: major, minor and patch, a byte each."""

    major: int
    minor: int
    patch: int

    @classmethod
    def unpack(cls, version: int) -> SemanticVersion:
        """Return the version that `version` packs."""
        return cls(version >> 16 & 0xFF, version >> 8 & 0xFF, version & 0xFF)

    def pack(self) -> int:
        """Return the version as one int."""
        return self.major << 16 | self.minor << 8 | self.patch

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


CNC_VERSION = SemanticVersion(0, 2, 0)
"""The layout that this module describes. A file of the same major version can be read."""


@dataclass(frozen=True, slots=True)
class CncMetadata(Record):
    """The start of `cnc.dat`. The driver writes the version last: while it is 0, the rest is not there yet.

    ```
    0   int32  version
    4   int32  to-driver buffer length, trailer included
    8   int32  to-clients buffer length, trailer included
    12  int32  counters metadata buffer length
    16  int32  counters values buffer length
    20  int32  error log buffer length
    24  int64  client liveness timeout, in nanoseconds
    32  int64  start timestamp, in milliseconds since the epoch
    40  int64  process id of the driver
    48  int32  page size of the driver's files
    ```
    """

    FIXED = Struct("<iiiiiiqqqi")

    cnc_version: int
    to_driver_buffer_length: int
    to_clients_buffer_length: int
    counters_metadata_buffer_length: int
    counters_values_buffer_length: int
    error_log_buffer_length: int
    client_liveness_timeout: int
    start_timestamp: int
    pid: int
    file_page_size: int

    @property
    def version(self) -> SemanticVersion:
        """The version of the file's layout."""
        return SemanticVersion.unpack(self.cnc_version)

    @property
    def is_compatible(self) -> bool:
        """Whether a client of `CNC_VERSION` can read the file."""
        return self.cnc_version != 0 and self.version.major == CNC_VERSION.major

    @property
    def to_driver_buffer_offset(self) -> int:
        """Where the to-driver buffer starts."""
        return METADATA_LENGTH

    @property
    def to_clients_buffer_offset(self) -> int:
        """Where the to-clients buffer starts."""
        return self.to_driver_buffer_offset + self.to_driver_buffer_length

    @property
    def counters_metadata_buffer_offset(self) -> int:
        """Where the counters metadata buffer starts."""
        return self.to_clients_buffer_offset + self.to_clients_buffer_length

    @property
    def counters_values_buffer_offset(self) -> int:
        """Where the counters values buffer starts."""
        return self.counters_metadata_buffer_offset + self.counters_metadata_buffer_length

    @property
    def error_log_buffer_offset(self) -> int:
        """Where the error log buffer starts."""
        return self.counters_values_buffer_offset + self.counters_values_buffer_length

    @property
    def file_length(self) -> int:
        """How long the file is at least."""
        return self.error_log_buffer_offset + self.error_log_buffer_length

    @property
    def max_counter_id(self) -> int:
        """The highest counter id for which there is room."""
        return self.counters_values_buffer_length // COUNTER_VALUE_LENGTH - 1

    def check(self, file_length: int) -> None:
        """Raise `MalformedRecord` for lengths that cannot be true of a file of `file_length` bytes."""
        for name, length, trailer_length in (
            ("to-driver", self.to_driver_buffer_length, RING_BUFFER_TRAILER_LENGTH),
            ("to-clients", self.to_clients_buffer_length, BROADCAST_TRAILER_LENGTH),
        ):
            if length <= trailer_length or (length - trailer_length).bit_count() != 1:
                raise MalformedRecord(f"{name} buffer is not a power of two and a trailer: {length} bytes")
        if self.counters_values_buffer_length < 0 or self.error_log_buffer_length < 0:
            raise MalformedRecord(f"negative length in {self}")
        metadata_needed = (self.max_counter_id + 1) * COUNTER_METADATA_LENGTH
        if self.counters_metadata_buffer_length < metadata_needed:
            raise MalformedRecord(
                f"counters metadata buffer is too short: {self.counters_metadata_buffer_length} bytes, "
                f"needs {metadata_needed}"
            )
        if file_length < self.file_length:
            raise MalformedRecord(f"{CNC_FILE} is too short: {file_length} bytes, needs {self.file_length}")


def read_cnc(buffer: ReadableBuffer) -> CncMetadata:
    """Read and check the metadata of a whole `cnc.dat`.

    Raises `MalformedRecord` for a file that is too short or has lengths that cannot be true. The version is the
    caller's to look at: see `CncMetadata.is_compatible`.
    """
    with memoryview(buffer) as view:
        metadata = CncMetadata.decode(view)
        metadata.check(len(view))
    return metadata


@dataclass(frozen=True, slots=True)
class CounterRecord:
    """A counter, as it stands in the two counters buffers.

    ```
    metadata, 512 bytes                       values, 128 bytes
    0    int32  state                         0   int64  value
    4    int32  type id                       8   int64  registration id
    8    int64  free for reuse deadline       16  int64  owner id (the client)
    16   bytes  key (112)                     24  int64  reference id
    128  int32  label length
    132  text   label (380)
    ```
    """

    counter_id: int
    state: int
    type_id: int
    free_for_reuse_deadline: int
    """In milliseconds since the epoch."""
    key: bytes
    label: str
    value: int
    registration_id: int
    owner_id: int
    reference_id: int


_COUNTER_METADATA = Struct(f"<iiq{COUNTER_MAX_KEY_LENGTH}si")
_COUNTER_VALUE = Struct("<qqqq")


def decode_counter(
    metadata_buffer: ReadableBuffer, values_buffer: ReadableBuffer, counter_id: int
) -> CounterRecord | None:
    """Read a counter from the two counters buffers; None where no counter has this id.

    Raises `MalformedRecord` for an id that is out of range or a label that is longer than its room.
    """
    if counter_id < 0:
        raise MalformedRecord(f"counter id is negative: {counter_id}")
    name = f"counter {counter_id}"
    with memoryview(metadata_buffer) as metadata, memoryview(values_buffer) as values:
        offset = counter_id * COUNTER_METADATA_LENGTH
        state, type_id, deadline, key, label_length = unpack(_COUNTER_METADATA, metadata, offset, name)
        if state == COUNTER_RECORD_UNUSED:
            return None
        if not 0 <= label_length <= COUNTER_MAX_LABEL_LENGTH:
            raise MalformedRecord(f"{name} has a label of {label_length} bytes")
        label_offset = offset + COUNTER_LABEL_OFFSET
        (label,) = unpack(Struct(f"{label_length}s"), metadata, label_offset, name)
        return CounterRecord(
            counter_id,
            state,
            type_id,
            deadline,
            key,
            label.decode(errors="replace"),
            *unpack(_COUNTER_VALUE, values, counter_id * COUNTER_VALUE_LENGTH, name),
        )

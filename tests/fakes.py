"""The driver's end of shared memory, for unit tests: a CnC file and log buffers, written as a driver writes them.

Nothing here decides anything: a test says what the driver does.
"""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from aeron_async._wake_counters import WAKE_COUNTER_TYPE_ID
from aeron_async.protocol.cnc import (
    BROADCAST_LATEST_OFFSET,
    BROADCAST_TAIL_INTENT_OFFSET,
    BROADCAST_TAIL_OFFSET,
    BROADCAST_TRAILER_LENGTH,
    CNC_FILE,
    CNC_VERSION,
    COUNTER_KEY_OFFSET,
    COUNTER_LABEL_LENGTH_OFFSET,
    COUNTER_LABEL_OFFSET,
    COUNTER_MAX_KEY_LENGTH,
    COUNTER_MAX_LABEL_LENGTH,
    COUNTER_METADATA_LENGTH,
    COUNTER_RECORD_ALLOCATED,
    COUNTER_RECORD_RECLAIMED,
    COUNTER_RECORD_UNUSED,
    COUNTER_VALUE_LENGTH,
    RECORD_ALIGNMENT,
    RECORD_HEADER_LENGTH,
    RING_BUFFER_CONSUMER_HEARTBEAT_OFFSET,
    RING_BUFFER_CORRELATION_COUNTER_OFFSET,
    RING_BUFFER_HEAD_OFFSET,
    RING_BUFFER_TRAILER_LENGTH,
    CncMetadata,
)
from aeron_async.protocol.commands import AddCounter, Command, RemoveCounter, decode_command
from aeron_async.protocol.frames import (
    DATA_HEADER_LENGTH,
    FRAME_ALIGNMENT,
    PARTITION_COUNT,
    TERM_MIN_LENGTH,
    DataHeader,
    FrameFlags,
    FrameType,
    compute_aligned_frame_length,
    compute_fragmented_length,
    compute_term_id,
    compute_term_offset,
    partition_index,
    position_bits_to_shift,
)
from aeron_async.protocol.records import align
from aeron_async.protocol.responses import Response

PADDING_TYPE_ID = -1
MAX_INT64 = (1 << 63) - 1


class SharedFile:
    """A file mapped for writing, with its aligned words at hand: storing one of those is a single store."""

    def __init__(self, path: Path, length: int) -> None:
        self.path = path
        with path.open("w+b") as file:
            file.truncate(length)
            self.memory = mmap.mmap(file.fileno(), length)
        self._view = memoryview(self.memory)
        self._int32s = self._view.cast("i")
        self._int64s = self._view.cast("q")

    def int32(self, offset: int) -> int:
        return self._int32s[offset // 4]

    def put_int32(self, offset: int, value: int) -> None:
        self._int32s[offset // 4] = value

    def int64(self, offset: int) -> int:
        return self._int64s[offset // 8]

    def put_int64(self, offset: int, value: int) -> None:
        self._int64s[offset // 8] = value

    def read(self, offset: int, length: int) -> bytes:
        return self.memory[offset : offset + length]

    def write(self, offset: int, content: bytes) -> None:
        self.memory[offset : offset + len(content)] = content

    def close(self) -> None:
        for view in (self._int32s, self._int64s, self._view):
            view.release()
        self.memory.close()


class FakeCounter:
    """One counter of a `FakeDriver`."""

    def __init__(self, cnc: SharedFile, id: int, metadata_offset: int, value_offset: int) -> None:
        self.id = id
        self._cnc = cnc
        self._metadata = metadata_offset
        self._value = value_offset

    @property
    def value(self) -> int:
        return self._cnc.int64(self._value)

    @value.setter
    def value(self, value: int) -> None:
        self._cnc.put_int64(self._value, value)

    @property
    def label(self) -> str:
        length = self._cnc.int32(self._metadata + COUNTER_LABEL_LENGTH_OFFSET)
        return self._cnc.read(self._metadata + COUNTER_LABEL_OFFSET, length).decode()

    @property
    def state(self) -> int:
        return self._cnc.int32(self._metadata)

    def put_label_length(self, length: int) -> None:
        self._cnc.put_int32(self._metadata + COUNTER_LABEL_LENGTH_OFFSET, length)

    def put_label(self, label: bytes) -> None:
        self._cnc.write(self._metadata + COUNTER_LABEL_OFFSET, label)

    def free(self) -> None:
        """The driver takes the counter back; its id may be used again."""
        self._cnc.put_int32(self._metadata, COUNTER_RECORD_RECLAIMED)

    def allocate(
        self, type_id: int, key: bytes, label: str, registration_id: int, owner_id: int, reference_id: int, value: int
    ) -> None:
        text = label.encode()
        assert len(key) <= COUNTER_MAX_KEY_LENGTH
        assert len(text) <= COUNTER_MAX_LABEL_LENGTH
        for index, content in enumerate((value, registration_id, owner_id, reference_id)):
            self._cnc.put_int64(self._value + 8 * index, content)
        self._cnc.put_int32(self._metadata + 4, type_id)
        self._cnc.put_int64(self._metadata + 8, MAX_INT64)
        self._cnc.write(self._metadata + COUNTER_KEY_OFFSET, key.ljust(COUNTER_MAX_KEY_LENGTH, b"\0"))
        self.put_label(text)
        self.put_label_length(len(text))
        self._cnc.put_int32(self._metadata, COUNTER_RECORD_ALLOCATED)


class FakeDriver:
    """A driver's directory: its CnC file, the counters in it, and the log buffers beside it."""

    def __init__(
        self,
        aeron_dir: Path,
        *,
        to_driver_capacity: int = 4096,
        to_clients_capacity: int = 8192,
        counter_count: int = 32,
        client_liveness_timeout_ns: int = 10_000_000_000,
        first_correlation_id: int = 1000,
    ) -> None:
        """`first_correlation_id` lies past all counter ids, so that a mix-up of the two does not go unseen."""
        self.aeron_dir = aeron_dir
        self.wake_commands: list[Command] = []
        self._logs: list[FakeLog] = []
        metadata = CncMetadata(
            cnc_version=0,
            to_driver_buffer_length=to_driver_capacity + RING_BUFFER_TRAILER_LENGTH,
            to_clients_buffer_length=to_clients_capacity + BROADCAST_TRAILER_LENGTH,
            counters_metadata_buffer_length=counter_count * COUNTER_METADATA_LENGTH,
            counters_values_buffer_length=counter_count * COUNTER_VALUE_LENGTH,
            error_log_buffer_length=1024,
            client_liveness_timeout=client_liveness_timeout_ns,
            start_timestamp=1_700_000_000_000,
            pid=4711,
            file_page_size=4096,
        )
        self._metadata = metadata
        self._ring_capacity = to_driver_capacity
        self._ring_trailer = metadata.to_driver_buffer_offset + to_driver_capacity
        self._broadcast_capacity = to_clients_capacity
        self._broadcast_trailer = metadata.to_clients_buffer_offset + to_clients_capacity
        self._cnc = SharedFile(aeron_dir / CNC_FILE, metadata.file_length)
        self._cnc.write(0, metadata.encode())
        self._cnc.put_int64(self._ring_trailer + RING_BUFFER_CORRELATION_COUNTER_OFFSET, first_correlation_id)
        self.heartbeat = metadata.start_timestamp
        self.put_version(CNC_VERSION.pack())

    @property
    def cnc_path(self) -> str:
        return str(self._cnc.path)

    @property
    def heartbeat(self) -> int:
        """Epoch milliseconds; -1 once shut down."""
        return self._cnc.int64(self._ring_trailer + RING_BUFFER_CONSUMER_HEARTBEAT_OFFSET)

    @heartbeat.setter
    def heartbeat(self, epoch_ms: int) -> None:
        self._cnc.put_int64(self._ring_trailer + RING_BUFFER_CONSUMER_HEARTBEAT_OFFSET, epoch_ms)

    def beat(self) -> None:
        """Sets the heartbeat to the time of the system."""
        self.heartbeat = time.time_ns() // 1_000_000

    def put_version(self, version: int) -> None:
        self._cnc.put_int32(0, version)

    def receive(self) -> list[Command]:
        """Takes all commands out of the to-driver buffer, in order.

        Those for wake counters come whenever a reader parks for the first time: they go to `wake_commands`.
        """
        received: list[Command] = []
        while (record := self._receive_one()) is not None:
            type_id, content = record
            if type_id != PADDING_TYPE_ID:
                command = decode_command(type_id, content)
                assert command is not None, f"a client sent a command of type {type_id:#x}"
                (self.wake_commands if self._is_for_wake_counter(command) else received).append(command)
        return received

    def _is_for_wake_counter(self, command: Command) -> bool:
        if isinstance(command, RemoveCounter):
            added = {added.correlation_id for added in self.wake_commands if isinstance(added, AddCounter)}
            return command.registration_id in added
        return isinstance(command, AddCounter) and command.type_id == WAKE_COUNTER_TYPE_ID

    def _receive_one(self) -> tuple[int, bytes] | None:
        head = self._cnc.int64(self._ring_trailer + RING_BUFFER_HEAD_OFFSET)
        offset = self._metadata.to_driver_buffer_offset + head % self._ring_capacity
        length = self._cnc.int32(offset)
        if length <= 0:
            return None
        record = (
            self._cnc.int32(offset + 4),
            self._cnc.read(offset + RECORD_HEADER_LENGTH, length - RECORD_HEADER_LENGTH),
        )
        aligned = align(length, RECORD_ALIGNMENT)
        self._cnc.write(offset, bytes(aligned))
        self._cnc.put_int64(self._ring_trailer + RING_BUFFER_HEAD_OFFSET, head + aligned)
        return record

    def send(self, response: Response) -> None:
        """Broadcasts a response to all clients."""
        self.transmit(response.TYPE_ID, response.encode())

    def transmit(self, type_id: int, content: bytes) -> None:
        """Broadcasts a record, whatever is in it."""
        length = RECORD_HEADER_LENGTH + len(content)
        aligned = align(length, RECORD_ALIGNMENT)
        assert len(content) <= self._broadcast_capacity // 8
        tail = self._cnc.int64(self._broadcast_trailer + BROADCAST_TAIL_OFFSET)
        to_end = self._broadcast_capacity - tail % self._broadcast_capacity
        padding = to_end if to_end < aligned else 0
        self._cnc.put_int64(self._broadcast_trailer + BROADCAST_TAIL_INTENT_OFFSET, tail + padding + aligned)
        if padding:
            self._write_record(tail, padding, PADDING_TYPE_ID, b"")
            tail += padding
        self._write_record(tail, length, type_id, content)
        self._cnc.put_int64(self._broadcast_trailer + BROADCAST_LATEST_OFFSET, tail)
        self._cnc.put_int64(self._broadcast_trailer + BROADCAST_TAIL_OFFSET, tail + aligned)

    def corrupt_next_length(self, length: int) -> None:
        """Broadcasts a record that claims to be `length` bytes long."""
        tail = self._cnc.int64(self._broadcast_trailer + BROADCAST_TAIL_OFFSET)
        self.transmit(1, b"")
        self._cnc.put_int32(self._metadata.to_clients_buffer_offset + tail % self._broadcast_capacity, length)

    def _write_record(self, position: int, length: int, type_id: int, content: bytes) -> None:
        offset = self._metadata.to_clients_buffer_offset + position % self._broadcast_capacity
        self._cnc.put_int32(offset, length)
        self._cnc.put_int32(offset + 4, type_id)
        self._cnc.write(offset + RECORD_HEADER_LENGTH, content)

    def allocate_counter(
        self,
        type_id: int,
        *,
        key: bytes = b"",
        label: str = "",
        registration_id: int = 0,
        owner_id: int = 0,
        reference_id: int = 0,
        value: int = 0,
    ) -> FakeCounter:
        """Allocates the first counter that was never used; a test reuses a freed one by its own `allocate`."""
        counters = (self.counter(id) for id in range(self._metadata.max_counter_id + 1))
        counter = next(counter for counter in counters if counter.state == COUNTER_RECORD_UNUSED)
        counter.allocate(type_id, key, label, registration_id, owner_id, reference_id, value)
        return counter

    def counter(self, id: int) -> FakeCounter:
        return FakeCounter(
            self._cnc,
            id,
            self._metadata.counters_metadata_buffer_offset + id * COUNTER_METADATA_LENGTH,
            self._metadata.counters_values_buffer_offset + id * COUNTER_VALUE_LENGTH,
        )

    def create_log(
        self,
        *,
        term_length: int = TERM_MIN_LENGTH,
        mtu_length: int = 1408,
        initial_term_id: int = 7,
        session_id: int = -3,
        stream_id: int = 10,
        position: int = 0,
    ) -> FakeLog:
        """Makes a log buffer whose stream starts, or goes on, at `position`."""
        path = self.aeron_dir / f"{len(self._logs)}.logbuffer"
        log = FakeLog(path, term_length, mtu_length, initial_term_id, session_id, stream_id, position)
        self._logs.append(log)
        return log

    def close(self) -> None:
        for log in self._logs:
            log.close()
        self._cnc.close()


class Frame(NamedTuple):
    """A frame of a log, as its readers see it."""

    header: DataHeader
    payload: bytes


class FakeLog:
    """A log buffer, and the one publisher that appends to it where no native publication does."""

    METADATA_LENGTH = 4096
    ACTIVE_TERM_COUNT = 24
    END_OF_STREAM_POSITION = 128
    IS_CONNECTED = 136
    ACTIVE_TRANSPORT_COUNT = 140
    CONSTANTS = 256
    DEFAULT_HEADER = 320
    IS_PUBLICATION_REVOKED = 496

    def __init__(
        self,
        path: Path,
        term_length: int,
        mtu_length: int,
        initial_term_id: int,
        session_id: int,
        stream_id: int,
        position: int,
    ) -> None:
        self.term_length = term_length
        self.mtu_length = mtu_length
        self.max_payload_length = mtu_length - DATA_HEADER_LENGTH
        self.initial_term_id = initial_term_id
        self.session_id = session_id
        self.stream_id = stream_id
        self.position = position
        """Where the next frame of `append` goes."""
        self._bits = position_bits_to_shift(term_length)
        self._metadata = PARTITION_COUNT * term_length
        self._file = SharedFile(path, self._metadata + self.METADATA_LENGTH)
        self._file.write(
            self._metadata + self.CONSTANTS,
            struct.pack("<qiiiii", 0, initial_term_id, DATA_HEADER_LENGTH, mtu_length, term_length, 4096),
        )
        self._file.write(
            self._metadata + self.DEFAULT_HEADER, self._header(0, 0, FrameType.DATA, FrameFlags(0), 0).encode()
        )
        self.end_of_stream_position = MAX_INT64
        self.is_connected = True
        self._put_tail(0)
        for ahead in (1, 2):
            # A term that was not begun has the tail of the one three before it.
            self._put_tail_of(position + (ahead - PARTITION_COUNT) * term_length, 0)

    @property
    def path(self) -> str:
        return str(self._file.path)

    @property
    def is_connected(self) -> bool:
        return bool(self._file.int32(self._metadata + self.IS_CONNECTED))

    @is_connected.setter
    def is_connected(self, connected: bool) -> None:
        self._file.put_int32(self._metadata + self.IS_CONNECTED, connected)

    @property
    def end_of_stream_position(self) -> int:
        return self._file.int64(self._metadata + self.END_OF_STREAM_POSITION)

    @end_of_stream_position.setter
    def end_of_stream_position(self, position: int) -> None:
        self._file.put_int64(self._metadata + self.END_OF_STREAM_POSITION, position)

    def set_active_transport_count(self, count: int) -> None:
        self._file.put_int32(self._metadata + self.ACTIVE_TRANSPORT_COUNT, count)

    def revoke(self) -> None:
        self._file.write(self._metadata + self.IS_PUBLICATION_REVOKED, b"\1")

    def put_constant(self, index: int, value: int) -> None:
        """Overwrites one of: initial term id, header length, MTU, term length, page size."""
        self._file.put_int32(self._metadata + self.CONSTANTS + 8 + 4 * index, value)

    def append(self, payload: bytes, *, reserved_value: int = 0) -> int:
        """Appends a message, fragmented where it must be; the position after it."""
        self.begin_term_for(len(payload))
        rest = payload
        flags = FrameFlags.BEGIN
        while True:
            fragment, rest = rest[: self.max_payload_length], rest[self.max_payload_length :]
            if not rest:
                flags |= FrameFlags.END
            self.append_frame(fragment, flags, reserved_value=reserved_value)
            if not rest:
                return self.position
            flags = FrameFlags(0)

    def begin_term_for(self, message_length: int) -> None:
        """Pads the term and turns to the next one where a message of this length has no room in it."""
        needed = compute_fragmented_length(message_length, self.max_payload_length) or DATA_HEADER_LENGTH
        room = self.term_length - compute_term_offset(self.position, self._bits)
        if needed > room:
            self._append_padding(room)

    def append_frame(self, payload: bytes, flags: FrameFlags, *, reserved_value: int = 0) -> int:
        """Appends one frame; the position after it."""
        length = DATA_HEADER_LENGTH + len(payload)
        self._commit(length, FrameType.DATA, flags, reserved_value, payload)
        return self._advance(compute_aligned_frame_length(len(payload)))

    def _append_padding(self, length: int) -> None:
        self._commit(length, FrameType.PAD, FrameFlags.UNFRAGMENTED, 0, b"")
        self._advance(length)

    def _commit(self, length: int, type: FrameType, flags: FrameFlags, reserved_value: int, payload: bytes) -> None:
        header = self._header(length, self.position, type, flags, reserved_value).encode()
        offset = self._offset(self.position)
        self._file.write(offset + 4, header[4:] + payload)
        self._file.put_int32(offset, length)

    def _advance(self, length: int) -> int:
        self._put_tail(length)
        before, self.position = self.position, self.position + length
        if self.position >> self._bits != before >> self._bits:
            # The reader finds zeros where it expects the next frame; the driver cleans the term ahead of it.
            dirty = (partition_index(self.position, self._bits) + 1) % PARTITION_COUNT
            self._file.write(dirty * self.term_length, bytes(self.term_length))
            self._put_tail(0)
        return self.position

    def _put_tail(self, length: int) -> None:
        self._put_tail_of(self.position, compute_term_offset(self.position, self._bits) + length)
        self._file.put_int32(self._metadata + self.ACTIVE_TERM_COUNT, self.position >> self._bits)

    def _put_tail_of(self, position: int, offset: int) -> None:
        term_id = compute_term_id(position, self._bits, self.initial_term_id)
        self._file.put_int64(self._metadata + 8 * partition_index(position, self._bits), term_id << 32 | offset)

    def put_frame_length(self, position: int, length: int) -> None:
        """Overwrites the length of the frame at `position`."""
        self._file.put_int32(self._offset(position), length)

    def frames(self, position: int = 0) -> Iterator[Frame]:
        """The frames that are committed from `position` on, padding too."""
        while (length := self._file.int32(offset := self._offset(position))) > 0:
            header = DataHeader.decode(self._file.read(offset, DATA_HEADER_LENGTH))
            is_padding = header.type == FrameType.PAD
            yield Frame(header, b"" if is_padding else self._file.read(offset, length)[DATA_HEADER_LENGTH:])
            position += align(length, FRAME_ALIGNMENT)

    def messages(self, position: int = 0) -> list[bytes]:
        """The whole messages that are committed from `position` on."""
        messages = []
        message = b""
        for header, payload in self.frames(position):
            if header.type != FrameType.PAD:
                message = payload if header.flags & FrameFlags.BEGIN else message + payload
                if header.flags & FrameFlags.END:
                    messages.append(message)
        return messages

    def _offset(self, position: int) -> int:
        return partition_index(position, self._bits) * self.term_length + compute_term_offset(position, self._bits)

    def _header(
        self, length: int, position: int, type: FrameType, flags: FrameFlags, reserved_value: int
    ) -> DataHeader:
        return DataHeader(
            frame_length=length,
            version=0,
            flags=flags,
            type=type,
            term_offset=compute_term_offset(position, self._bits),
            session_id=self.session_id,
            stream_id=self.stream_id,
            term_id=compute_term_id(position, self._bits, self.initial_term_id),
            reserved_value=reserved_value,
        )

    def close(self) -> None:
        self._file.close()

"""Our codecs against bytes that Aeron's own Java classes wrote: `java/GoldenVectors.java` makes them at test time."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from aeron_async.protocol import cnc, commands, frames, network_frames, responses
from aeron_async.protocol.counter_types import CounterType, SystemCounter
from aeron_async.protocol.error_codes import ChannelStatus, ErrorCode
from aeron_async.protocol.records import Record
from tests import java

pytestmark = pytest.mark.timeout(600)

GENERATOR = Path(__file__).parent / "java" / "GoldenVectors.java"

COMMANDS = [
    commands.AddCounter,
    commands.AddDestination,
    commands.AddExclusivePublication,
    commands.AddPublication,
    commands.AddRcvDestination,
    commands.AddStaticCounter,
    commands.AddSubscription,
    commands.ClientClose,
    commands.ClientKeepalive,
    commands.GetNextAvailableSessionId,
    commands.RejectImage,
    commands.RemoveCounter,
    commands.RemoveDestination,
    commands.RemoveDestinationById,
    commands.RemovePublication,
    commands.RemoveRcvDestination,
    commands.RemoveSubscription,
    commands.TerminateDriver,
]
RESPONSES = [
    responses.AvailableImage,
    responses.ClientTimeout,
    responses.CounterReady,
    responses.ErrorResponse,
    responses.ExclusivePublicationReady,
    responses.NextAvailableSessionId,
    responses.OperationSucceeded,
    responses.PublicationError,
    responses.PublicationReady,
    responses.StaticCounter,
    responses.SubscriptionReady,
    responses.UnavailableCounter,
    responses.UnavailableImage,
]
FRAMES = [
    frames.DataHeader,
    network_frames.ErrorFrame,
    network_frames.Nak,
    network_frames.ResolutionEntryIpv4,
    network_frames.ResolutionEntryIpv6,
    network_frames.ResponseSetup,
    network_frames.RttMeasurement,
    network_frames.Setup,
    network_frames.StatusMessage,
    network_frames.TaggedStatusMessage,
]
RECORDS: list[type[Record]] = [*COMMANDS, *RESPONSES, *FRAMES]

EVENT_NAMES = {
    "OnAvailableImage": "AvailableImage",
    "OnClientTimeout": "ClientTimeout",
    "OnCounterReady": "CounterReady",
    "OnError": "ErrorResponse",
    "OnExclusivePublicationReady": "ExclusivePublicationReady",
    "OnNextAvailableSessionId": "NextAvailableSessionId",
    "OnOperationSuccess": "OperationSucceeded",
    "OnPublicationError": "PublicationError",
    "OnPublicationReady": "PublicationReady",
    "OnStaticCounter": "StaticCounter",
    "OnSubscriptionReady": "SubscriptionReady",
    "OnUnavailableCounter": "UnavailableCounter",
    "OnUnavailableImage": "UnavailableImage",
}


def from_hex(value: dict[str, Any]) -> Any:
    return bytes.fromhex(value["hex"]) if value.keys() == {"hex"} else value


@pytest.fixture(scope="module")
def golden() -> Any:
    command = java.java_command(GENERATOR)
    printed = subprocess.run(command, capture_output=True, timeout=120, check=True).stdout
    return json.loads(printed, object_hook=from_hex)


@pytest.fixture(scope="module")
def java_constants(golden: Any) -> Any:
    return golden["constants"]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_a_record_is_encoded_as_java_encodes_it(golden: Any, record: type[Record]) -> None:
    vectors = [vector for vector in golden["records"] if vector["record"] == record.__name__]
    assert len(vectors) >= 40
    for vector in vectors:
        # Of all records only a short RejectImage is padded: the C driver, other than Java's, ignores it unpadded.
        assert record(**vector["fields"]).encode() == vector["bytes"].ljust(record.MINIMUM_LENGTH, b"\0")


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_a_record_of_java_is_decoded_to_the_values_it_was_made_of(golden: Any, record: type[Record]) -> None:
    vectors = [vector for vector in golden["records"] if vector["record"] == record.__name__]
    assert len(vectors) >= 40
    for vector in vectors:
        assert record.decode(vector["bytes"]) == record(**vector["fields"])


def test_every_class_of_the_jar_has_vectors(golden: Any) -> None:
    with zipfile.ZipFile(java.aeron_jar()) as jar:
        in_jar = {
            name.removesuffix(".class").replace("/", ".")
            for name in jar.namelist()
            if re.fullmatch(r"io/aeron/(command|protocol)/\w+Flyweight\.class", name)
        }
    bases = {"io.aeron.command.RemoveMessageFlyweight", "io.aeron.protocol.HeaderFlyweight"}
    assert {vector["flyweight"] for vector in golden["records"]} == in_jar - bases
    assert {vector["record"] for vector in golden["records"]} == {record.__name__ for record in RECORDS}


def test_every_command_and_response_has_its_type_id(java_constants: Any) -> None:
    expected = {}
    for constant, type_id in java_constants["ControlProtocolEvents"].items():
        if not constant.startswith("CONTROL_PROTOCOL_"):
            name = constant.title().replace("_", "")
            expected[EVENT_NAMES.get(name, name)] = type_id
    assert {record.__name__: record.TYPE_ID for record in [*COMMANDS, *RESPONSES]} == expected


def test_every_type_id_is_decoded_to_its_class(golden: Any) -> None:
    for record in COMMANDS:
        vector = next(vector for vector in golden["records"] if vector["record"] == record.__name__)
        assert type(commands.decode_command(record.TYPE_ID, vector["bytes"])) is record
    for record in RESPONSES:
        vector = next(vector for vector in golden["records"] if vector["record"] == record.__name__)
        assert type(responses.decode_response(record.TYPE_ID, vector["bytes"])) is record


def test_error_codes_and_channel_states_are_those_of_java(java_constants: Any) -> None:
    assert {code.name: code.value for code in ErrorCode} == java_constants["ErrorCode"]
    states = java_constants["ChannelEndpointStatus"]
    assert {status.name: status.value for status in ChannelStatus} == {
        name: states[name] for name in ("ERRORED", "INITIALIZING", "ACTIVE", "CLOSING")
    }


def test_every_counter_type_of_java_is_named(java_constants: Any) -> None:
    of_java = {
        name.removeprefix("DRIVER_").removesuffix("_TYPE_ID").removesuffix("_COUNTER"): value
        for name, value in java_constants["AeronCounters"].items()
        if name.endswith("_TYPE_ID")
    }
    assert of_java.items() <= {(counter.name, counter.value) for counter in CounterType}


def test_every_system_counter_of_java_is_named(java_constants: Any) -> None:
    of_java = {
        name.removeprefix("SYSTEM_COUNTER_ID_"): value
        for name, value in java_constants["AeronCounters"].items()
        if name.startswith("SYSTEM_COUNTER_ID_")
    }
    of_java["NATIVE_RESOURCE_AGENT_PROXY_FAILS"] = of_java.pop("ASYNC_EXECUTOR_PROXY_FAILS")  # renamed since
    assert of_java.items() <= {(counter.name, counter.value) for counter in SystemCounter}


def test_frame_types_and_flags_are_those_of_java(java_constants: Any) -> None:
    types = {
        name.removeprefix("HDR_TYPE_"): value
        for name, value in java_constants["HeaderFlyweight"].items()
        if name.startswith("HDR_TYPE_")
    }
    # The C driver, whose numbers we take, swaps these two of the encrypted transport; it reads the type as signed.
    types["ATS_SETUP"], types["ATS_SM"] = types["ATS_SM"], types["ATS_SETUP"]
    types["EXT"] -= 1 << 16
    assert {frame_type.name: frame_type.value for frame_type in frames.FrameType} == types

    flags = java_constants["DataHeaderFlyweight"]
    assert [flags[f"{name}_FLAG"] for name in ("BEGIN", "END", "EOS", "REVOKED")] == [
        frames.FrameFlags.BEGIN,
        frames.FrameFlags.END,
        frames.FrameFlags.EOS,
        frames.FrameFlags.REVOKED,
    ]
    assert flags["BEGIN_AND_END_FLAGS"] == frames.FrameFlags.UNFRAGMENTED


def test_log_buffer_constants_are_those_of_java(java_constants: Any) -> None:
    log, frame = java_constants["LogBufferDescriptor"], java_constants["FrameDescriptor"]
    assert log["PARTITION_COUNT"] == frames.PARTITION_COUNT
    assert log["TERM_MIN_LENGTH"] == frames.TERM_MIN_LENGTH
    assert log["TERM_MAX_LENGTH"] == frames.TERM_MAX_LENGTH
    assert frame["FRAME_ALIGNMENT"] == frames.FRAME_ALIGNMENT
    assert frame["MAX_MESSAGE_LENGTH"] == frames.MAX_MESSAGE_LENGTH
    assert java_constants["DataHeaderFlyweight"]["HEADER_LENGTH"] == frames.DATA_HEADER_LENGTH
    assert java_constants["HeaderFlyweight"]["MIN_HEADER_LENGTH"] == frames.FRAME_HEADER_LENGTH


def test_positions_are_computed_as_java_does(golden: Any) -> None:
    for vector in golden["positions"]:
        bits = frames.position_bits_to_shift(vector["term_length"])
        assert bits == vector["bits_to_shift"]
        position = frames.compute_position(vector["term_id"], vector["term_offset"], bits, vector["initial_term_id"])
        assert position == vector["position"]
        assert frames.compute_term_id(position, bits, vector["initial_term_id"]) == vector["term_id"]
        assert frames.compute_term_offset(position, bits) == vector["term_offset"]
        assert frames.partition_index(position, bits) == vector["partition_index"]


def test_lengths_are_computed_as_java_does(golden: Any) -> None:
    for vector in golden["lengths"]:
        fragmented_length = frames.compute_fragmented_length(vector["length"], vector["max_payload_length"])
        assert fragmented_length == vector["fragmented_length"]
        assert frames.compute_max_message_length(vector["term_length"]) == vector["max_message_length"]


def test_cnc_metadata_is_that_of_java(golden: Any, java_constants: Any) -> None:
    vector = golden["cnc"]
    written = vector["bytes"]
    assert len(written) == cnc.METADATA_LENGTH
    metadata = cnc.CncMetadata.decode(written)
    expected = {name: value for name, value in vector.items() if name not in ("bytes", "file_length")}
    assert metadata == cnc.CncMetadata(**expected)
    assert metadata.encode() == written[: cnc.CncMetadata.FIXED.size]
    assert not any(written[cnc.CncMetadata.FIXED.size :])
    assert cnc.CNC_VERSION.pack() == java_constants["CncFileDescriptor"]["CNC_VERSION"]
    assert metadata.is_compatible
    assert cnc.read_cnc(written.ljust(vector["file_length"], b"\0")) == metadata


def test_trailers_of_the_cnc_buffers_are_those_of_java(java_constants: Any) -> None:
    ring, broadcast = java_constants["RingBufferDescriptor"], java_constants["BroadcastBufferDescriptor"]
    assert ring["TAIL_POSITION_OFFSET"] == cnc.RING_BUFFER_TAIL_OFFSET
    assert ring["HEAD_CACHE_POSITION_OFFSET"] == cnc.RING_BUFFER_HEAD_CACHE_OFFSET
    assert ring["HEAD_POSITION_OFFSET"] == cnc.RING_BUFFER_HEAD_OFFSET
    assert ring["CORRELATION_COUNTER_OFFSET"] == cnc.RING_BUFFER_CORRELATION_COUNTER_OFFSET
    assert ring["CONSUMER_HEARTBEAT_OFFSET"] == cnc.RING_BUFFER_CONSUMER_HEARTBEAT_OFFSET
    assert ring["TRAILER_LENGTH"] == cnc.RING_BUFFER_TRAILER_LENGTH
    assert broadcast["TAIL_INTENT_COUNTER_OFFSET"] == cnc.BROADCAST_TAIL_INTENT_OFFSET
    assert broadcast["TAIL_COUNTER_OFFSET"] == cnc.BROADCAST_TAIL_OFFSET
    assert broadcast["LATEST_COUNTER_OFFSET"] == cnc.BROADCAST_LATEST_OFFSET
    assert broadcast["TRAILER_LENGTH"] == cnc.BROADCAST_TRAILER_LENGTH


def test_counter_layout_is_that_of_java(java_constants: Any) -> None:
    reader = java_constants["CountersReader"]
    assert reader["COUNTER_LENGTH"] == cnc.COUNTER_VALUE_LENGTH
    assert reader["METADATA_LENGTH"] == cnc.COUNTER_METADATA_LENGTH
    assert reader["KEY_OFFSET"] == cnc.COUNTER_KEY_OFFSET
    assert reader["MAX_KEY_LENGTH"] == cnc.COUNTER_MAX_KEY_LENGTH
    assert reader["LABEL_OFFSET"] == cnc.COUNTER_LABEL_LENGTH_OFFSET
    assert reader["LABEL_OFFSET"] + 4 == cnc.COUNTER_LABEL_OFFSET
    assert reader["MAX_LABEL_LENGTH"] == cnc.COUNTER_MAX_LABEL_LENGTH
    assert reader["RECORD_UNUSED"] == cnc.COUNTER_RECORD_UNUSED
    assert reader["RECORD_ALLOCATED"] == cnc.COUNTER_RECORD_ALLOCATED
    assert reader["RECORD_RECLAIMED"] == cnc.COUNTER_RECORD_RECLAIMED


def test_counters_of_java_are_decoded(golden: Any) -> None:
    metadata, values = golden["counters"]["metadata"], golden["counters"]["values"]
    plain, full, freed, unused = (cnc.decode_counter(metadata, values, counter_id) for counter_id in range(4))

    assert plain is not None
    assert (plain.state, plain.type_id, plain.label) == (cnc.COUNTER_RECORD_ALLOCATED, 0, "bytes sent")
    assert plain.key == (7).to_bytes(4, "little").ljust(cnc.COUNTER_MAX_KEY_LENGTH, b"\0")
    assert plain.value == -5

    assert full is not None
    assert (full.type_id, full.key) == (20861, b"\xab" * cnc.COUNTER_MAX_KEY_LENGTH)
    assert full.label == "\N{GREEK CAPITAL LETTER OMEGA}" * 190
    assert (full.value, full.registration_id, full.owner_id, full.reference_id) == (2**63 - 1, 1001, 1002, 1003)

    assert freed is not None
    assert freed.state == cnc.COUNTER_RECORD_RECLAIMED
    assert unused is None

"""The frames that drivers exchange beside data (`io.aeron.protocol`). All integers are little-endian.

Clients never meet them in a log buffer: they are for tools that look at the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import ClassVar

from aeron_async.protocol.frames import FrameType
from aeron_async.protocol.records import TEXT, Record, VariableField

__all__ = [
    "ErrorFrame",
    "Nak",
    "NetworkFrame",
    "ResolutionEntryIpv4",
    "ResolutionEntryIpv6",
    "ResponseSetup",
    "RttMeasurement",
    "Setup",
    "StatusMessage",
    "TaggedStatusMessage",
]


@dataclass(frozen=True, slots=True)
class NetworkFrame(Record):
    """What every frame starts with.

    ```
    0   int32  frame length
    4   int8   version
    5   uint8  flags
    6   int16  type
    ```
    """

    FIXED = Struct("<ibBh")

    frame_length: int
    version: int
    flags: int
    type: int


@dataclass(frozen=True, slots=True)
class Setup(NetworkFrame):
    """A sender says which stream it sends, so that receivers can make an image of it.

    ```
    8   int32  term offset
    12  int32  session id
    16  int32  stream id
    20  int32  initial term id
    24  int32  active term id
    28  int32  term length
    32  int32  MTU
    36  int32  time to live
    ```
    """

    TYPE: ClassVar[FrameType] = FrameType.SETUP
    FLAG_SEND_RESPONSE: ClassVar[int] = 0x80
    FLAG_GROUP: ClassVar[int] = 0x40
    FIXED = Struct("<ibBhiiiiiiii")

    term_offset: int
    session_id: int
    stream_id: int
    initial_term_id: int
    active_term_id: int
    term_length: int
    mtu: int
    ttl: int


@dataclass(frozen=True, slots=True)
class Nak(NetworkFrame):
    """A receiver asks for a range that it misses.

    ```
    8   int32  session id
    12  int32  stream id
    16  int32  term id
    20  int32  term offset
    24  int32  length
    ```
    """

    TYPE: ClassVar[FrameType] = FrameType.NAK
    FIXED = Struct("<ibBhiiiii")

    session_id: int
    stream_id: int
    term_id: int
    term_offset: int
    length: int


@dataclass(frozen=True, slots=True)
class StatusMessage(NetworkFrame):
    """A receiver tells the sender how far it has consumed, and how much more it takes.

    ```
    8   int32  session id
    12  int32  stream id
    16  int32  consumption term id
    20  int32  consumption term offset
    24  int32  receiver window
    28  int64  receiver id
    ```
    """

    TYPE: ClassVar[FrameType] = FrameType.SM
    FLAG_SEND_SETUP: ClassVar[int] = 0x80
    FLAG_EOS: ClassVar[int] = 0x40
    FIXED = Struct("<ibBhiiiiiq")

    session_id: int
    stream_id: int
    consumption_term_id: int
    consumption_term_offset: int
    receiver_window: int
    receiver_id: int


@dataclass(frozen=True, slots=True)
class TaggedStatusMessage(StatusMessage):
    """A status message of a receiver with a group tag: its frame length, 44, tells it from one without.

    ```
    36  int64  group tag
    ```
    """

    FIXED = Struct("<ibBhiiiiiqq")

    group_tag: int


@dataclass(frozen=True, slots=True)
class ErrorFrame(NetworkFrame):
    """A receiver rejects an image.

    ```
    8   int32  session id
    12  int32  stream id
    16  int64  receiver id
    24  int64  group tag
    32  int32  error code
    36  int32  message length
    40  text   message
    ```
    """

    TYPE: ClassVar[FrameType] = FrameType.ERR
    FLAG_HAS_GROUP_TAG: ClassVar[int] = 0x08
    FIXED = Struct("<ibBhiiqqi")
    VARIABLE = (TEXT,)

    session_id: int
    stream_id: int
    receiver_id: int
    group_tag: int
    error_code: int
    error_message: str


@dataclass(frozen=True, slots=True)
class RttMeasurement(NetworkFrame):
    """A receiver measures the round trip to a sender, or a sender replies.

    ```
    8   int32  session id
    12  int32  stream id
    16  int64  echo timestamp, in nanoseconds
    24  int64  reception delta, in nanoseconds
    32  int64  receiver id
    ```
    """

    TYPE: ClassVar[FrameType] = FrameType.RTTM
    FLAG_REPLY: ClassVar[int] = 0x80
    FIXED = Struct("<ibBhiiqqq")

    session_id: int
    stream_id: int
    echo_timestamp: int
    reception_delta: int
    receiver_id: int


@dataclass(frozen=True, slots=True)
class ResponseSetup(NetworkFrame):
    """A response server tells the session id of the responses.

    ```
    8   int32  session id
    12  int32  stream id
    16  int32  response session id
    ```
    """

    TYPE: ClassVar[FrameType] = FrameType.RSP_SETUP
    FIXED = Struct("<ibBhiii")

    session_id: int
    stream_id: int
    response_session_id: int


_NAME = VariableField(Struct("<h"), TEXT.encode, TEXT.decode)


@dataclass(frozen=True, slots=True)
class ResolutionEntryIpv4(Record):
    """A name and its address, one of the entries that follow the header of a resolution frame (`FrameType.RES`).

    ```
    0   int8     type of the entry
    1   uint8    flags
    2   uint16   port
    4   int32    age, in milliseconds
    8   4 bytes  address
    12  int16    name length
    14  text     name; the next entry starts at a multiple of eight
    ```
    """

    TYPE: ClassVar[int] = 0x01
    FLAG_SELF: ClassVar[int] = 0x80
    FIXED = Struct("<bBHi4s")
    VARIABLE = (_NAME,)

    type: int
    flags: int
    udp_port: int
    age_in_ms: int
    address: bytes
    name: str


@dataclass(frozen=True, slots=True)
class ResolutionEntryIpv6(ResolutionEntryIpv4):
    """The same with an address of 16 bytes, so that the name's length is at 24 and the name at 26."""

    TYPE = 0x02
    FIXED = Struct("<bBHi16s")

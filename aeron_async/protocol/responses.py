"""The responses that the driver sends to all clients by its broadcast (`io.aeron.command`, types 0x0F01 to 0x0F0D).

All integers are little-endian. A response is for the client that knows its correlation id; the others pass over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from struct import Struct
from typing import TYPE_CHECKING, ClassVar

from aeron_async.protocol.records import PATH, TEXT, Record

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = [
    "AvailableImage",
    "ClientTimeout",
    "CounterReady",
    "ErrorResponse",
    "ExclusivePublicationReady",
    "NextAvailableSessionId",
    "OperationSucceeded",
    "PublicationError",
    "PublicationReady",
    "Response",
    "StaticCounter",
    "SubscriptionReady",
    "UnavailableCounter",
    "UnavailableImage",
    "decode_response",
]


@dataclass(frozen=True, slots=True)
class Response(Record):
    """What all responses have in common: the id of their type."""

    TYPE_ID: ClassVar[int]


@dataclass(frozen=True, slots=True)
class ErrorResponse(Response):
    """A command failed, or a channel endpoint has.

    ```
    0   int64  correlation id of the command; for CHANNEL_ENDPOINT_ERROR, the id of the channel status counter
    8   int32  error code
    12  int32  message length
    16  text   message
    ```
    """

    TYPE_ID = 0x0F01
    FIXED = Struct("<qi")
    VARIABLE = (TEXT,)

    offending_command_correlation_id: int
    error_code: int
    error_message: str


@dataclass(frozen=True, slots=True)
class AvailableImage(Response):
    """A subscription has a new image.

    ```
    0   int64  correlation id of the image
    8   int32  session id
    12  int32  stream id
    16  int64  registration id of the subscription
    24  int32  id of the subscriber position counter
    28  int32  log file name length
    32  text   log file name
    .   int32  source identity length, at the next multiple of four
    .   text   source identity
    ```
    """

    TYPE_ID = 0x0F02
    FIXED = Struct("<qiiqi")
    VARIABLE = (PATH, TEXT)

    correlation_id: int
    session_id: int
    stream_id: int
    subscription_registration_id: int
    subscriber_position_id: int
    log_file_name: str
    source_identity: str


@dataclass(frozen=True, slots=True)
class PublicationReady(Response):
    """A shared publication was added.

    ```
    0   int64  correlation id, which is the registration id of what the client added
    8   int64  original registration id: that of the first who added this publication
    16  int32  session id
    20  int32  stream id
    24  int32  id of the publication limit counter
    28  int32  id of the channel status counter (-1: none)
    32  int32  log file name length
    36  text   log file name
    ```
    """

    TYPE_ID = 0x0F03
    FIXED = Struct("<qqiiii")
    VARIABLE = (PATH,)

    correlation_id: int
    registration_id: int
    session_id: int
    stream_id: int
    position_limit_counter_id: int
    channel_status_indicator_id: int
    log_file_name: str


@dataclass(frozen=True, slots=True)
class OperationSucceeded(Response):
    """A command that creates nothing has been done.

    ```
    0   int64  correlation id
    ```
    """

    TYPE_ID = 0x0F04
    FIXED = Struct("<q")

    correlation_id: int


@dataclass(frozen=True, slots=True)
class UnavailableImage(Response):
    """A subscription has lost an image.

    ```
    0   int64  correlation id of the image
    8   int64  registration id of the subscription
    16  int32  stream id
    20  int32  channel length
    24  text   channel
    ```
    """

    TYPE_ID = 0x0F05
    FIXED = Struct("<qqi")
    VARIABLE = (TEXT,)

    correlation_id: int
    subscription_registration_id: int
    stream_id: int
    channel: str


@dataclass(frozen=True, slots=True)
class ExclusivePublicationReady(PublicationReady):
    """An exclusive publication was added: the layout of `PublicationReady`."""

    TYPE_ID = 0x0F06


@dataclass(frozen=True, slots=True)
class SubscriptionReady(Response):
    """A subscription was added.

    ```
    0   int64  correlation id
    8   int32  id of the channel status counter (-1: none)
    ```
    """

    TYPE_ID = 0x0F07
    FIXED = Struct("<qi")

    correlation_id: int
    channel_status_indicator_id: int


@dataclass(frozen=True, slots=True)
class CounterReady(Response):
    """A counter was added, by any client.

    ```
    0   int64  correlation id, which is the registration id of the counter
    8   int32  counter id
    ```
    """

    TYPE_ID = 0x0F08
    FIXED = Struct("<qi")

    correlation_id: int
    counter_id: int


@dataclass(frozen=True, slots=True)
class UnavailableCounter(CounterReady):
    """A counter is gone: the layout of `CounterReady`."""

    TYPE_ID = 0x0F09


@dataclass(frozen=True, slots=True)
class ClientTimeout(Response):
    """The driver took a client for dead and has freed its resources.

    ```
    0   int64  client id
    ```
    """

    TYPE_ID = 0x0F0A
    FIXED = Struct("<q")

    client_id: int


@dataclass(frozen=True, slots=True)
class StaticCounter(CounterReady):
    """A static counter was added or found: the layout of `CounterReady`, the correlation id that of the command."""

    TYPE_ID = 0x0F0B


@dataclass(frozen=True, slots=True)
class PublicationError(Response):
    """A receiver rejected the image of a publication.

    ```
    0   int64     registration id of the publication
    8   int64     registration id of the destination (-1: none)
    16  int32     session id
    20  int32     stream id
    24  int64     receiver id
    32  int64     group tag (-1: none)
    40  int16     address type (1: IPv4, 2: IPv6)
    42  uint16    source port
    44  16 bytes  source address; an IPv4 address has the first four
    60  int32     error code
    64  int32     message length
    68  text      message
    ```
    """

    TYPE_ID = 0x0F0C
    FIXED = Struct("<qqiiqqhH16si")
    VARIABLE = (TEXT,)

    registration_id: int
    destination_registration_id: int
    session_id: int
    stream_id: int
    receiver_id: int
    group_tag: int
    address_type: int
    source_port: int
    address: bytes
    error_code: int
    error_message: str

    @property
    def source_address(self) -> str | None:
        """Where the rejection came from, as `host:port`; None for a rejection over IPC."""
        if self.source_port == 0:
            return None  # IPC: drivers fill in a loopback address, the C driver one with its bytes reversed
        match self.address_type:
            case 1:
                return f"{IPv4Address(self.address[:4])}:{self.source_port}"
            case 2:
                return f"[{IPv6Address(self.address)}]:{self.source_port}"
        return None


@dataclass(frozen=True, slots=True)
class NextAvailableSessionId(Response):
    """A session id that no publication of the stream uses.

    ```
    0   int64  correlation id
    8   int32  session id
    ```
    """

    TYPE_ID = 0x0F0D
    FIXED = Struct("<qi")

    correlation_id: int
    next_session_id: int


_RESPONSES: dict[int, type[Response]] = {
    response.TYPE_ID: response
    for response in (
        ErrorResponse,
        AvailableImage,
        PublicationReady,
        OperationSucceeded,
        UnavailableImage,
        ExclusivePublicationReady,
        SubscriptionReady,
        CounterReady,
        UnavailableCounter,
        ClientTimeout,
        StaticCounter,
        PublicationError,
        NextAvailableSessionId,
    )
}


def decode_response(type_id: int, buffer: ReadableBuffer) -> Response | None:
    """Read the response of a record of the broadcast; None for a type that this version does not know.

    Raises `MalformedRecord` for a record that is too short or has lengths that do not fit.
    """
    response = _RESPONSES.get(type_id)
    return response.decode(buffer) if response else None

"""The commands that a client writes to the driver's to-driver ring buffer (`io.aeron.command`, types 0x01 to 0x12).

All integers are little-endian. Every command starts with the id of the client that sends it and, except where the
driver never answers, a correlation id that the response repeats.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, ClassVar, Self

from aeron_async.protocol.records import BYTES, TEXT, Record

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = [
    "AddCounter",
    "AddDestination",
    "AddExclusivePublication",
    "AddPublication",
    "AddRcvDestination",
    "AddStaticCounter",
    "AddSubscription",
    "ClientClose",
    "ClientKeepalive",
    "Command",
    "GetNextAvailableSessionId",
    "RejectImage",
    "RemoveCounter",
    "RemoveDestination",
    "RemoveDestinationById",
    "RemovePublication",
    "RemoveRcvDestination",
    "RemoveSubscription",
    "TerminateDriver",
    "decode_command",
]


@dataclass(frozen=True, slots=True)
class Command(Record):
    """What every command starts with.

    ```
    0   int64  client id
    8   int64  correlation id
    ```
    """

    TYPE_ID: ClassVar[int]
    FIXED = Struct("<qq")

    client_id: int
    correlation_id: int


@dataclass(frozen=True, slots=True)
class AddPublication(Command):
    """Add a shared publication. Answered by `PublicationReady` or `ErrorResponse`.

    ```
    0   int64  client id
    8   int64  correlation id
    16  int32  stream id
    20  int32  channel length
    24  text   channel
    ```
    """

    TYPE_ID = 0x01
    FIXED = Struct("<qqi")
    VARIABLE = (TEXT,)

    stream_id: int
    channel: str


@dataclass(frozen=True, slots=True)
class AddExclusivePublication(AddPublication):
    """Add an exclusive publication: the layout of `AddPublication`. Answered by `ExclusivePublicationReady`."""

    TYPE_ID = 0x03


@dataclass(frozen=True, slots=True)
class _Remove(Command):
    """Let go of a resource. Answered by `OperationSucceeded` or `ErrorResponse`.

    ```
    0   int64  client id
    8   int64  correlation id
    16  int64  registration id of the resource
    ```
    """

    FIXED = Struct("<qqq")

    registration_id: int


@dataclass(frozen=True, slots=True)
class RemovePublication(Command):
    """Let go of a publication. Answered by `OperationSucceeded` or `ErrorResponse`.

    ```
    0   int64   client id
    8   int64   correlation id
    16  int64   registration id of the publication
    24  uint64  flags
    ```

    The flags may be missing in a record of an older client, and are then zero.
    """

    TYPE_ID = 0x02
    FIXED = Struct("<qqqQ")
    FLAG_REVOKE: ClassVar[int] = 0x01
    """The publication is revoked: its subscribers are told to drop it at once, without draining it."""

    registration_id: int
    flags: int = 0

    @property
    def is_revoke(self) -> bool:
        """Whether the publication is revoked and not only let go of."""
        return bool(self.flags & self.FLAG_REVOKE)

    @classmethod
    def decode(cls, buffer: ReadableBuffer) -> Self:
        """Read a record, with or without its flags, from the start of `buffer`. Raises `MalformedRecord`."""
        with memoryview(buffer) as view:
            if len(view) == _Remove.FIXED.size:
                buffer = bytes(view).ljust(cls.FIXED.size, b"\0")
        # The two-argument form, because slots make the decorator build the class anew.
        return super(RemovePublication, cls).decode(buffer)


@dataclass(frozen=True, slots=True)
class AddSubscription(Command):
    """Add a subscription. Answered by `SubscriptionReady`, then an `AvailableImage` for each image, or `ErrorResponse`.

    ```
    0   int64  client id
    8   int64  correlation id
    16  int64  registration correlation id (-1: not used)
    24  int32  stream id
    28  int32  channel length
    32  text   channel
    ```
    """

    TYPE_ID = 0x04
    FIXED = Struct("<qqqi")
    VARIABLE = (TEXT,)

    registration_correlation_id: int
    stream_id: int
    channel: str


@dataclass(frozen=True, slots=True)
class RemoveSubscription(_Remove):
    """Let go of a subscription: the layout of `RemoveCounter`. Answered by `OperationSucceeded` or `ErrorResponse`."""

    TYPE_ID = 0x05


@dataclass(frozen=True, slots=True)
class ClientKeepalive(Command):
    """Tell the driver that this client lives. No answer.

    ```
    0   int64  client id
    8   int64  correlation id (0)
    ```
    """

    TYPE_ID = 0x06

    correlation_id: int = 0


@dataclass(frozen=True, slots=True)
class AddDestination(Command):
    """Add a destination to a publication. Answered by `OperationSucceeded` or `ErrorResponse`.

    ```
    0   int64  client id
    8   int64  correlation id, and the id of the destination for `RemoveDestinationById`
    16  int64  registration id of the publication
    24  int32  channel length
    28  text   channel of the destination
    ```
    """

    TYPE_ID = 0x07
    FIXED = Struct("<qqq")
    VARIABLE = (TEXT,)

    registration_id: int
    channel: str


@dataclass(frozen=True, slots=True)
class RemoveDestination(AddDestination):
    """Remove a destination from a publication by its channel: the layout of `AddDestination`."""

    TYPE_ID = 0x08


@dataclass(frozen=True, slots=True)
class AddCounter(Command):
    """Add a counter that lives as long as its client. Answered by `CounterReady` or `ErrorResponse`.

    ```
    0   int64  client id
    8   int64  correlation id
    16  int32  type id of the counter
    20  int32  key length
    24  bytes  key (at most 112 are kept)
    .   int32  label length, at the next multiple of four
    .   text   label (at most 380 bytes are kept)
    ```
    """

    TYPE_ID = 0x09
    FIXED = Struct("<qqi")
    VARIABLE = (BYTES, TEXT)

    type_id: int
    key: bytes
    label: str


@dataclass(frozen=True, slots=True)
class RemoveCounter(_Remove):
    """Take a counter back. Answered by `OperationSucceeded` or `ErrorResponse`.

    ```
    0   int64  client id
    8   int64  correlation id
    16  int64  registration id of the counter
    ```
    """

    TYPE_ID = 0x0A


@dataclass(frozen=True, slots=True)
class ClientClose(Command):
    """Close this client and everything it has. No answer.

    ```
    0   int64  client id
    8   int64  correlation id (0)
    ```
    """

    TYPE_ID = 0x0B

    correlation_id: int = 0


@dataclass(frozen=True, slots=True)
class AddRcvDestination(AddDestination):
    """Add a destination to a subscription: the layout of `AddDestination`."""

    TYPE_ID = 0x0C


@dataclass(frozen=True, slots=True)
class RemoveRcvDestination(AddDestination):
    """Remove a destination from a subscription by its channel: the layout of `AddDestination`."""

    TYPE_ID = 0x0D


@dataclass(frozen=True, slots=True)
class TerminateDriver(Command):
    """Ask the driver to stop, which its own termination validator decides. No answer.

    ```
    0   int64  client id
    8   int64  correlation id
    16  int32  token length
    20  bytes  token
    ```
    """

    TYPE_ID = 0x0E
    VARIABLE = (BYTES,)

    token: bytes


@dataclass(frozen=True, slots=True)
class AddStaticCounter(Command):
    """Add, or find, a counter that outlives its clients. Answered by `StaticCounter` or `ErrorResponse`.

    ```
    0   int64  client id
    8   int64  correlation id
    16  int64  registration id, which with the type id tells the counter
    24  int32  type id of the counter
    28  int32  key length
    32  bytes  key (at most 112 are kept)
    .   int32  label length, at the next multiple of four
    .   text   label (at most 380 bytes are kept)
    ```
    """

    TYPE_ID = 0x0F
    FIXED = Struct("<qqqi")
    VARIABLE = (BYTES, TEXT)

    registration_id: int
    type_id: int
    key: bytes
    label: str


@dataclass(frozen=True, slots=True)
class RejectImage(Command):
    """Reject an image, so that its publisher is told why. Answered by `OperationSucceeded` or `ErrorResponse`.

    ```
    0   int64  client id
    8   int64  correlation id
    16  int64  correlation id of the image
    24  int64  position at which it is rejected
    32  int32  reason length (at most 1023)
    36  text   reason
    ```
    """

    TYPE_ID = 0x10
    FIXED = Struct("<qqqq")
    VARIABLE = (TEXT,)
    # The C driver counts one byte of reason and its padding as part of the command, and ignores a shorter one.
    MINIMUM_LENGTH = 40

    image_correlation_id: int
    position: int
    reason: str


@dataclass(frozen=True, slots=True)
class RemoveDestinationById(Command):
    """Remove a destination from a publication by its id. Answered by `OperationSucceeded` or `ErrorResponse`.

    ```
    0   int64  client id
    8   int64  correlation id
    16  int64  registration id of the publication
    24  int64  registration id of the destination
    ```
    """

    TYPE_ID = 0x11
    FIXED = Struct("<qqqq")

    resource_registration_id: int
    destination_registration_id: int


@dataclass(frozen=True, slots=True)
class GetNextAvailableSessionId(Command):
    """Ask for a session id that no publication of a stream uses. Answered by `NextAvailableSessionId`.

    ```
    0   int64  client id
    8   int64  correlation id
    16  int32  stream id
    ```
    """

    TYPE_ID = 0x12
    FIXED = Struct("<qqi")

    stream_id: int


_COMMANDS: dict[int, type[Command]] = {
    command.TYPE_ID: command
    for command in (
        AddPublication,
        RemovePublication,
        AddExclusivePublication,
        AddSubscription,
        RemoveSubscription,
        ClientKeepalive,
        AddDestination,
        RemoveDestination,
        AddCounter,
        RemoveCounter,
        ClientClose,
        AddRcvDestination,
        RemoveRcvDestination,
        TerminateDriver,
        AddStaticCounter,
        RejectImage,
        RemoveDestinationById,
        GetNextAvailableSessionId,
    )
}


def decode_command(type_id: int, buffer: ReadableBuffer) -> Command | None:
    """Read the command of a record of the to-driver ring buffer; None for a type that this version does not know.

    Raises `MalformedRecord` for a record that is too short or has lengths that do not fit.
    """
    command = _COMMANDS.get(type_id)
    return command.decode(buffer) if command else None

"""Every exception that this package raises on purpose."""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "AddTimeoutError",
    "AeronError",
    "BackPressuredError",
    "CallTimeoutError",
    "ChannelError",
    "ClientClosedError",
    "ClientTimeoutError",
    "CloseReason",
    "ClosedError",
    "CncVersionError",
    "CorruptFileError",
    "CounterClosedError",
    "DirectoryInUseError",
    "DriverAccessError",
    "DriverError",
    "DriverNotFoundError",
    "DriverNotRunningError",
    "DriverShutdownError",
    "DriverStartError",
    "DriverTimeoutError",
    "ForkedClientError",
    "InsufficientStorageError",
    "LappedError",
    "MaxPositionExceededError",
    "MessageTooLongError",
    "NotConnectedError",
    "PublicationClosedError",
    "RegistrationError",
    "RemoteError",
    "ServiceTimeoutError",
    "SubscriptionClosedError",
]


class CloseReason(IntEnum):
    """Why a client was closed."""

    def __str__(self) -> str:
        return self.name

    USER = 1
    """`aclose()` was called, or its `async with` was left."""
    DRIVER_SHUTDOWN = 2
    """The driver stopped, and said so or was seen to exit."""
    DRIVER_TIMEOUT = 3
    """The driver's heartbeat is older than `driver_timeout`."""
    CLIENT_TIMEOUT = 4
    """The driver heard nothing of this client for its client liveness timeout, and took its resources away."""
    SERVICE_TIMEOUT = 5
    """The event loop ran no duty cycle for longer than `loop_stall_limit`."""
    LAPPED = 6
    """The client fell behind the driver's broadcast and may have missed responses."""


class AeronError(Exception):
    """The root of all errors of this package."""

    appended: int = 0
    """How many messages a call that publishes several had appended before this stopped it."""
    pending: int = 0
    """How many messages of a `BatchPublisher` had not been sent when this stopped its flush."""


class DriverError(AeronError):
    """Something about a media driver or its directory."""


class DriverNotFoundError(DriverError):
    """There is no driver binary to start."""


class DriverStartError(DriverError):
    """A driver was started and did not become ready."""


class DirectoryInUseError(DriverError):
    """A live driver already serves the directory."""


class DriverAccessError(DriverError, PermissionError):
    """The process may not read or write the driver's files."""


class InsufficientStorageError(DriverError):
    """The file system that holds the driver's directory has too little room."""


class CncVersionError(DriverError):
    """The directory's CnC file has a layout version that this client does not speak."""


class DriverNotRunningError(DriverError):
    """No live driver serves the directory: it does not exist, is stale, or vanished."""


class CorruptFileError(DriverError):
    """Shared memory holds what cannot be true."""


class ClosedError(AeronError):
    """The object was closed before or during the call."""


class PublicationClosedError(ClosedError):
    """The publication is closed."""


class SubscriptionClosedError(ClosedError):
    """The subscription is closed."""


class CounterClosedError(ClosedError):
    """The counter is closed."""


class ClientClosedError(ClosedError):
    """The client is closed, for `reason`."""

    reason: CloseReason = CloseReason.USER

    @staticmethod
    def of(reason: CloseReason, detail: str) -> ClientClosedError:
        """The exception that stands for `reason`."""
        return _BY_REASON[reason](detail)


class DriverShutdownError(ClientClosedError):
    """The driver stopped."""

    reason = CloseReason.DRIVER_SHUTDOWN


class DriverTimeoutError(ClientClosedError):
    """The driver stopped heartbeating."""

    reason = CloseReason.DRIVER_TIMEOUT


class ClientTimeoutError(ClientClosedError):
    """The driver gave this client up."""

    reason = CloseReason.CLIENT_TIMEOUT


class ServiceTimeoutError(ClientClosedError):
    """The event loop was blocked for longer than `loop_stall_limit`."""

    reason = CloseReason.SERVICE_TIMEOUT


class LappedError(ClientClosedError):
    """The client fell behind the driver's broadcast."""

    reason = CloseReason.LAPPED


_BY_REASON: dict[CloseReason, type[ClientClosedError]] = {
    CloseReason.USER: ClientClosedError,
    CloseReason.DRIVER_SHUTDOWN: DriverShutdownError,
    CloseReason.DRIVER_TIMEOUT: DriverTimeoutError,
    CloseReason.CLIENT_TIMEOUT: ClientTimeoutError,
    CloseReason.SERVICE_TIMEOUT: ServiceTimeoutError,
    CloseReason.LAPPED: LappedError,
}


class RegistrationError(AeronError):
    """The driver refused a command.

    `code` is the driver's error code (`aeron_async.protocol.error_codes.ErrorCode`), `message` its text.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"the driver refused the command: {self.message} (error code {self.code})"


class InsufficientStorageRegistrationError(RegistrationError, InsufficientStorageError):
    """The driver refused a command for lack of storage space."""

    def __str__(self) -> str:
        return (
            f"{super().__str__()}. The file system of the driver's directory is full: free space there, enlarge it "
            "(a container's /dev/shm is 64 MiB unless told otherwise), or use a smaller term_buffer_length"
        )


class ChannelError(AeronError, ValueError):
    """A channel URI has a wrong name, value or combination of parameters."""


class MessageTooLongError(AeronError, ValueError):
    """A message is longer than the publication takes: `max_message_length`, or `max_payload_length` for a claim."""

    def __init__(self, length: int, limit: int, limit_name: str = "max_message_length") -> None:
        super().__init__(length, limit, limit_name)
        self.length = length
        self.limit = limit
        self.limit_name = limit_name

    def __str__(self) -> str:
        return f"message of {self.length} bytes is longer than {self.limit_name}={self.limit}{_WHY[self.limit_name]}"


_WHY = {
    "max_message_length": " (an eighth of the term buffer length, at most 16 MiB)",
    "max_payload_length": " (a claim is a single frame)",
    "max_padding_length": " (as long as the longest message is with its frame headers)",
}


class NotConnectedError(AeronError, TimeoutError):
    """Nobody was connected until the timeout ran out."""


class BackPressuredError(AeronError, TimeoutError):
    """Subscribers were too slow until the timeout ran out."""


class MaxPositionExceededError(AeronError):
    """The stream has reached its maximum position; a new publication (session) is needed."""


class AddTimeoutError(AeronError, TimeoutError):
    """The driver did not answer a command in time."""


class CallTimeoutError(AeronError, TimeoutError):
    """The far side of a call did not reply in time."""


class ForkedClientError(AeronError):
    """A client was used in a child process that was forked from its own."""


class RemoteError(AeronError):
    """The handler at the far side of a call raised; the text is its own."""

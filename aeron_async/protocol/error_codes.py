"""The codes by which the driver says what is wrong, and the states of a channel (`io.aeron.ErrorCode`)."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ChannelStatus", "ErrorCode"]


class ErrorCode(IntEnum):
    """Why a command failed. A value that this version does not know becomes `UNKNOWN_CODE_VALUE`."""

    UNKNOWN_CODE_VALUE = -1
    UNUSED = 0
    INVALID_CHANNEL = 1
    UNKNOWN_SUBSCRIPTION = 2
    UNKNOWN_PUBLICATION = 3
    CHANNEL_ENDPOINT_ERROR = 4
    UNKNOWN_COUNTER = 5
    UNKNOWN_COMMAND_TYPE_ID = 6
    MALFORMED_COMMAND = 7
    NOT_SUPPORTED = 8
    UNKNOWN_HOST = 9
    RESOURCE_TEMPORARILY_UNAVAILABLE = 10
    GENERIC_ERROR = 11
    STORAGE_SPACE = 12
    IMAGE_REJECTED = 13
    PUBLICATION_REVOKED = 14

    @classmethod
    def _missing_(cls, value: object) -> ErrorCode:
        return cls.UNKNOWN_CODE_VALUE


class ChannelStatus(IntEnum):
    """The value of a channel status counter."""

    ERRORED = -1
    INITIALIZING = 0
    ACTIVE = 1
    CLOSING = 2

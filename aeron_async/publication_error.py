"""What a publication hears from a receiver that does not want its stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from aeron_async.protocol import responses

_NONE = -1


@dataclass(frozen=True, slots=True)
class PublicationError:
    """A receiver has rejected the image of a publication of this client.

    Source: Aeron's `PublicationErrorFrame`.
    """

    registration_id: int
    """Of the publication."""
    session_id: int
    stream_id: int
    code: int
    """Why (`aeron_async.protocol.error_codes.ErrorCode`)."""
    message: str
    """The receiver's reason."""
    source_address: str | None
    """Where the rejection came from, as `host:port`; None over IPC."""
    receiver_id: int
    """The receiver's own id."""
    group_tag: int | None
    """The receiver's group, where it has one."""
    destination_registration_id: int | None
    """The destination of the publication that the receiver is behind, where there are several."""

    @classmethod
    def of(cls, response: responses.PublicationError, registration_id: int) -> Self:
        """What the driver tells, for the publication with `registration_id`."""
        destination = response.destination_registration_id
        return cls(
            registration_id=registration_id,
            session_id=response.session_id,
            stream_id=response.stream_id,
            code=response.error_code,
            message=response.error_message,
            source_address=response.source_address,
            receiver_id=response.receiver_id,
            group_tag=None if response.group_tag == _NONE else response.group_tag,
            destination_registration_id=None if destination == _NONE else destination,
        )

"""The destinations of publications and subscriptions, and the commands that add and remove them.

The driver knows a publication's destinations by the id of the publication that was first on its channel and stream, and
removes them by channel or by id; a subscription's it removes by channel only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from aeron_async.protocol import commands
from aeron_async.publication import Publication
from aeron_async.subscription import Subscription

Owner = Publication | Subscription
Removal = Callable[[int, int], commands.Command]


class _Destination(NamedTuple):
    owner_id: int
    uri: str


class Destinations:
    """What a client has added and not yet removed, by the destinations' registration ids."""

    def __init__(self) -> None:
        self._added: dict[int, _Destination] = {}

    def __contains__(self, destination_id: int) -> bool:
        return destination_id in self._added

    def owner_id(self, destination_id: int) -> int:
        """The registration id of what the destination was added to."""
        return self._added[destination_id].owner_id

    def added(self, owner: Owner, destination_id: int, uri: str) -> None:
        """The driver has added a destination."""
        self._added[destination_id] = _Destination(owner.registration_id, uri)

    def removed(self, owner: Owner, destination: str | int) -> None:
        """The driver has been asked to remove a destination."""
        for destination_id, (owner_id, uri) in self._added.items():
            if owner_id == owner.registration_id and destination in (destination_id, uri):
                del self._added[destination_id]
                return

    def owner_closed(self, owner_id: int) -> None:
        """A publication or subscription is gone, and its destinations with it."""
        self._added = {key: added for key, added in self._added.items() if added.owner_id != owner_id}

    def removal(self, owner: Owner, destination: str | int) -> Removal:
        """What makes the command that removes a destination, by its channel or its id, of client and correlation ids.

        Raises `ValueError` for an id that is none of the subscription's.
        """
        if isinstance(owner, Publication):
            publication_id = owner.original_registration_id
            if isinstance(destination, int):
                return lambda client_id, correlation_id: commands.RemoveDestinationById(
                    client_id, correlation_id, publication_id, destination
                )
            return lambda client_id, correlation_id: commands.RemoveDestination(
                client_id, correlation_id, publication_id, destination
            )
        uri = self._uri(owner, destination) if isinstance(destination, int) else destination
        return lambda client_id, correlation_id: commands.RemoveRcvDestination(
            client_id, correlation_id, owner.registration_id, uri
        )

    def _uri(self, owner: Owner, destination_id: int) -> str:
        added = self._added.get(destination_id)
        if added is None or added.owner_id != owner.registration_id:
            raise ValueError(f"{destination_id} is not the registration id of a destination of {owner!r}")
        return added.uri


def addition(owner: Owner, client_id: int, correlation_id: int, uri: str) -> commands.Command:
    """The command that adds a destination."""
    if isinstance(owner, Publication):
        return commands.AddDestination(client_id, correlation_id, owner.original_registration_id, uri)
    return commands.AddRcvDestination(client_id, correlation_id, owner.registration_id, uri)

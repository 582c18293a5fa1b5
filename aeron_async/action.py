"""What a handler of a controlled poll decides."""

from __future__ import annotations

from enum import IntEnum


class Action(IntEnum):
    """What becomes of the position, and of the poll, after a message was handled.

    Source: Aeron's `ControlledFragmentHandler.Action`.
    """

    ABORT = 1
    """End the poll of the image; the message is not taken, and comes again whole."""
    BREAK = 2
    """End the poll of the image; the message is taken."""
    COMMIT = 3
    """Move the position past the message now, and go on."""
    CONTINUE = 4
    """Go on; the position moves past the message at the end of the poll."""

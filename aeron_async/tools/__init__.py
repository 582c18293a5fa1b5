"""The `aeron-async` command."""

from aeron_async.tools.command import main

__all__ = ["main"]

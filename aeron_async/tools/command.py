"""The command line: which tools there are."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from aeron_async.errors import AeronError
from aeron_async.tools import driver

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool that `arguments` name, those of this process for None; returns the exit code."""
    parser = argparse.ArgumentParser(prog="aeron-async", description="Tools for Aeron.")
    driver.add_parser(parser.add_subparsers(metavar="TOOL", required=True))
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except (AeronError, ValueError) as error:
        print(f"aeron-async: {error}", file=sys.stderr)
        return 1
    return 0

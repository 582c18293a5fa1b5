"""`aeron-async driver`: which media driver a program here would use, and running one in the foreground."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn, get_args

from aeron_async.driver.config import DriverConfig, Profile
from aeron_async.driver.directory import CncReader
from aeron_async.driver.files import default_aeron_dir, private_base
from aeron_async.driver.launch import find_binary
from aeron_async.errors import DriverNotFoundError
from aeron_async.protocol.records import MalformedRecord

__all__ = ["add_parser"]


def add_parser(tools: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds this tool to the command line."""
    parser = tools.add_parser(
        "driver",
        help="which media driver a program here would use; `driver run` runs one",
        description="Prints the mode, directory, binary and version of the driver that connect() would use here.",
    )
    parser.add_argument("--json", action="store_true", help="print one object of JSON")
    parser.set_defaults(run=_show)
    run = parser.add_subparsers(metavar="run").add_parser(
        "run",
        help="run a media driver in the foreground",
        description="Runs a media driver until Ctrl-C or SIGTERM. When it is ready, it prints a line of JSON.",
    )
    run.add_argument("--aeron-dir", type=Path, help="the directory to serve (default: AERON_DIR, or Aeron's own)")
    run.add_argument("--binary", type=Path, help="another driver's program, configured by its environment alone")
    run.add_argument("--profile", choices=get_args(Profile), default="balanced", help="(default: %(default)s)")
    run.add_argument(
        "--set", action="append", type=_setting, default=[], metavar="NAME=VALUE", help="an AERON_* variable"
    )
    run.set_defaults(run=_run)


def _setting(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _show(options: argparse.Namespace) -> None:
    description = _describe()
    if options.json:
        print(json.dumps(description))
    else:
        for name, value in description.items():
            print(f"{name + ':':<11}{'-' if value is None else value}")


def _describe() -> dict[str, Any]:
    try:
        binary: str | None = find_binary(DriverConfig())
    except DriverNotFoundError:
        binary = None
    if aeron_dir := os.environ.get("AERON_DIR"):
        return {
            "mode": "external",
            "directory": os.path.abspath(aeron_dir),
            "binary": binary,
            "version": _version_in(Path(aeron_dir)),
        }
    return {
        "mode": "embedded",
        # Each driver has a folder of its own.
        "directory": str(private_base() / "*" / "driver"),
        "binary": binary,
        "version": None if binary is None else _version_of(binary),
    }


def _version_in(aeron_dir: Path) -> str | None:
    """Aeron's version, of the driver whose directory it is."""
    try:
        with closing(CncReader.open(aeron_dir)) as cnc:
            return cnc.aeron_version() if cnc.is_ready else None
    except (OSError, MalformedRecord):
        return None


def _version_of(binary: str) -> str:
    return subprocess.run([binary, "--version"], check=True, capture_output=True, text=True).stdout.strip()


def _run(options: argparse.Namespace) -> NoReturn:
    config = DriverConfig(
        aeron_dir=options.aeron_dir or os.environ.get("AERON_DIR") or default_aeron_dir(),
        binary=options.binary,
        profile=options.profile,
        environment=dict(options.set),
    )
    binary = find_binary(config)
    assert config.directory is not None
    environment = {**config.build_environment(os.environ), "AERON_DIR": os.path.abspath(config.directory)}
    # In this process's place, so that every signal is the driver's.
    os.execve(binary, [binary], environment)

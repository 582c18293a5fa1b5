"""Builds the peers that are not Python: Rust, C, C++ and Java.

`python -m benchmarks.peers.build` builds them and says what each is. C and C++ use the Aeron client that Rust's crate
brings and compiles, so that all three measure the same one.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import java

ROOT = Path(__file__).parents[2]
PEERS = Path(__file__).parent
OUTPUT = ROOT / "build" / "benchmarks"

TIMEOUT = 900.0
"""Seconds for one build: Rust's compiles Aeron's client and generates its bindings."""

_RUST_PEER = "aeron-async-rust-peer"
_RUST_CLIENT = "rusteron-client"
_LIBRARIES = ("-lbsd", "-lmd", "-luuid", "-latomic", "-ldl", "-lm", "-pthread")
_JAVA_OPTIONS = (
    "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
    "-Dagrona.disable.bounds.checks=true",
    "-XX:+UseSerialGC",
)


@dataclass(frozen=True)
class Built:
    """A peer program, or why there is none."""

    command: list[str] | None
    """What runs it, before the mode."""
    version: str = ""
    """Of the client that it uses, and of what compiled it."""
    reason: str = ""
    """Why there is no command."""


class BuildError(Exception):
    """A peer cannot be built here."""


@dataclass(frozen=True)
class _AeronClient:
    """What Rust's crate has unpacked and compiled."""

    version: str
    library: Path
    sources: Path


def build(quiet: bool = True) -> dict[str, Built]:
    """Builds the peers that are missing or out of date; unless `quiet`, shows what the compilers say."""
    builder = _Builder(quiet)
    makers = {"rust": builder.rust, "c": builder.c, "cpp": builder.cpp, "java": builder.java}
    with _alone():
        return {language: _attempt(make) for language, make in makers.items()}


def _attempt(make: Callable[[], Built]) -> Built:
    try:
        return make()
    except BuildError as error:
        return Built(None, reason=str(error))


@contextmanager
def _alone() -> Iterator[None]:
    """Runs of the benchmarks and of their tests may build at the same time."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with (OUTPUT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class _Builder:
    """Makes each peer, Rust's before those that need its Aeron client."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        # PyPI's cmake stands beside this Python; cargo may be installed and not on PATH.
        path = [str(Path(sys.executable).parent), os.environ["PATH"], str(Path.home() / ".cargo" / "bin")]
        self._environment = {**os.environ, "PATH": os.pathsep.join(path), "RUSTERON_C_MARCH": _baseline()}
        self._client: _AeronClient | None = None

    def rust(self) -> Built:
        messages = self._run(
            "cargo",
            "build",
            "--release",
            "--locked",
            "--message-format=json-render-diagnostics",
            f"--manifest-path={PEERS / 'rust' / 'Cargo.toml'}",
            f"--target-dir={OUTPUT / 'rust'}",
        )
        found: dict[tuple[str, str], dict[str, str]] = {}
        for message in map(json.loads, messages.splitlines()):
            package, _, version = message.get("package_id", "").rpartition("#")[2].partition("@")
            found[message["reason"], package] = {**message, "version": version}
        client = found["compiler-artifact", _RUST_CLIENT]
        compiled = Path(found["build-script-executed", _RUST_CLIENT]["out_dir"])
        sources = Path(client["manifest_path"]).parent / "aeron"
        self._client = _AeronClient(
            version=(sources / "version.txt").read_text().strip(),
            library=compiled / "build" / "lib" / "libaeron_static.a",
            sources=sources / "aeron-client" / "src" / "main",
        )
        _, rustc, *_ = self._run("rustc", "--version").split()
        return Built(
            [found["compiler-artifact", _RUST_PEER]["executable"]],
            f"{_RUST_CLIENT} {client['version']} (Aeron {self._client.version}), rustc {rustc}",
        )

    def c(self) -> Built:
        return self._native("c", "C", "gcc", "-std=c11", "-D_GNU_SOURCE")

    def cpp(self) -> Built:
        return self._native("cpp", "C++", "g++", "-std=c++17")

    def _native(self, folder: str, language: str, compiler: str, *options: str) -> Built:
        if self._client is None:
            raise BuildError("the Aeron client that the Rust peer brings could not be built")
        sources, peer = PEERS / folder, OUTPUT / folder / "peer"
        peer.parent.mkdir(exist_ok=True)
        command = [
            compiler,
            *options,
            "-O3",
            f"-march={_baseline()}",
            "-Wall",
            "-Wextra",
            *(f"-isystem{self._client.sources / headers}" for headers in ("c", "cpp_wrapper")),
            *map(str, sorted(sources.glob(f"*.{folder}"))),
            str(self._client.library),
            *_LIBRARIES,
            "-o",
            str(peer),
        ]
        self._once(command, [sources, self._client.library], peer)
        version = self._run(compiler, "-dumpfullversion").strip()
        return Built([str(peer)], f"Aeron {self._client.version} {language} client, {compiler} {version}")

    def java(self) -> Built:
        try:
            jar = java.aeron_jar()
        except pytest.skip.Exception as missing:
            raise BuildError(str(missing)) from None
        sources, classes = PEERS / "java", OUTPUT / "java"
        command = ["javac", "-cp", str(jar), "-d", str(classes), *map(str, sorted(sources.glob("*.java")))]
        self._once(command, [sources, jar], classes / "Peer.class")
        _, jdk, *_ = self._run("java", "--version").split()
        return Built(
            ["java", *_JAVA_OPTIONS, "-cp", f"{jar}{os.pathsep}{classes}", "Peer"],
            f"aeron-all {java.AERON_VERSION}, JDK {jdk}",
        )

    def _once(self, command: list[str], inputs: list[Path], output: Path) -> None:
        stamp = OUTPUT / f"stamp-{output.parent.name}"
        self._run("scripts/once", str(stamp), *map(str, [__file__, *inputs]), "--", str(output), "--", *command)

    def _run(self, *command: str) -> str:
        """What a command prints."""
        try:
            result = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if self._quiet else None,
                cwd=ROOT,
                env=self._environment,
                text=True,
                timeout=TIMEOUT,
                check=True,
            )
        except FileNotFoundError:
            raise BuildError(f"{command[0]} is not installed") from None
        except subprocess.CalledProcessError as error:
            raise BuildError(f"{command[0]} failed: {(error.stderr or '')[-2000:]}") from None
        except subprocess.TimeoutExpired:
            raise BuildError(f"{command[0]} took longer than {TIMEOUT:.0f} s") from None
        return result.stdout


def _baseline() -> str:
    """The processor that C is compiled for: the same as the driver's."""
    chosen = os.environ.get("RUSTERON_C_MARCH")
    if chosen is None and platform.machine() == "aarch64":
        chosen = "armv8-a"
    if chosen is None:
        chosen = tomllib.loads((ROOT / ".cargo" / "config.toml").read_text())["env"]["RUSTERON_C_MARCH"]
    return chosen


if __name__ == "__main__":
    for name, peer in build(quiet=False).items():
        print(f"{name}: {peer.version or peer.reason}")

"""Java programs for tests: Aeron's jar, our own sources compiled against it, and how to run both."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

AERON_VERSION = "1.51.0"
OLDER_AERON_VERSION = "1.49.3"
"""The newest `aeron-all` that Maven Central serves to everyone who builds this project."""

CACHE = Path(__file__).parents[1] / ".cache" / "java"
RESOLVE_TIMEOUT = 300.0
COMPILE_TIMEOUT = 120.0


def require_tool(name: str) -> str:
    """Return the path of a program of the JDK, or skip the test that needs it."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not on PATH: install a JDK (17 or newer) and Maven to run the tests against Java")
    return path


def aeron_jar(version: str = AERON_VERSION) -> Path:
    """Return `aeron-all` (client, driver and samples in one jar), from the cache or through Maven."""
    require_tool("java")
    jar = CACHE / f"aeron-all-{version}.jar"
    if not jar.exists():
        maven = require_tool("mvn")
        with _replacing(jar) as folder:
            result = subprocess.run(
                [
                    maven,
                    "--batch-mode",
                    "--quiet",
                    "dependency:copy",
                    f"-Dartifact=io.aeron:aeron-all:{version}",
                    f"-DoutputDirectory={folder}",
                ],
                capture_output=True,
                text=True,
                timeout=RESOLVE_TIMEOUT,
                check=False,
            )
            if result.returncode:
                pytest.skip(f"Maven cannot get io.aeron:aeron-all:{version}: {result.stdout[-2000:]}")
    return jar


def compiled(source: Path, version: str = AERON_VERSION) -> Path:
    """Return the folder with the classes of a source file of ours, compiled against the jar once."""
    digest = hashlib.sha256(source.read_bytes() + version.encode()).hexdigest()[:16]
    classes = CACHE / f"{source.stem}-{digest}"
    if not classes.exists():
        javac, jar = require_tool("javac"), aeron_jar(version)
        with _replacing(classes) as folder:
            result = subprocess.run(
                [javac, "-cp", jar, "-d", folder / classes.name, source],
                capture_output=True,
                text=True,
                timeout=COMPILE_TIMEOUT,
                check=False,
            )
            assert result.returncode == 0, result.stderr
    return classes


def java_command(
    main: str | Path,
    *arguments: str | Path,
    properties: Mapping[str, object] | None = None,
    version: str = AERON_VERSION,
) -> list[str]:
    """Return the command line that runs `main`, a class of the jar or a source file of ours.

    `properties` become system properties (`-Dname=value`).
    """
    class_path = [str(aeron_jar(version))]
    if isinstance(main, Path):
        class_path.append(str(compiled(main, version)))
        main = main.stem
    return [
        require_tool("java"),
        "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Xshare:auto",
        *(f"-D{name}={value}" for name, value in (properties or {}).items()),
        "-cp",
        os.pathsep.join(class_path),
        main,
        *map(str, arguments),
    ]


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """Give a folder to make `target` in, and move it to its place when done: test runs may do so at the same time."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        yield Path(folder)
        try:
            (Path(folder) / target.name).rename(target)
        except OSError:
            if not target.exists():
                raise

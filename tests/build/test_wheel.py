"""What a user gets: the wheel, alone in an empty environment."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NATIVE = "aeron_async/_native.abi3.so"
SPEEDUPS = f"aeron_async/_speedups{sysconfig.get_config_var('EXT_SUFFIX')}"
DRIVER = "aeron_async/_bin/aeron-async-driver"

pytestmark = pytest.mark.timeout(900)


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Return what the command printed; the test fails with it if the command does."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode != 0:
        pytest.fail(f"{command} ended with status {done.returncode}:\n{done.stdout}")
    return done.stdout


def outside_environment() -> dict[str, str]:
    """The environment without what make, the virtual environment or a user's driver put there."""
    ours = ("AERON_", "MAKE", "MFLAGS", "PYTHON", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    search = [folder for folder in environment["PATH"].split(os.pathsep) if not folder.startswith(sys.prefix)]
    return environment | {"PATH": os.pathsep.join(search)}


def environment_without_cargo(folder: Path) -> dict[str, str]:
    """The environment with each folder of PATH that holds cargo replaced by links to all else in it."""
    search = []
    for place in map(Path, os.environ["PATH"].split(os.pathsep)):
        if (place / "cargo").exists():
            stand_in = folder / f"bin{len(search)}"
            stand_in.mkdir()
            for tool in place.iterdir():
                if tool.name != "cargo":
                    (stand_in / tool.name).symlink_to(tool)
            search.append(str(stand_in))
        else:
            search.append(str(place))
    return os.environ | {"PATH": os.pathsep.join(search)}


def install(wheel: Path, folder: Path) -> Path:
    """Install the wheel and what it asks for into an empty environment; return that environment's Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pins = folder / "pins.txt"
    pins.write_text(re.sub(r" \\$|^ .*", "", (ROOT / "requirements-dev.lock").read_text(), flags=re.MULTILINE))
    options = ("--no-input", "--constraint", pins)
    run(python, "-m", "pip", "install", *options, wheel, cwd=folder, env=outside_environment())
    return python


def contents(wheel: Path) -> dict[str, zipfile.ZipInfo]:
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry for entry in archive.infolist()}


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The wheel in dist/, rebuilt if anything it is made of has changed."""
    run("make", "wheel", cwd=ROOT, env=outside_environment())
    (wheel,) = (ROOT / "dist").glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(wheel, tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def source_distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    code = f"from setuptools.build_meta import build_sdist; build_sdist({str(folder)!r})"
    run(sys.executable, "-c", code, cwd=ROOT)
    (archive,) = folder.glob("*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def wheel_without_driver(source_distribution: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that somebody without Rust builds from the source distribution."""
    folder = tmp_path_factory.mktemp("without_cargo")
    options = ("--no-input", "--no-deps", "--no-build-isolation", "--verbose", "--wheel-dir", folder)
    environment = environment_without_cargo(folder)
    run(sys.executable, "-m", "pip", "wheel", *options, source_distribution, cwd=folder, env=environment)
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_wheel_holds_the_native_modules_and_an_executable_driver(wheel: Path) -> None:
    entries = contents(wheel)
    assert {NATIVE, SPEEDUPS} <= entries.keys()
    assert entries[DRIVER].external_attr >> 16 & 0o111 == 0o111
    assert "aeron_async/py.typed" in entries


def test_wheel_serves_every_cpython_from_3_11_on_and_is_faster_on_the_one_that_built_it(wheel: Path) -> None:
    assert "-cp311-abi3-" in wheel.name
    assert {name for name in contents(wheel) if name.endswith(".so")} == {NATIVE, SPEEDUPS}


def test_wheel_holds_nothing_but_the_package_and_its_licences(wheel: Path) -> None:
    about = "-".join(wheel.name.split("-")[:2]) + ".dist-info"
    assert {name.split("/")[0] for name in contents(wheel)} == {"aeron_async", about}
    assert {f"{about}/licenses/LICENSE", f"{about}/licenses/NOTICE"} <= contents(wheel).keys()


def test_wheel_is_built_for_a_baseline_cpu(wheel: Path, tmp_path: Path) -> None:
    if shutil.which("objdump") is None:
        pytest.fail("objdump, of binutils, is needed beside the C compiler")
    with zipfile.ZipFile(wheel) as archive:
        for name in (NATIVE, SPEEDUPS, DRIVER):
            code = run("objdump", "--disassemble", "--no-show-raw-insn", archive.extract(name, tmp_path), cwd=tmp_path)
            assert not re.search(r"%[yz]mm\d", code), f"{name} holds AVX instructions"


def test_installed_wheel_needs_its_runtime_dependencies_only(installed: Path) -> None:
    listing = run(installed, "-m", "pip", "list", "--format=freeze", cwd=installed.parent, env=outside_environment())
    names = {line.split("==")[0].lower().replace("_", "-") for line in listing.splitlines() if "==" in line}
    allowed = {"aeron-async", "anyio", "cffi", "idna", "pip", "pycparser", "setuptools", "structlog"}
    assert {"aeron-async", "anyio", "cffi", "structlog"} <= names
    assert names <= allowed | {"sniffio", "typing-extensions"}


def test_installed_wheel_runs_the_first_program_of_the_readme(installed: Path, tmp_path: Path) -> None:
    program = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    assert program is not None
    (tmp_path / "first.py").write_text(program[1])
    printed = run(installed, "first.py", cwd=tmp_path, env=outside_environment())
    assert printed


def test_installed_wheel_uses_the_face_that_was_asked_for(installed: Path, tmp_path: Path) -> None:
    program = "from aeron_async import _face; print(_face.NAME)"
    environment = outside_environment()
    assert run(installed, "-c", program, cwd=tmp_path, env=environment) == "speedups\n"
    assert run(installed, "-c", program, cwd=tmp_path, env=environment | {"AERON_ASYNC_PURE": "1"}) == "pure\n"


def test_installed_command_finds_the_bundled_driver(installed: Path, tmp_path: Path) -> None:
    command = installed.with_name("aeron-async")
    assert str(installed.parents[1]) in run(command, "driver", cwd=tmp_path, env=outside_environment())


def test_build_without_cargo_leaves_only_the_driver_out(wheel: Path, wheel_without_driver: Path) -> None:
    with_driver, without_driver = (
        {name for name in contents(one) if not name.endswith("RECORD")} for one in (wheel, wheel_without_driver)
    )
    assert with_driver - without_driver == {DRIVER}
    assert without_driver <= with_driver


def test_connect_without_a_bundled_driver_names_the_alternatives(wheel_without_driver: Path, tmp_path: Path) -> None:
    python = install(wheel_without_driver, tmp_path / "environment")
    program = """
import asyncio, aeron_async

async def main():
    try:
        async with aeron_async.connect():
            pass
    except aeron_async.DriverNotFoundError as error:
        print(error)

asyncio.run(main())
"""
    printed = run(python, "-c", program, cwd=tmp_path, env=outside_environment())
    for alternative in ("Rust", "binary=", "AERON_DIR", "external"):
        assert alternative in printed


def test_source_distribution_holds_what_both_builds_need_and_nothing_built(source_distribution: Path) -> None:
    with tarfile.open(source_distribution) as archive:
        names = {entry.name.partition("/")[2] for entry in archive if entry.isfile()}
    builders = {".cargo/config.toml", "driver/Cargo.lock", "driver/Cargo.toml", "scripts/check_rust"}
    native = {"native/build_native.py", "native/cdef.h", "native/speedups/module.c", "native/speedups/module.h"}
    assert builders | native | {"LICENSE", "NOTICE"} <= names
    assert not [name for name in names if name.startswith("driver/target/") or name.endswith((".so", ".o", ".pyc"))]

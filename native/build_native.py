"""Builds aeron_async._native, the cffi face of the C core.

setuptools runs it through `cffi_modules`; by hand, `python native/build_native.py` builds into the package in place.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from cffi import FFI

MODULE = "aeron_async._native"
NATIVE = Path(os.path.abspath(__file__)).parent
ROOT = NATIVE.parent
STRICT = ["-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types"]


def builder(relative_to: Path | None) -> FFI:
    """The builder, with its paths relative to a folder, as setuptools wants them, or absolute."""

    def spell(path: Path) -> str:
        return str(path) if relative_to is None else os.path.relpath(path, relative_to)

    ffi = FFI()
    ffi.cdef((NATIVE / "cdef.h").read_text())
    ffi.set_source(
        MODULE,
        "\n".join(f'#include "{header.name}"' for header in sorted((NATIVE / "include").glob("*.h"))),
        sources=[spell(source) for source in sorted((NATIVE / "src").glob("*.c"))],
        depends=[spell(path) for path in sorted([*(NATIVE / "include").glob("*.h"), NATIVE / "cdef.h"])],
        include_dirs=[spell(NATIVE / "include")],
        define_macros=[("Py_LIMITED_API", "0x030B0000")],
        extra_compile_args=["-std=c11", "-O3", "-Wall", "-Wextra", *STRICT, "-pthread", "-fvisibility=hidden"],
        extra_link_args=["-pthread"],
        py_limited_api=True,
    )
    return ffi


def build_in_place() -> Path:
    """Builds the module and puts it into the package; returns where it is."""
    scratch = ROOT / "build" / "native"
    scratch.mkdir(parents=True, exist_ok=True)
    built = Path(builder(None).compile(tmpdir=str(scratch)))
    target = ROOT / "aeron_async" / built.name
    # A new file, never the old one overwritten: a running interpreter may have that mapped.
    staged = target.with_name(target.name + ".new")
    shutil.copy2(built, staged)
    staged.replace(target)
    return target


ffibuilder = builder(Path.cwd())

if __name__ == "__main__":
    print(build_in_place())

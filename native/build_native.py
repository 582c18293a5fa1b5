"""Builds the two faces of the C core: aeron_async._native, through cffi, and aeron_async._speedups for CPython.

setup.py takes both from here; by hand, `python native/build_native.py` builds them into the package in place.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

from cffi import FFI
from setuptools import Distribution, Extension

NATIVE = Path(os.path.abspath(__file__)).parent
ROOT = NATIVE.parent
HEADERS = sorted((NATIVE / "include").glob("*.h"))
SOURCES = sorted((NATIVE / "src").glob("*.c"))
STRICT = ["-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types"]


def fingerprint() -> str:
    """What both faces carry, so that one which was built from another core is noticed."""
    digest = hashlib.sha256()
    for path in [*HEADERS, *SOURCES]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def docstrings() -> Iterator[str]:
    """Lines of C that define the docstrings of the pure face's classes, for those in C that stand beside them."""
    for path in sorted((ROOT / "aeron_async").glob("_pure_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                yield f"#define AA_DOC_{node.name} {json.dumps(ast.get_docstring(node) or '')}"
                for method in node.body:
                    if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                        text = f"{method.name}({text_signature(method.args)})\n--\n\n{ast.get_docstring(method) or ''}"
                        yield f"#define AA_DOC_{node.name}_{method.name} {json.dumps(text)}"


def text_signature(arguments: ast.arguments) -> str:
    """The arguments as inspect.signature reads them from a docstring: no types, and no defaults but constants."""
    arguments.args[0].arg = "$self"
    for argument in [*arguments.args, *arguments.kwonlyargs]:
        argument.annotation = None
    for defaults in (arguments.defaults, arguments.kw_defaults):
        for index, default in enumerate(defaults):
            if default is not None and not isinstance(default, ast.Constant):
                defaults[index] = ast.Constant(...)
    return ast.unparse(arguments)


def write_docstrings() -> Path:
    """Writes docstrings.h; returns its folder."""
    folder = ROOT / "build" / "native"
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(docstrings()) + "\n"
    header = folder / "docstrings.h"
    if not header.exists() or header.read_text() != text:
        header.write_text(text)
    return folder


class Builders:
    """Both modules, with their paths relative to a folder, as setuptools wants them, or absolute."""

    def __init__(self, relative_to: Path | None) -> None:
        def spell(*paths: Path) -> list[str]:
            return [str(path) if relative_to is None else os.path.relpath(path, relative_to) for path in paths]

        core = spell(*SOURCES)
        common = {
            "include_dirs": spell(NATIVE / "include"),
            "extra_compile_args": ["-std=c11", "-O3", "-Wall", "-Wextra", *STRICT, "-pthread", "-fvisibility=hidden"],
            "extra_link_args": ["-pthread"],
        }
        macros = [("AA_FINGERPRINT", f'"{fingerprint()}"')]

        self.native = FFI()
        self.native.cdef((NATIVE / "cdef.h").read_text())
        self.native.set_source(
            "aeron_async._native",
            "\n".join(f'#include "{header.name}"' for header in HEADERS),
            sources=core,
            depends=spell(*HEADERS, NATIVE / "cdef.h"),
            define_macros=[*macros, ("Py_LIMITED_API", "0x030B0000")],
            py_limited_api=True,
            **common,
        )

        self.speedups: list[Extension] = []
        if platform.python_implementation() == "CPython":
            folder = NATIVE / "speedups"
            generated = write_docstrings()
            self.speedups.append(
                Extension(
                    "aeron_async._speedups",
                    core + spell(*sorted(folder.glob("*.c"))),
                    depends=spell(*HEADERS, *sorted(folder.glob("*.h")), generated / "docstrings.h"),
                    define_macros=macros,
                    **common | {"include_dirs": [*common["include_dirs"], *spell(generated)]},
                )
            )


def build_in_place() -> list[Path]:
    """Builds the modules and puts them into the package; returns where they are."""
    scratch = ROOT / "build" / "native"
    scratch.mkdir(parents=True, exist_ok=True)
    builders = Builders(None)
    modules = [builders.native.distutils_extension(str(scratch)), *builders.speedups]
    command = Distribution({"ext_modules": modules}).get_command_obj("build_ext")
    command.build_lib = command.build_temp = str(scratch)
    command.ensure_finalized()
    command.run()
    return [put_into_package(Path(built)) for built in command.get_outputs()]


def put_into_package(built: Path) -> Path:
    target = ROOT / "aeron_async" / built.name
    # A new file, never the old one overwritten: a running interpreter may have that mapped.
    staged = target.with_name(target.name + ".new")
    shutil.copy2(built, staged)
    return staged.replace(target)


relative = Builders(Path.cwd())
ffibuilder = relative.native
speedups = relative.speedups

if __name__ == "__main__":
    for path in build_in_place():
        print(path)

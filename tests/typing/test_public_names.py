"""What the package exports is documented, and the user program uses all of it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import aeron_async
from aeron_async import rpc

PACKAGES = (aeron_async, rpc)
EXPORTED = [(package, name) for package in PACKAGES for name in package.__all__]
PROGRAM = Path(__file__).with_name("user_program.py")

# How the conductor makes a `PublicationError` and a `ClientClosedError`.
INTERNAL = {"of"}


def own_bases(cls: type) -> list[type]:
    return [base for base in cls.__mro__ if base.__module__.partition(".")[0] == "aeron_async"]


def described_members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that this package gives a class."""
    for base in own_bases(cls):
        for name, member in vars(base).items():
            is_described = isinstance(member, classmethod | staticmethod | property) or inspect.isroutine(member)
            if is_described and not name.startswith("_"):
                yield name, member


def attributes(cls: type) -> Iterator[str]:
    """The public data of a class: its constants, fields, and what its constructor sets."""
    for base in own_bases(cls):
        names = (*vars(base), *inspect.get_annotations(base), *assigned_to_self(base))
        yield from (name for name in names if not name.startswith("_"))


def assigned_to_self(cls: type) -> Iterator[str]:
    if cls.__module__ == "aeron_async._speedups":
        return
    for node in ast.walk(ast.parse(inspect.getsource(cls))):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name


def names_in(source: str) -> set[str]:
    """Every name, attribute, keyword argument and key that a program has."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                names.add(name)
            case ast.Dict(keys=keys):
                names |= {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
    return names


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_a_package_says_what_it_is(package: ModuleType) -> None:
    assert package.__doc__
    assert sorted(set(package.__all__)) == sorted(package.__all__)


@pytest.mark.parametrize(("package", "name"), EXPORTED, ids=[name for _, name in EXPORTED])
def test_a_public_name_has_its_docstring(package: ModuleType, name: str) -> None:
    exported = getattr(package, name)
    # A dataclass or a named tuple without a docstring is given its signature for one.
    assert (exported.__doc__ or "").strip()
    assert not exported.__doc__.startswith(f"{name}(")
    if inspect.isclass(exported):
        members = dict(described_members(exported))
        assert [member for member in members if not inspect.getdoc(getattr(exported, member))] == []


def test_the_user_program_uses_every_public_name() -> None:
    used = names_in(PROGRAM.read_text())
    public = {name for _, name in EXPORTED}
    for package, exported in EXPORTED:
        cls = getattr(package, exported)
        if inspect.isclass(cls):
            public |= {f"{exported}.{name}" for name in attributes(cls)}
    assert sorted(name for name in public if name.rpartition(".")[2] not in used | INTERNAL) == []

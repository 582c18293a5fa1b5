"""The shape that the records of the protocol share: fixed fields, then fields that carry their length."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from struct import Struct
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["BYTES", "PATH", "TEXT", "MalformedRecord", "Record", "VariableField", "align", "unpack"]


class MalformedRecord(ValueError):
    """A record is too short, or a length inside it does not fit."""


@dataclass(frozen=True, slots=True)
class VariableField:
    """How the bytes of a field that carries its length become a value, and back.

    The length, and so the field, starts at a multiple of the length's own size.
    """

    length: Struct
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


_INT32 = Struct("<i")

BYTES = VariableField(_INT32, bytes, bytes)
# Aeron calls its texts ASCII, but the C driver passes bytes on as they come: UTF-8 reads both.
TEXT = VariableField(_INT32, lambda text: text.encode(), lambda raw: raw.decode(errors="replace"))
# A file name must reach open() unchanged, whatever its encoding.
PATH = VariableField(
    _INT32, lambda path: path.encode(errors="surrogateescape"), lambda raw: raw.decode(errors="surrogateescape")
)


def align(length: int, alignment: int) -> int:
    """Round `length` up to a multiple of `alignment`, a power of two."""
    return (length + alignment - 1) & ~(alignment - 1)


def unpack(layout: Struct, view: memoryview, offset: int, name: str) -> tuple[Any, ...]:
    """Read `layout` at `offset`. Raises `MalformedRecord`, which calls the record `name`, where `view` ends before."""
    if offset + layout.size > len(view):
        raise MalformedRecord(f"{name} is too short: {len(view)} bytes, needs {offset + layout.size}")
    return layout.unpack_from(view, offset)


@dataclass(frozen=True, slots=True)
class Record:
    """A little-endian record. A subclass names its fields in the order of the wire.

    `FIXED` is the layout of the fields that come first, `VARIABLE` tells those that follow.
    """

    FIXED: ClassVar[Struct]
    VARIABLE: ClassVar[tuple[VariableField, ...]] = ()
    MINIMUM_LENGTH: ClassVar[int] = 0
    """What `encode` pads a shorter record to, with zeros."""

    def encode(self) -> bytes:
        """Return the bytes of this record. Raises `ValueError` where a value does not fit its field."""
        values = [getattr(self, field.name) for field in fields(self)]
        fixed_count = len(values) - len(self.VARIABLE)
        try:
            encoded = bytearray(self.FIXED.pack(*values[:fixed_count]))
        except struct.error as error:
            raise ValueError(f"{error} in {self}") from None
        for variable, value in zip(self.VARIABLE, values[fixed_count:], strict=True):
            raw = variable.encode(value)
            padding = align(len(encoded), variable.length.size) - len(encoded)
            encoded += bytes(padding) + variable.length.pack(len(raw)) + raw
        return bytes(encoded.ljust(self.MINIMUM_LENGTH, b"\0"))

    @classmethod
    def decode(cls, buffer: ReadableBuffer) -> Self:
        """Read a record from the start of `buffer`, which may be longer. Raises `MalformedRecord`."""
        with memoryview(buffer) as view:
            values = list(unpack(cls.FIXED, view, 0, cls.__name__))
            offset = cls.FIXED.size
            for variable in cls.VARIABLE:
                offset = align(offset, variable.length.size)
                (length,) = unpack(variable.length, view, offset, cls.__name__)
                offset += variable.length.size
                if not 0 <= length <= len(view) - offset:
                    raise MalformedRecord(
                        f"{cls.__name__} has a length that does not fit: {length} at byte {offset} of {len(view)}"
                    )
                values.append(variable.decode(bytes(view[offset : offset + length])))
                offset += length
        construct: Callable[..., Self] = cls
        return construct(*values)

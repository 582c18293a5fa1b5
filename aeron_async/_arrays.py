"""numpy views over memory that is there already; numpy itself is optional."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
    from _typeshed import ReadableBuffer
    from numpy.typing import DTypeLike


@cache
def _numpy() -> Any:
    try:
        import numpy
    except ImportError as error:
        raise ImportError("as_array needs numpy: pip install 'aeron-async[numpy]'") from error
    return numpy


def dtype_of(dtype: DTypeLike) -> numpy.dtype[Any]:
    """What numpy makes of `dtype`.

    Raises `ImportError` without numpy, `TypeError` for what is no dtype, `ValueError` for one of Python objects, which
    would be pointers that somebody else made up.
    """
    record: numpy.dtype[Any] = _numpy().dtype(dtype)
    if record.hasobject:
        raise ValueError(f"messages hold no Python objects, as records of {record} would")
    return record


def array_over(
    buffer: ReadableBuffer, dtype: numpy.dtype[Any], count: int, *, offset: int = 0, stride: int | None = None
) -> numpy.ndarray[Any, Any]:
    """`count` records of `buffer` from `offset` on, `stride` bytes apart, without a copy."""
    array: numpy.ndarray[Any, Any] = _numpy().ndarray(
        (count,), dtype, buffer, offset, None if stride is None else (stride,)
    )
    return array

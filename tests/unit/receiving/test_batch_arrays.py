"""Batches as numpy arrays, and what happens without numpy."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from aeron_async import _arrays
from aeron_async.subscription import Image, MessageBatch, Subscription
from tests.unit.rig import ImageStream


def test_payloads_of_one_size_become_an_array(source: Subscription | Image, stream: ImageStream) -> None:
    ticks = np.array([(1, 2.5), (2, -1.0), (3, 0.0)], dtype=[("time", "i8"), ("price", "f8")])
    for tick in ticks:
        stream.log.append(tick.tobytes())
    batch = source.poll_batch()
    array = batch.as_array(ticks.dtype)
    assert array.shape == (3,)
    assert (array == ticks).all()
    assert np.shares_memory(array, np.frombuffer(batch.buffer, dtype=np.uint8))
    assert not array.flags.writeable


def test_fragmented_payloads_become_an_array_too(source: Subscription | Image, stream: ImageStream) -> None:
    rows = np.arange(3000, dtype="i4").reshape(3, 1000)
    for row in rows:
        stream.log.append(row.tobytes())
    assert (source.poll_batch().as_array(np.dtype(("i4", (1000,)))) == rows).all()


@pytest.mark.parametrize("dtype", ["i8", np.float64, float, np.dtype("M8[ns]"), "S8", "V8", ("i4", (2,))])
def test_a_dtype_is_whatever_numpy_takes_for_one(
    subscription: Subscription, stream: ImageStream, dtype: np.typing.DTypeLike
) -> None:
    stream.log.append(bytes(8))
    array = subscription.poll_batch().as_array(dtype)
    assert array.nbytes == 8
    assert array.tobytes() == bytes(8)


@pytest.mark.parametrize("sizes", [(8, 7), (7, 8), (8, 0, 16), (4,)])
def test_payloads_of_other_sizes_are_refused(
    subscription: Subscription, stream: ImageStream, sizes: tuple[int, ...]
) -> None:
    for size in sizes:
        stream.log.append(bytes(size))
    batch = subscription.poll_batch()
    first = next(index for index, size in enumerate(sizes) if size != 8)
    with pytest.raises(ValueError, match=f"message {first} has {sizes[first]} bytes, a record 8 "):
        batch.as_array("i8")


def test_an_empty_batch_is_an_empty_array(subscription: Subscription, stream: ImageStream) -> None:
    array = subscription.poll_batch().as_array("i8")
    assert array.shape == (0,)
    assert array.dtype == np.int64


@pytest.mark.parametrize("dtype", [object, [("a", "i4"), ("b", object)], np.dtypes.StringDType()])
def test_a_dtype_that_holds_pointers_is_refused(
    subscription: Subscription, stream: ImageStream, dtype: np.typing.DTypeLike
) -> None:
    stream.log.append(bytes(np.dtype(dtype).itemsize))
    with pytest.raises(ValueError, match="Python objects"):
        subscription.poll_batch().as_array(dtype)


def test_what_is_no_dtype_is_refused(subscription: Subscription, stream: ImageStream) -> None:
    with pytest.raises(TypeError):
        subscription.poll_batch().as_array("no such dtype")


def test_an_array_outlives_its_batch(subscription: Subscription, stream: ImageStream) -> None:
    stream.log.append((7).to_bytes(8, "little"))
    array = subscription.poll_batch().as_array("i8")
    for _ in range(10):
        stream.log.append(bytes(8))
        subscription.poll_batch()
    assert array.tolist() == [7]


@pytest.mark.parametrize("kind", ["batch", "block"])
def test_without_numpy_the_error_says_what_to_install(
    subscription: Subscription, stream: ImageStream, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream.log.append(bytes(8))
    monkeypatch.setitem(sys.modules, "numpy", None)
    monkeypatch.setattr(_arrays, "_numpy", _arrays._numpy.__wrapped__)
    hint = r"numpy.*aeron-async\[numpy\]"
    if kind == "batch":
        batch: MessageBatch = subscription.poll_batch()
        with pytest.raises(ImportError, match=hint):
            batch.as_array("i8")
        assert list(batch) == [bytes(8)]
    else:
        with stream.image.block(1000) as block, pytest.raises(ImportError, match=hint):
            block.as_array("i8")

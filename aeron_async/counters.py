"""The driver's counters: reading all of them, and owning some."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from aeron_async._closing import ClosedOnExit
from aeron_async._control import Control
from aeron_async._core import Cnc
from aeron_async._native import ffi, lib
from aeron_async.errors import CounterClosedError


class CounterInfo(NamedTuple):
    """A snapshot of one counter."""

    id: int
    type_id: int
    key: bytes
    label: str
    value: int
    registration_id: int
    owner_id: int
    reference_id: int
    state: int
    """1 allocated, -1 reclaimed, 0 unused."""


class CountersReader:
    """All counters of the driver. Iterating gives those that are allocated. Source: Aeron's `CountersReader`."""

    def __init__(self, cnc: Cnc) -> None:
        self._cnc = cnc.handle
        self._info = ffi.new("aa_counter_info_t *")

    @property
    def max_counter_id(self) -> int:
        """The largest id that the counters file has room for."""
        return int(lib.aa_counters_max_id(self._cnc))

    def __iter__(self) -> Iterator[CounterInfo]:
        for counter_id in range(self.max_counter_id + 1):
            state = self._read(counter_id)
            if state == lib.AA_COUNTER_UNUSED:
                return
            if state == lib.AA_COUNTER_ALLOCATED:
                yield self._snapshot()

    def __getitem__(self, counter_id: int) -> int:
        """The value of a counter. Raises `IndexError` outside the counters file."""
        if not 0 <= counter_id <= self.max_counter_id:
            raise IndexError(f"counter id {counter_id} is outside 0..{self.max_counter_id}")
        self._read(counter_id)
        return int(self._info.value)

    def find(
        self, *, type_id: int | None = None, registration_id: int | None = None, label: str | None = None
    ) -> list[CounterInfo]:
        """The allocated counters that match all that is given; `label` matches anywhere in theirs."""
        return [
            info
            for info in self
            if (type_id is None or info.type_id == type_id)
            and (registration_id is None or info.registration_id == registration_id)
            and (label is None or label in info.label)
        ]

    def snapshot(self, counter_id: int) -> CounterInfo:
        """The record of one counter, whatever its state. Raises `IndexError` outside the counters file."""
        if not 0 <= counter_id <= self.max_counter_id:
            raise IndexError(f"counter id {counter_id} is outside 0..{self.max_counter_id}")
        self._read(counter_id)
        return self._snapshot()

    def _read(self, counter_id: int) -> int:
        lib.aa_counters_read(self._cnc, counter_id, self._info)
        return int(self._info.state)

    def _snapshot(self) -> CounterInfo:
        info = self._info
        return CounterInfo(
            id=info.id,
            type_id=info.type_id,
            key=bytes(info.key),
            label=bytes(info.label)[: info.label_length].decode(errors="replace"),
            value=info.value,
            registration_id=info.registration_id,
            owner_id=info.owner_id,
            reference_id=info.reference_id,
            state=info.state,
        )


class Counter(ClosedOnExit):
    """A counter that this client may write to. Obtained from `Client.add_counter` and `Client.add_static_counter`.

    Source: Aeron's `Counter`.
    """

    def __init__(
        self,
        handle: Any,
        control: Control,
        *,
        id: int,
        registration_id: int,
        label: str,
        correlation_id: int | None = None,
    ) -> None:
        self._handle = handle
        self._control = control
        self._closed = False
        self._correlation_id = registration_id if correlation_id is None else correlation_id
        self.id = id
        self.registration_id = registration_id
        """The correlation id of the command that added it; of a static counter: the id it was added with."""
        self.label = label

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, by itself or with its client."""
        return self._closed

    @property
    def value(self) -> int:
        """The value, a signed 64-bit number; after close the last one. Setting it raises `CounterClosedError` then."""
        return int(lib.aa_counter_value(self._handle))

    @value.setter
    def value(self, value: int) -> None:
        self._check_open()
        lib.aa_counter_set(self._handle, value)

    def increment(self, n: int = 1) -> int:
        """Adds `n`, atomically. Returns the value after it."""
        self._check_open()
        return int(lib.aa_counter_add(self._handle, n)) + n

    def get_and_set(self, value: int) -> int:
        """Sets the value, atomically. Returns the one before."""
        self._check_open()
        return int(lib.aa_counter_get_and_set(self._handle, value))

    def compare_and_set(self, expected: int, value: int) -> bool:
        """Sets the value where it is `expected`, atomically. Returns whether it was."""
        self._check_open()
        return bool(lib.aa_counter_compare_and_set(self._handle, expected, value))

    async def aclose(self) -> None:
        """Gives the counter back to the driver, or lets go of a static one; again it does nothing."""
        await self._control.close_resource(self._correlation_id)

    def __repr__(self) -> str:
        return f"<Counter id={self.id} label={self.label!r} value={self.value} is_closed={self._closed}>"

    def _close(self) -> None:
        self._closed = True
        lib.aa_counter_close(self._handle)

    def _check_open(self) -> None:
        if self._closed:
            self._control.check_process()
            raise self._control.closed_error(CounterClosedError)

"""The parked readers, in whatever process, that the publications of one client wake."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from aeron_async._core import Cnc
from aeron_async._log import log
from aeron_async._native import lib
from aeron_async._wake_counters import WAKE_COUNTER_KEY, WAKE_COUNTER_TYPE_ID
from aeron_async._wake_fifos import WakeFifos
from aeron_async.counters import CounterInfo, CountersReader

if TYPE_CHECKING:
    from aeron_async.publication import Publication


class _Target(NamedTuple):
    counter_id: int
    client_id: int


class _Stream:
    def __init__(self) -> None:
        self.publications: list[Publication] = []
        self.targets: dict[int, _Target] = {}
        """By the registration ids of their wake counters."""


class WakeTargets:
    """Brings publications and the wake counters of their streams together, as both come and go."""

    def __init__(self, cnc: Cnc, fifos: WakeFifos) -> None:
        self._cnc = cnc
        self._counters = CountersReader(cnc)
        self._fifos = fifos
        self._streams: dict[int, _Stream] = {}
        """By their ids: those that are published to."""
        self._stream_ids: dict[int, int] = {}
        """By the registration ids of their wake counters."""
        self._descriptors: dict[int, tuple[int, set[int]]] = {}
        """By client id: what wakes the client, and the registration ids of the wake counters that it is for."""

    def publication_added(self, publication: Publication) -> None:
        """From now on the publication wakes whoever waits for its stream."""
        stream = self._streams.setdefault(publication.stream_id, _Stream())
        stream.publications.append(publication)
        for registration_id, target in stream.targets.items():
            self._connect(publication, registration_id, target)
        counter_id = -1
        while (counter_id := self._next_counter(publication.stream_id, counter_id + 1)) >= 0:
            self._learn(self._counters.snapshot(counter_id))

    def publication_closed(self, publication: Publication) -> None:
        """The publication wakes nobody any more."""
        stream = self._streams.get(publication.stream_id)
        if stream is None or publication not in stream.publications:
            return
        stream.publications.remove(publication)
        lib.aa_publication_remove_waiter(publication._handle, 0)
        if not stream.publications:
            del self._streams[publication.stream_id]
            for registration_id, target in stream.targets.items():
                self._forget(registration_id, target)

    def counter_added(self, counter_id: int, registration_id: int) -> None:
        """Some client has a new counter."""
        if 0 <= counter_id <= self._counters.max_counter_id:
            info = self._counters.snapshot(counter_id)
            if info.registration_id == registration_id:
                self._learn(info)

    def counter_removed(self, registration_id: int) -> None:
        """Some client's counter has gone."""
        if registration_id in self._stream_ids:
            stream = self._streams[self._stream_ids[registration_id]]
            for publication in stream.publications:
                lib.aa_publication_remove_waiter(publication._handle, registration_id)
            self._forget(registration_id, stream.targets.pop(registration_id))

    def _next_counter(self, stream_id: int, from_id: int) -> int:
        found: int = lib.aa_counters_next(self._cnc.handle, WAKE_COUNTER_TYPE_ID, stream_id, from_id)
        return found

    def _learn(self, info: CounterInfo) -> None:
        if info.type_id != WAKE_COUNTER_TYPE_ID or info.state != lib.AA_COUNTER_ALLOCATED:
            return
        (stream_id,) = WAKE_COUNTER_KEY.unpack_from(info.key)
        stream = self._streams.get(stream_id)
        if stream is None or info.registration_id in stream.targets:
            return
        target = _Target(info.id, info.owner_id)
        try:
            self._open(info.registration_id, target)
        except OSError as error:
            # Its own watcher wakes it.
            log.info("reader_not_woken_directly", client_id=target.client_id, error=str(error))
            return
        stream.targets[info.registration_id] = target
        self._stream_ids[info.registration_id] = stream_id
        for publication in stream.publications:
            self._connect(publication, info.registration_id, target)

    def _connect(self, publication: Publication, registration_id: int, target: _Target) -> None:
        descriptor, _ = self._descriptors[target.client_id]
        lib.aa_publication_add_waiter(publication._handle, target.counter_id, registration_id, descriptor)

    def _open(self, registration_id: int, target: _Target) -> None:
        if target.client_id not in self._descriptors:
            self._descriptors[target.client_id] = (self._fifos.open(target.client_id), set())
        self._descriptors[target.client_id][1].add(registration_id)

    def _forget(self, registration_id: int, target: _Target) -> None:
        """No publication signals it any more."""
        del self._stream_ids[registration_id]
        descriptor, users = self._descriptors[target.client_id]
        users.remove(registration_id)
        if not users:
            del self._descriptors[target.client_id]
            os.close(descriptor)

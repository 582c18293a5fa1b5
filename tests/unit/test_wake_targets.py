"""Whom publications wake: the owners of wake counters, as both come and go."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeron_async._wake_counters import WAKE_COUNTER_TYPE_ID
from aeron_async._wake_fifos import WakeFifos
from aeron_async._wake_targets import WakeTargets
from aeron_async.publication import Publication
from tests.fakes import FakeCounter, FakeDriver
from tests.unit.rig import STREAM_ID, Rig

OWNER = 77


@pytest.fixture
def fifos(tmp_path: Path) -> WakeFifos:
    return WakeFifos(tmp_path / "driver")


@pytest.fixture
def fifo(fifos: WakeFifos) -> Iterator[int]:
    descriptor = fifos.create(OWNER)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def targets(rig: Rig, fifos: WakeFifos) -> WakeTargets:
    return WakeTargets(rig.cnc, fifos)


@pytest.fixture
def publication(rig: Rig) -> Publication:
    return rig.add_publication().publication


def add_counter(
    driver: FakeDriver, registration_id: int, *, stream_id: int = STREAM_ID, owner_id: int = OWNER
) -> FakeCounter:
    return driver.allocate_counter(
        WAKE_COUNTER_TYPE_ID, key=struct.pack("<i", stream_id), registration_id=registration_id, owner_id=owner_id
    )


def is_signalled(publication: Publication, counter: FakeCounter, registration_id: int, fifo: int) -> bool:
    """Whether a message of the publication wakes the counter's owner, once, where that waits."""
    counter.value = registration_id
    assert publication.offer(b"message") > 0
    assert publication.offer(b"message") > 0
    try:
        signals = os.read(fifo, 64)
    except BlockingIOError:
        signals = b""
    assert (counter.value, len(signals)) in ((0, 1), (registration_id, 0))
    return counter.value == 0


def test_counters_that_come_before_and_after_a_publication_are_known(
    driver: FakeDriver, targets: WakeTargets, publication: Publication, fifo: int
) -> None:
    before = add_counter(driver, 501)
    targets.publication_added(publication)
    after = add_counter(driver, 502)
    targets.counter_added(after.id, 502)
    assert is_signalled(publication, before, 501, fifo)
    assert is_signalled(publication, after, 502, fifo)


def test_counters_of_other_streams_and_types_are_left_alone(
    driver: FakeDriver, targets: WakeTargets, publication: Publication, fifo: int
) -> None:
    targets.publication_added(publication)
    other_stream = add_counter(driver, 501, stream_id=STREAM_ID + 1)
    other_type = driver.allocate_counter(1234, key=struct.pack("<i", STREAM_ID), registration_id=502, owner_id=OWNER)
    for counter, registration_id in ((other_stream, 501), (other_type, 502)):
        targets.counter_added(counter.id, registration_id)
        assert not is_signalled(publication, counter, registration_id, fifo)


def test_news_of_a_counter_that_is_another_ones_by_now_are_ignored(
    driver: FakeDriver, targets: WakeTargets, publication: Publication, fifo: int
) -> None:
    targets.publication_added(publication)
    counter = add_counter(driver, 502)
    targets.counter_added(counter.id, 501)
    targets.counter_added(1 << 20, 502)
    targets.counter_added(-1, 502)
    assert not is_signalled(publication, counter, 502, fifo)


def test_all_publications_of_a_stream_signal_until_they_are_closed(
    rig: Rig, driver: FakeDriver, targets: WakeTargets, publication: Publication, fifo: int
) -> None:
    targets.publication_added(publication)
    counter = add_counter(driver, 501)
    targets.counter_added(counter.id, 501)
    other = rig.add_exclusive_publication().publication
    targets.publication_added(other)
    targets.counter_added(counter.id, 501)
    assert is_signalled(publication, counter, 501, fifo)
    assert is_signalled(other, counter, 501, fifo)
    targets.publication_closed(publication)
    targets.publication_closed(publication)
    assert not is_signalled(publication, counter, 501, fifo)
    assert is_signalled(other, counter, 501, fifo)


def test_counters_that_have_gone_are_not_signalled_and_leave_no_descriptor_open(
    driver: FakeDriver, targets: WakeTargets, publication: Publication, fifo: int
) -> None:
    open_before = len(os.listdir("/proc/self/fd"))
    targets.publication_added(publication)
    counters = {registration_id: add_counter(driver, registration_id) for registration_id in (501, 502)}
    for registration_id, counter in counters.items():
        targets.counter_added(counter.id, registration_id)
    assert len(os.listdir("/proc/self/fd")) == open_before + 1
    targets.counter_removed(501)
    targets.counter_removed(501)
    assert not is_signalled(publication, counters[501], 501, fifo)
    assert is_signalled(publication, counters[502], 502, fifo)
    targets.publication_closed(publication)
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_who_cannot_be_signalled_does_not_hold_up_the_others(
    driver: FakeDriver, targets: WakeTargets, publication: Publication, fifo: int
) -> None:
    without_fifo = add_counter(driver, 501, owner_id=OWNER + 1)
    counter = add_counter(driver, 502)
    targets.publication_added(publication)
    assert not is_signalled(publication, without_fifo, 501, fifo)
    assert is_signalled(publication, counter, 502, fifo)

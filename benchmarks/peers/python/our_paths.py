"""The ways to send and to receive with this library, as the loops of `loops.py` use them."""

from __future__ import annotations

from aeron_async import ExclusivePublication, Subscription
from aeron_async.protocol.frames import compute_aligned_frame_length
from benchmarks.harness.ticks import TICK, Sums
from benchmarks.peers.python import columns, messages
from benchmarks.peers.python.messages import Messages, Totals


class Lists:
    """`offer_many`, and batches as the bytes objects that they are a sequence of."""

    def __init__(self, publication: ExclusivePublication, subscription: Subscription, size: int, is_full: bool) -> None:
        self._publication, self._subscription = publication, subscription
        self._messages, self._is_full = Messages(size, is_full), is_full

    async def send(self, first: int, count: int) -> None:
        pending = self._messages.take(first, count)
        while pending:
            pending = pending[max(0, self._publication.offer_many(pending)) :]

    async def receive(self, count: int) -> Totals:
        totals = Totals()
        while totals.messages < count:
            batch = self._subscription.poll_batch(count - totals.messages)
            totals += messages.total_of(batch) if self._is_full else Totals(len(list(batch)))
        return totals


class Columns:
    """`offer_array`, and batches as arrays."""

    def __init__(self, publication: ExclusivePublication, subscription: Subscription, size: int, is_full: bool) -> None:
        self._publication, self._subscription = publication, subscription
        self._records, self._is_full = columns.Records(size, is_full), is_full
        self._dtype = columns.record_type(size)

    async def send(self, first: int, count: int) -> None:
        pending = self._records.take(first, count)
        while len(pending):
            pending = pending[max(0, self._publication.offer_array(pending)) :]

    async def receive(self, count: int) -> Totals:
        totals = Totals()
        while totals.messages < count:
            totals += self._total(self._subscription.poll_batch(count - totals.messages).as_array(self._dtype))
        return totals

    def _total(self, records: columns.Array) -> Totals:
        return columns.total_of(records) if self._is_full else Totals(len(records))


class Blocks(Columns):
    """`offer_array`, and blocks of the log as arrays in place."""

    async def receive(self, count: int) -> Totals:
        totals = Totals()
        image = self._subscription.images[0]
        frame = compute_aligned_frame_length(self._dtype.itemsize)
        while totals.messages < count:
            with image.block((count - totals.messages) * frame) as block:
                totals += self._total(block.as_array(self._dtype))
        return totals


class Tasks:
    """`await publish`, and `async for` over payloads."""

    def __init__(self, publication: ExclusivePublication, subscription: Subscription, size: int, is_full: bool) -> None:
        self._publication = publication
        self._payloads = subscription.payloads()
        self._messages = Messages(size, is_full)
        self._is_full = is_full

    async def send(self, first: int, count: int) -> None:
        publish = self._publication.publish
        for message in self._messages.take(first, count):
            await publish(message)

    async def receive(self, count: int) -> Totals:
        return await (self._decode(count) if self._is_full else self._count(count))

    async def _count(self, count: int) -> Totals:
        left = count
        async for _ in self._payloads:
            left -= 1
            if not left:
                break
        return Totals(count)

    async def _decode(self, count: int) -> Totals:
        unpack = TICK.unpack_from
        left, instruments, sequences = count, 0, 0
        bids = asks = 0.0
        async for payload in self._payloads:
            instrument, bid, ask, sequence = unpack(payload)
            instruments += instrument
            bids += bid
            asks += ask
            sequences += sequence
            left -= 1
            if not left:
                break
        return Totals(count, Sums(instruments, bids, asks, sequences))


class Receiving(Tasks):
    """`async for` over payloads that came by the quickest way, which is not timed."""

    async def send(self, first: int, count: int) -> None:
        pending = self._messages.take(first, count)
        while pending:
            pending = pending[max(0, self._publication.offer_many(pending)) :]

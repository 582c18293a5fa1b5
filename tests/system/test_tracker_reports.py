"""What users of other Aeron clients have reported to their trackers, on a real driver.

Reports that a row of the parity table covers are among that row's tests.
"""

from __future__ import annotations

import random
import socket
from collections.abc import AsyncIterator

import anyio
import anyio.lowlevel
import pytest

from aeron_async import (
    ChannelError,
    ChannelUri,
    Client,
    MessageTooLongError,
    OfferResult,
    Publication,
    RegistrationError,
    Subscription,
)
from aeron_async.protocol.counter_types import CounterType
from aeron_async.protocol.frames import DATA_HEADER_LENGTH, DataHeader, FrameFlags, compute_aligned_frame_length
from tests.support import LIMIT, eventually, free_udp_port, open_pair, sealed, take, unseal

pytestmark = pytest.mark.anyio

TERM_LENGTH = 64 << 10


@pytest.fixture(params=["shared", "exclusive"])
def exclusive(request: pytest.FixtureRequest) -> bool:
    return request.param == "exclusive"


@pytest.fixture
async def pair(
    client: Client, channel: str, stream_id: int, exclusive: bool
) -> AsyncIterator[tuple[Publication, Subscription]]:
    """A publication of each kind on each medium, and its only subscription."""
    publication, subscription = await open_pair(client, channel, stream_id, exclusive=exclusive)
    async with publication, subscription:
        yield publication, subscription


# --- Channels: a name is the whole name -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["m", "mt", "mtux", "mtu-length", "xmtu"])
async def test_a_parameter_whose_name_begins_like_another_is_not_that_one(
    client: Client, stream_id: int, name: str
) -> None:
    with pytest.raises(ChannelError, match=f"'{name}'"):
        ChannelUri.parse(f"aeron:ipc?{name}=8k")
    ordinary = await client.add_exclusive_publication("aeron:ipc", stream_id)
    other = await client.add_exclusive_publication(f"aeron:ipc?{name}=8k", stream_id)
    assert other.max_payload_length == ordinary.max_payload_length != 8192 - DATA_HEADER_LENGTH


async def test_parameters_that_begin_alike_are_read_apart(client: Client, stream_id: int) -> None:
    uri = ChannelUri.parse("aeron:ipc?term-length=128k|term-id=7|term-offset=64|init-term-id=5")
    assert [uri.get(name) for name in ("term-length", "term-id", "term-offset", "init-term-id")] == [
        "128k",
        "7",
        "64",
        "5",
    ]
    assert [uri.get(name) for name in ("term", "tags", "alias")] == [None] * 3
    publication = await client.add_exclusive_publication(uri, stream_id)
    assert (publication.term_buffer_length, publication.initial_term_id) == (128 << 10, 5)
    assert publication.position == 2 * (128 << 10) + 64


# --- Ports: a clash is an error, and the next attempt may succeed -----------------------------------------------------


async def test_a_port_of_somebody_else_is_refused_and_taken_once_it_is_free(client: Client, stream_id: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as somebody:
        somebody.bind(("127.0.0.1", 0))
        channel = f"aeron:udp?endpoint=127.0.0.1:{somebody.getsockname()[1]}"
        for _ in range(3):
            with pytest.raises(RegistrationError, match="in use"):
                await client.add_subscription(channel, stream_id)
    publication, subscription = await open_pair(client, channel, stream_id)
    await publication.publish(b"ours now", timeout=LIMIT)
    assert await take(subscription.payloads(), 1) == [b"ours now"]


async def test_a_port_is_free_again_once_its_subscription_is_closed(client: Client, stream_id: int) -> None:
    port = free_udp_port()
    for number in range(3):
        publication, subscription = await open_pair(client, f"aeron:udp?endpoint=127.0.0.1:{port}", stream_id)
        async with publication, subscription:
            await publication.publish(b"%d" % number, timeout=LIMIT)
            assert await take(subscription.payloads(), 1) == [b"%d" % number]


# --- Connected, and no window yet -------------------------------------------------------------------------------------


async def test_the_first_publish_after_the_connection_succeeds_or_waits(
    client: Client, channel: str, stream_id: int, exclusive: bool
) -> None:
    add = client.add_exclusive_publication if exclusive else client.add_publication
    for _ in range(10):
        async with (
            await client.add_subscription(channel, stream_id) as subscription,
            await add(channel, stream_id) as publication,
        ):
            with anyio.fail_after(LIMIT):
                while not publication.is_connected:
                    await anyio.lowlevel.checkpoint()
            offered = publication.offer(b"offered")
            assert offered > 0 or offered == OfferResult.BACK_PRESSURED
            await publication.publish(b"published", timeout=LIMIT)
            expected = [b"offered", b"published"] if offered > 0 else [b"published"]
            assert await take(subscription.payloads(), len(expected)) == expected


# --- Lengths: nothing, around 8 KiB, and an eighth of a term ----------------------------------------------------------


async def test_a_vector_of_nothing_is_an_empty_message(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    assert publication.offer_vectored([]) == DATA_HEADER_LENGTH
    assert publication.offer_vectored([b"", bytearray()], reserved_value=5) == 2 * DATA_HEADER_LENGTH
    assert await publication.publish_vectored([]) == 3 * DATA_HEADER_LENGTH
    messages = await take(aiter(subscription), 3)
    assert [(bytes(message), message.header.reserved_value) for message in messages] == [(b"", 0), (b"", 5), (b"", 0)]


async def test_no_messages_are_none_appended(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    assert publication.offer_many([]) == publication.offer_repeated(b"never", 0) == 0
    assert publication.offer_array(b"", itemsize=8) == 0
    assert await publication.publish_many([]) == publication.position == 0
    assert len(subscription.poll_batch()) == 0


@pytest.mark.parametrize("mtu", [1408, 8192, 65504])
async def test_messages_around_8_kib_arrive_whole_over_udp(client: Client, stream_id: int, mtu: int) -> None:
    # Two of the longest frames fit into no socket's buffer by default.
    buffers = "|so-sndbuf=192k|so-rcvbuf=192k|rcv-wnd=128k" if mtu > 8192 else ""
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_udp_port()}|mtu={mtu}|term-length=1m{buffers}"
    publication, subscription = await open_pair(client, channel, stream_id)
    assert publication.max_payload_length == mtu - DATA_HEADER_LENGTH
    lengths = [8192 + difference for difference in (-65, -64, -33, -32, -31, -1, 0, 1, 31, 32, 33, 64, 65)] * 3
    published = [random.Random(number).randbytes(length) for number, length in enumerate(lengths)]

    async def publish() -> None:
        for data in published:
            await publication.publish(data, timeout=LIMIT)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish)
        assert await take(subscription.payloads(), len(published)) == published


@pytest.mark.parametrize(
    ("term_length", "limit"),
    [("64k", 8 << 10), ("128k", 16 << 10), ("1m", 128 << 10), ("64m", 8 << 20), ("256m", 16 << 20), ("1g", 16 << 20)],
)
async def test_a_message_may_be_an_eighth_of_a_term_and_no_more_than_16_mib(
    client: Client, stream_id: int, exclusive: bool, term_length: str, limit: int
) -> None:
    add = client.add_exclusive_publication if exclusive else client.add_publication
    async with await add(ChannelUri.ipc(term_length=term_length, sparse=True), stream_id) as publication:
        assert publication.max_message_length == limit
        with pytest.raises(MessageTooLongError):
            publication.offer(bytes(limit + 1))
        assert publication.offer(bytes(limit)) is OfferResult.NOT_CONNECTED


# --- Positions beyond what 32 bits hold -------------------------------------------------------------------------------


@pytest.mark.parametrize("media", ["ipc", "udp"])
@pytest.mark.parametrize("initial_term_id", [0, (1 << 31) - 2, -(1 << 31)])
@pytest.mark.parametrize("start", [(1 << 31) - 4096, (1 << 32) - 4096, (1 << 45) - 4096])
async def test_positions_go_on_beyond_32_bits(
    client: Client, stream_id: int, media: str, initial_term_id: int, start: int
) -> None:
    channel = ChannelUri.ipc() if media == "ipc" else ChannelUri.udp(endpoint=f"127.0.0.1:{free_udp_port()}")
    subscription = await client.add_subscription(channel, stream_id)
    publication = await client.add_exclusive_publication(
        channel.with_initial_position(start, initial_term_id, TERM_LENGTH), stream_id
    )
    await subscription.wait_connected(LIMIT)
    (image,) = subscription.images
    assert publication.position == image.join_position == image.position == start

    positions = [await publication.publish(sealed(0, number, 1000), timeout=LIMIT) for number in range(10)]
    assert positions[0] < start + 4096 < positions[-1] == publication.position
    messages = await take(aiter(subscription), 10)
    assert [unseal(bytes(message))[1] for message in messages] == list(range(10))
    assert [message.header.position for message in messages] == positions
    assert image.position == positions[-1]
    await eventually(lambda: publication.position_limit > positions[-1])

    # A limit in the middle is a limit there, whatever its low 32 bits are.
    await publication.publish(b"below", timeout=LIMIT)
    limit = publication.position
    await publication.publish(b"above", timeout=LIMIT)
    polled: list[bytes] = []
    with anyio.fail_after(LIMIT):
        while not polled:
            image.bounded_poll(lambda payload, _: polled.append(bytes(payload)), limit)
            await anyio.sleep(0.001)
    assert (polled, image.position) == ([b"below"], limit)
    assert await take(subscription.payloads(), 1) == [b"above"]

    end = publication.position
    counters = {
        CounterType.PUBLISHER_POS: publication.registration_id,
        CounterType.SUBSCRIBER_POSITION: subscription.registration_id,
    }
    for counter_type, registration_id in counters.items():
        await eventually(
            lambda counter_type=counter_type, registration_id=registration_id: (  # type: ignore[misc]
                [info.value for info in client.counters.find(type_id=counter_type, registration_id=registration_id)]
                == [end]
            )
        )
    await publication.aclose()
    await eventually(lambda: image.is_end_of_stream)
    assert image.end_of_stream_position == end


# --- Reserved values: what Aeron's own C client tells its supplier depends on the call --------------------------------


async def test_every_fragment_carries_the_reserved_value_however_it_is_offered(
    pair: tuple[Publication, Subscription],
) -> None:
    publication, subscription = pair
    (image,) = subscription.images
    data = random.Random(1).randbytes(2 * publication.max_payload_length + 100)
    publication.offer(data, reserved_value=-3)
    publication.offer_vectored([data[:50], b"", data[50:]], reserved_value=1 << 40)
    end = publication.position

    stream = bytearray()
    with anyio.fail_after(LIMIT):
        while image.position < end:
            image.block_poll(lambda block, _session_id, _term_id: stream.extend(block), TERM_LENGTH)
            await anyio.sleep(0.001)
    fragments: list[tuple[DataHeader, bytes]] = []
    while stream:
        header = DataHeader.decode(stream)
        fragments.append((header, bytes(stream[DATA_HEADER_LENGTH : header.frame_length])))
        del stream[: compute_aligned_frame_length(header.frame_length - DATA_HEADER_LENGTH)]
    assert [header.reserved_value for header, _ in fragments] == [-3] * 3 + [1 << 40] * 3
    assert [header.flags for header, _ in fragments] == [FrameFlags.BEGIN, 0, FrameFlags.END] * 2
    assert b"".join(payload for _, payload in fragments) == 2 * data

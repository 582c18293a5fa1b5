"""A program that uses every public name, as its user would write it; `test_user_program.py` type-checks and runs it."""

from __future__ import annotations

import array
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import numpy as np

import aeron_async
from aeron_async import (
    Action,
    Backoff,
    BatchPublisher,
    Block,
    BufferClaim,
    BusySpin,
    ChannelParams,
    ChannelUri,
    Client,
    CloseReason,
    Connect,
    Counter,
    CounterInfo,
    CountersReader,
    DriverConfig,
    ExclusivePublication,
    Header,
    IdleStrategy,
    Image,
    MediaDriver,
    Message,
    MessageBatch,
    OfferResult,
    Parking,
    Publication,
    PublicationError,
    Sleeping,
    Subscription,
    Yielding,
    rpc,
)

IPC = "aeron:ipc"
TICK = np.dtype([("id", "<i8"), ("price", "<f8")])


# --- Connecting -------------------------------------------------------------------------------------------------------


def connect(aeron_dir: Path) -> Connect:
    def on_counter(info: CounterInfo) -> None:
        describe_counter(info)

    def on_close(reason: CloseReason) -> None:
        match reason:
            case CloseReason.USER | CloseReason.DRIVER_SHUTDOWN:
                pass
            case CloseReason.DRIVER_TIMEOUT | CloseReason.CLIENT_TIMEOUT | CloseReason.SERVICE_TIMEOUT:
                print("too slow", file=sys.stderr)
            case CloseReason.LAPPED:
                print("overrun", file=sys.stderr)

    def on_error(error: Exception) -> None:
        print(error, file=sys.stderr)

    async def on_publication_error(error: PublicationError) -> None:
        await anyio.lowlevel.checkpoint()
        assert (error.registration_id, error.session_id, error.stream_id) != (0, 0, 0)
        assert error.code
        print(error.message, error.source_address, error.receiver_id, error.group_tag, file=sys.stderr)
        assert error.destination_registration_id is None

    return aeron_async.connect(
        aeron_dir,
        client_name="user program",
        driver_timeout=5.0,
        keepalive_interval=0.2,
        loop_stall_limit=30.0,
        resource_linger=1.0,
        idle=Parking(spin=20e-6),
        on_available_counter=on_counter,
        on_unavailable_counter=on_counter,
        on_publication_error=on_publication_error,
        on_error=on_error,
        on_close=on_close,
    )


async def connect_in_three_forms(aeron_dir: Path) -> None:
    async with connect(aeron_dir) as entered:
        assert not entered.is_closed
    awaited: Client = await connect(aeron_dir)
    assert awaited.aeron_dir == aeron_dir
    assert awaited.client_id > 0
    await awaited.aclose()
    assert await awaited.wait_closed() is awaited.close_reason is CloseReason.USER
    async for client in connect(aeron_dir):
        async with client:
            try:
                await client.next_session_id(1)
            except aeron_async.ClientClosedError as error:
                on_retry: CloseReason = error.reason
                print(on_retry.name, file=sys.stderr)
                continue
            break


@asynccontextmanager
async def driver_in(folder: Path) -> AsyncIterator[MediaDriver]:
    config = DriverConfig(
        aeron_dir=folder / "driver",
        binary=None,
        profile="balanced",
        threading_mode="SHARED_NETWORK",
        term_buffer_length=64 << 10,
        ipc_term_buffer_length=64 << 10,
        term_buffer_sparse_file=False,
        mtu_length=1408,
        ipc_mtu_length=1408,
        client_liveness_timeout=10.0,
        image_liveness_timeout=0.5,
        publication_unblock_timeout=15.0,
        publication_linger_timeout=0.2,
        timer_interval=0.05,
        counters_values_buffer_length=1 << 20,
        resolver_name=None,
        resolver_interface=None,
        resolver_bootstrap_neighbor=None,
        environment={"AERON_DRIVER_TERMINATION_VALIDATOR": "allow"},
    )
    assert config.directory == folder / "driver"
    assert config.build_environment({})["AERON_IPC_TERM_BUFFER_LENGTH"] == "65536"
    driver = MediaDriver(config)
    await driver.start()
    try:
        assert driver.is_alive
        assert driver.pid > 0
        assert driver.version.split(".")
        yield driver
        assert await driver.wait_exit() == 0
    finally:
        await driver.aclose()


# --- Channels and counters --------------------------------------------------------------------------------------------


def channels() -> None:
    params: ChannelParams = {"term_length": "64k", "alias": "ticks"}
    uri = ChannelUri.ipc(**params)
    assert (uri.prefix, uri.media, uri.get("alias"), uri.params["term-length"]) == ("", "ipc", "ticks", "64k")
    assert ChannelUri.parse(str(uri)) == uri
    assert uri.replace(alias=None).get("alias") is None
    assert uri.with_initial_position(1 << 20, 7, 64 << 10).get("init-term-id") == "7"
    ours: ChannelParams = {
        "control": "localhost:40124",
        "control_mode": "dynamic",
        "ttl": 1,
        "mtu": "8k",
        "initial_term_id": 7,
        "term_id": 8,
        "term_offset": 64,
        "session_id": "tag:1002",
        "tags": (1001, 1002),
        "linger": 5.0,
        "eos": True,
        "sparse": False,
        "ssc": True,
        "pub_wnd": 64 << 10,
        "max_resend": 8,
        "fc": "tagged,g:1/2",
        "untethered_window_limit_timeout": "5s",
        "untethered_linger_timeout": 0.1,
        "untethered_resting_timeout": 10,
        "so_sndbuf": "2m",
        "so_tos": 8,
        "channel_snd_ts_offset": "reserved",
        "ats": "false",
    }
    theirs: ChannelParams = {
        "endpoint": "localhost:40123",
        "interface": "127.0.0.1",
        "response_endpoint": "localhost:40125",
        "response_correlation_id": "prototype",
        "stream_id": 1001,
        "reliable": True,
        "tether": True,
        "rejoin": False,
        "group": "infer",
        "gtag": -1,
        "cc": "cubic",
        "rcv_wnd": 128 << 10,
        "nak_delay": "200us",
        "so_rcvbuf": "2m",
        "media_rcv_ts_offset": 0,
        "channel_rcv_ts_offset": 8,
    }
    assert len(ChannelUri.udp(**ours).params) == len(ours)
    assert ChannelUri.spy(ChannelUri.udp(**theirs)).prefix == "aeron-spy"


def describe_counter(info: CounterInfo) -> str:
    identity: tuple[int, int, int, int] = (info.id, info.registration_id, info.owner_id, info.reference_id)
    content: tuple[int, bytes, str, int, int] = (info.type_id, info.key, info.label, info.value, info.state)
    return f"{identity}: {content}"


async def counters(client: Client) -> None:
    reader: CountersReader = client.counters
    async with await client.add_counter(2001, b"key", "label") as counter:
        counter.value = 1
        total: int = counter.increment() + counter.get_and_set(5)
        assert (total, counter.compare_and_set(5, 6), counter.value, counter.label) == (4, True, 6, "label")
        assert reader[counter.id] == 6
        assert reader.snapshot(counter.id).registration_id == counter.registration_id
        (found,) = reader.find(type_id=2001, registration_id=counter.registration_id, label="label")
        assert found.id <= reader.max_counter_id
        assert describe_counter(found) in [describe_counter(info) for info in reader]
    static: Counter = await client.add_static_counter(2002, b"key", "label", 17)
    await static.aclose()
    assert static.is_closed


# --- Publishing -------------------------------------------------------------------------------------------------------


def explain(result: int) -> str:
    match result:
        case OfferResult.NOT_CONNECTED:
            return "nobody there"
        case OfferResult.BACK_PRESSURED | OfferResult.ADMIN_ACTION:
            return "try again"
        case OfferResult.CLOSED | OfferResult.MAX_POSITION_EXCEEDED | OfferResult.ERROR:
            return "never again"
    return f"at {result}"


def describe_publication(publication: Publication) -> str:
    ids = (publication.registration_id, publication.original_registration_id, publication.session_id)
    limits = (publication.term_buffer_length, publication.max_payload_length, publication.max_message_length)
    where = (publication.position, publication.position_limit, publication.available_window)
    state = (publication.is_connected, publication.is_closed, publication.is_exclusive, publication.channel_status)
    stream = (publication.channel, publication.stream_id, publication.initial_term_id)
    return f"{stream} {ids} {limits} {where} {state} {publication.local_socket_addresses}"


async def publish(publication: Publication) -> int:
    """Publishes in every way; how many messages that makes."""
    await publication.wait_connected()
    ticks = np.zeros(2, TICK)
    await publication.publish(b"1", reserved_value=1, timeout=5.0)
    await publication.publish_vectored([b"2", bytearray(b"3"), memoryview(b"4")], timeout=None)
    await publication.publish_many([b"5", array.array("i", [6])])
    await publication.publish_array(ticks)
    with await publication.claim(3) as claim:
        claim.buffer[:] = b"789"
        claim.flags, claim.reserved_value = 0xC0, 8
        assert (claim.length, claim.position) == (3, publication.position)
    results = [
        publication.offer(b"10", reserved_value=2),
        publication.offer_vectored([b"1", b"1"]),
        publication.offer_many([b"12"]),
        publication.offer_array(ticks[:1], itemsize=16),
        publication.offer_repeated(b"14", 1),
    ]
    claimed: BufferClaim | OfferResult = publication.try_claim(2)
    if isinstance(claimed, BufferClaim):
        claimed.buffer[:] = b"15"
        claimed.commit()
    aborted = publication.try_claim(2)
    if isinstance(aborted, BufferClaim):
        aborted.abort()
    assert [explain(result)[:3] for result in results] == ["at "] * 5
    async with BatchPublisher(publication, max_pending=10) as batch:
        batch.publish(b"16")
        assert batch.pending == 1
        await batch.flush(timeout=5.0)
    return 13


async def destinations(client: Client) -> None:
    manual = ChannelUri.udp(control_mode="manual")
    async with (
        await client.add_publication(manual, 5) as publication,
        await client.add_subscription(manual, 5) as subscription,
    ):
        incoming: int = await subscription.add_destination("aeron:udp?endpoint=127.0.0.1:0", timeout=5.0)
        while (address := subscription.resolved_endpoint) is None:
            await anyio.sleep(0.001)
        destination = ChannelUri.udp(endpoint=address)
        outgoing: int = await publication.add_destination(destination)
        await publication.remove_destination(outgoing)
        await subscription.remove_destination(incoming, timeout=5.0)
    async with await client.add_subscription("aeron:udp?endpoint=127.0.0.1:0", 5) as open_port:
        while (resolved := open_port.try_resolve_channel_endpoint_port()) is None:
            await anyio.sleep(0.001)
        assert not resolved.endswith(":0")
        assert len(open_port.local_socket_addresses) == 1


async def exclusively(client: Client) -> None:
    async with await client.add_subscription(IPC, 6) as subscription:
        publication: ExclusivePublication = await client.add_exclusive_publication(IPC, 6)
        await publication.wait_connected()
        assert explain(publication.append_padding(32)).startswith("at ")
        try:
            publication.offer_block(b"no frames")
        except ValueError:
            publication.revoke_on_close = True
        await subscription.wait_connected()
        (image,) = subscription.images
        await publication.revoke()
        while not image.is_publication_revoked:
            await anyio.sleep(0.001)
        await publication.aclose()


# --- Receiving --------------------------------------------------------------------------------------------------------


def describe_header(header: Header) -> str:
    ids = (header.session_id, header.stream_id, header.term_id, header.initial_term_id, header.term_offset)
    frame = (header.flags, header.type, header.version, header.frame_length, header.reserved_value)
    return f"{ids} {frame} {header.position}"


def describe_batch(batch: MessageBatch) -> str:
    first: bytes = batch[0]
    columns = (batch.session_ids, batch.stream_positions, batch.reserved_values, batch.offsets, batch.buffer)
    assert sum(len(payload) for payload in batch) == batch.nbytes
    headers = [describe_header(message.header) for message in batch.messages()]
    return f"{len(batch)} {first!r} {[len(column) for column in columns]} {headers} {batch.as_array(np.uint8).shape}"


def describe_image(image: Image) -> str:
    ids = (image.session_id, image.correlation_id, image.subscription_registration_id, image.source_identity)
    stream = (image.initial_term_id, image.term_buffer_length, image.mtu_length, image.join_position, image.position)
    end = (image.is_end_of_stream, image.end_of_stream_position, image.active_transport_count, image.is_closed)
    return f"{ids} {stream} {end}"


def describe_subscription(subscription: Subscription) -> str:
    stream = (subscription.channel, subscription.stream_id, subscription.registration_id)
    state = (subscription.is_connected, subscription.is_closed, subscription.channel_status)
    return f"{stream} {state} {subscription.image_count} {[describe_image(image) for image in subscription.images]}"


def on_message(payload: memoryview, header: Header) -> None:
    assert len(payload) <= header.frame_length


def on_controlled(payload: memoryview, header: Header) -> Action | None:
    match len(payload):
        case 0:
            return Action.ABORT
        case 1:
            return Action.COMMIT
        case 2:
            return Action.BREAK
        case 3:
            return Action.CONTINUE
    return None


def on_block(block: memoryview, session_id: int, term_id: int) -> None:
    assert len(block) % 32 == 0


async def publish_one(publication: Publication, turn: Callable[[], object]) -> None:
    """Lets `turn` read the one message of a publication over IPC."""
    await publication.publish(b"m")
    while not turn():
        await anyio.sleep(0.001)


async def receive(subscription: Subscription, publication: Publication) -> None:
    await subscription.wait_connected(timeout=5.0)
    image = subscription.image_by_session_id(publication.session_id)
    assert image is not None
    for turn in (
        lambda: subscription.poll(on_message, 10),
        lambda: subscription.controlled_poll(on_controlled, fragment_limit=10),
        lambda: subscription.block_poll(on_block, 4096),
        lambda: image.poll(on_message),
        lambda: image.controlled_poll(on_controlled),
        lambda: image.bounded_poll(on_message, publication.position, fragment_limit=1),
        lambda: image.bounded_controlled_poll(on_controlled, publication.position),
        lambda: image.block_poll(on_block, 4096),
        lambda: len(image.poll_batch(limit=1)),
    ):
        await publish_one(publication, turn)

    await publication.publish(b"b")
    batch: MessageBatch = subscription.poll_batch(10, max_bytes=1 << 20)
    print(describe_batch(batch), describe_subscription(subscription), describe_publication(publication))
    await publication.publish_array(np.zeros(3, TICK))
    with image.block(4096) as block:
        describe_block(block)

    for source in (subscription, image):
        await publication.publish_many([b"message", b"payload", b"batch"])
        async for message in source:
            content: Message = message
            assert bytes(content) == content.payload == b"message"
            assert len(content) == 7
            break
        async for payload in source.payloads():
            assert payload == b"payload"
            break
        async for several in source.batches(limit=16, max_bytes=4096):
            assert list(several) == [b"batch"]
            break


def describe_block(block: Block) -> None:
    assert (block.session_id, block.term_id) != (0, 0)
    assert len(block.buffer) == 3 * 64
    assert [payload.nbytes for payload in block.payloads()] == [16] * 3
    assert block.as_array(TICK)["price"].sum() == 0


def idle_strategy(name: str) -> IdleStrategy:
    match name:
        case "spin":
            return BusySpin()
        case "yield":
            return Yielding()
        case "sleep":
            return Sleeping(period=0.001)
    backoff = Backoff(max_spins=10, max_yields=20, min_park=1e-6, max_park=1e-3)
    assert (backoff.max_spins, backoff.max_yields) == (10, 20)
    assert backoff.min_park < backoff.max_park == Sleeping(0.001).period
    assert Parking().spin > 0
    return backoff


async def streams(client: Client) -> None:
    images: list[Image] = []

    async def on_available(image: Image) -> None:
        await anyio.lowlevel.checkpoint()
        images.append(image)

    async with (
        await client.add_subscription(
            IPC,
            4,
            on_available_image=on_available,
            on_unavailable_image=images.remove,
            idle=idle_strategy("backoff"),
            timeout=5.0,
        ) as subscription,
        await client.add_publication(ChannelUri.ipc(), 4, timeout=5.0) as publication,
    ):
        count = await publish(publication)
        received = 0
        while received < count:
            received += len(subscription.poll_batch())
            await anyio.sleep(0.001)
        await receive(subscription, publication)
        await subscription.images[0].reject("enough")
        while images:
            await anyio.sleep(0.001)


# --- Request and response ---------------------------------------------------------------------------------------------


async def request_and_response(client: Client) -> None:
    async def handler(request: bytes) -> bytes:
        return request.upper()

    answering: Callable[[bytes], Awaitable[bytes]] = handler
    async with (
        rpc.serve(client, IPC, 8, answering, response_stream_id=9, concurrency=4) as server,
        rpc.dial(client, IPC, 8, response_stream_id=9, timeout=5.0) as remote,
    ):
        await remote.wait_connected(timeout=5.0)
        assert await remote.call(b"request", timeout=5.0) == b"REQUEST"
        describe_rpc(server, remote)


def describe_rpc(server: rpc.Server, remote: rpc.Remote) -> None:
    assert remote.is_connected
    assert (remote.pending_calls, remote.ignored_frames) == (0, 0)
    assert (server.dialler_count, server.ignored_frames) == (1, 0)


# --- Errors -----------------------------------------------------------------------------------------------------------


def advice(error: aeron_async.AeronError) -> str:
    match error:
        case (
            aeron_async.DriverNotFoundError()
            | aeron_async.DriverStartError()
            | aeron_async.DirectoryInUseError()
            | aeron_async.DriverAccessError()
            | aeron_async.InsufficientStorageError()
            | aeron_async.CncVersionError()
            | aeron_async.DriverNotRunningError()
            | aeron_async.CorruptFileError()
        ):
            return "look at the driver"
        case aeron_async.DriverError():
            return "look at its log"
        case (
            aeron_async.DriverShutdownError()
            | aeron_async.DriverTimeoutError()
            | aeron_async.ClientTimeoutError()
            | aeron_async.ServiceTimeoutError()
            | aeron_async.LappedError()
        ):
            return f"connect again after {error.reason.name}"
        case aeron_async.ClientClosedError():
            return "closed by ourselves"
        case (
            aeron_async.PublicationClosedError()
            | aeron_async.SubscriptionClosedError()
            | aeron_async.CounterClosedError()
        ):
            return "closed by somebody"
        case aeron_async.ClosedError():
            return "closed"
        case aeron_async.RegistrationError():
            return f"the driver says {error.code}: {error.message}"
        case aeron_async.MessageTooLongError():
            return f"{error.length} > {error.limit} ({error.limit_name})"
        case aeron_async.NotConnectedError() | aeron_async.BackPressuredError():
            return f"{error.appended} appended, {error.pending} pending"
        case aeron_async.AddTimeoutError() | aeron_async.CallTimeoutError():
            return "try again"
        case aeron_async.ChannelError() | aeron_async.MaxPositionExceededError() | aeron_async.ForkedClientError():
            return "mend the program"
        case aeron_async.RemoteError():
            return "mend the other program"
    return "unknown"


async def main() -> None:
    channels()
    try:
        ChannelUri.parse("aeron:ipc?term-lenght=64k")
    except aeron_async.AeronError as error:
        print(advice(error))
    with tempfile.TemporaryDirectory() as folder:
        async with driver_in(Path(folder)) as driver:
            await connect_in_three_forms(driver.aeron_dir)
            async with connect(driver.aeron_dir) as client:
                assert client.driver is None
                await counters(client)
                await streams(client)
                await destinations(client)
                await exclusively(client)
                await request_and_response(client)
                await client.terminate_driver(b"token")
                await client.wait_closed()
    print("done")


if __name__ == "__main__":
    anyio.run(main)

"""Receiving from several destinations, and spying on what is sent: rows C7 and C8."""

from __future__ import annotations

import anyio
import pytest

from aeron_async import ChannelUri, Client, OfferResult, RegistrationError, Subscription
from tests.support import LIMIT, eventually, free_udp_port, sealed, take, unseal

pytestmark = pytest.mark.anyio

MANUAL = "aeron:udp?control-mode=manual"


def endpoint() -> str:
    return f"aeron:udp?endpoint=127.0.0.1:{free_udp_port()}"


# --- C7: multi-destination subscriptions ------------------------------------------------------------------------------


async def test_c7_a_subscription_receives_from_all_its_destinations(client: Client, stream_id: int) -> None:
    subscription = await client.add_subscription(MANUAL, stream_id)
    assert subscription.local_socket_addresses == []
    destinations = [endpoint() for _ in range(3)]
    for destination in destinations:
        await subscription.add_destination(destination)
    await eventually(lambda: len(subscription.local_socket_addresses) == 3)
    assert {f"aeron:udp?endpoint={address}" for address in subscription.local_socket_addresses} == set(destinations)

    publications = [await client.add_publication(destination, stream_id) for destination in destinations]
    for publisher, publication in enumerate(publications):
        for number in range(20):
            await publication.publish(sealed(publisher, number, 1500), timeout=LIMIT)
    received = [unseal(data) for data in await take(subscription.payloads(), 60)]
    assert sorted(received) == [(publisher, number) for publisher in range(3) for number in range(20)]
    for publisher in range(3):
        assert [number for sender, number in received if sender == publisher] == list(range(20))
    assert {image.session_id for image in subscription.images} == {
        publication.session_id for publication in publications
    }


async def test_c7_one_stream_over_two_destinations_is_one_image(client: Client, stream_id: int) -> None:
    subscription = await client.add_subscription(MANUAL, stream_id)
    publication = await client.add_exclusive_publication(MANUAL, stream_id)
    ids = []
    for destination in (endpoint(), endpoint()):
        ids.append(await subscription.add_destination(destination))
        await publication.add_destination(destination)
    await eventually(lambda: any(image.active_transport_count == 2 for image in subscription.images))
    (image,) = subscription.images
    for number in range(15):
        await publication.publish(sealed(0, number, 1500), timeout=LIMIT)
    assert [unseal(data)[1] for data in await take(image.payloads(), 15)] == list(range(15))

    # The stream goes on over the one that is left.
    await subscription.remove_destination(ids[0])
    for number in range(15, 30):
        await publication.publish(sealed(0, number, 1500), timeout=LIMIT)
    assert [unseal(data)[1] for data in await take(image.payloads(), 15)] == list(range(15, 30))
    assert subscription.images == (image,)


async def test_c7_a_destination_is_removed_by_its_channel_or_its_id(client: Client, stream_id: int) -> None:
    subscription = await client.add_subscription(ChannelUri.udp(control_mode="manual"), stream_id)
    destinations = [endpoint() for _ in range(2)]
    ids = [await subscription.add_destination(ChannelUri.parse(destination)) for destination in destinations]
    await eventually(lambda: len(subscription.local_socket_addresses) == 2)
    publications = [await client.add_publication(destination, stream_id) for destination in destinations]
    await eventually(lambda: subscription.image_count == 2)

    await subscription.remove_destination(destinations[0])
    await eventually(lambda: len(subscription.local_socket_addresses) == 1)
    await eventually(lambda: subscription.image_count == 1)
    assert subscription.images[0].session_id == publications[1].session_id
    await subscription.remove_destination(ids[1])
    await eventually(lambda: subscription.local_socket_addresses == [])
    await eventually(lambda: subscription.image_count == 0)


async def test_c7_a_destination_on_port_0_tells_where_it_is(client: Client, stream_id: int) -> None:
    subscription = await client.add_subscription(MANUAL, stream_id)
    for _ in range(2):
        await subscription.add_destination("aeron:udp?endpoint=127.0.0.1:0")
    await eventually(lambda: len(set(subscription.local_socket_addresses)) == 2)
    assert subscription.resolved_endpoint == subscription.local_socket_addresses[0]
    assert subscription.try_resolve_channel_endpoint_port() == MANUAL
    for number, address in enumerate(subscription.local_socket_addresses):
        publication = await client.add_publication(f"aeron:udp?endpoint={address}", stream_id)
        await publication.publish(b"%d" % number, timeout=LIMIT)
    assert sorted(await take(subscription.payloads(), 2)) == [b"0", b"1"]


async def test_c7_a_destination_that_cannot_be_is_refused(client: Client, stream_id: int) -> None:
    ordinary = await client.add_subscription(endpoint(), stream_id)
    with pytest.raises(RegistrationError):
        await ordinary.add_destination(endpoint())
    subscription = await client.add_subscription(MANUAL, stream_id)
    with pytest.raises(RegistrationError):
        await subscription.add_destination("aeron:udp?endpoint=not an address")
    with pytest.raises(ValueError, match="4711"):
        await subscription.remove_destination(4711)


# --- C8: spies --------------------------------------------------------------------------------------------------------


async def open_spy(client: Client, channel: str, stream_id: int) -> Subscription:
    return await client.add_subscription(f"aeron-spy:{channel}", stream_id)


async def test_c8_a_spy_reads_what_is_sent_to_others(client: Client, stream_id: int) -> None:
    channel = endpoint()
    publication = await client.add_publication(channel, stream_id)
    spy = await open_spy(client, channel, stream_id)
    subscription = await client.add_subscription(channel, stream_id)
    await spy.wait_connected(LIMIT)
    await publication.wait_connected(LIMIT)
    received: dict[str, list[int]] = {}

    async def read(name: str, source: Subscription) -> None:
        received[name] = [unseal(data)[1] for data in await take(source.payloads(), 300)]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, "spy", spy)
        tasks.start_soon(read, "subscription", subscription)
        for number in range(300):
            await publication.publish(sealed(0, number, 2000), timeout=LIMIT)
    assert received == {"spy": list(range(300)), "subscription": list(range(300))}
    (image,) = spy.images
    assert image.session_id == publication.session_id
    assert image.position == publication.position
    assert image.source_identity == "aeron:ipc"


async def test_c8_a_spy_alone_is_no_connection(client: Client, stream_id: int) -> None:
    channel = endpoint()
    spy = await open_spy(client, channel, stream_id)
    publication = await client.add_publication(channel, stream_id)
    await spy.wait_connected(LIMIT)
    assert not publication.is_connected
    assert publication.offer(b"to nobody") == OfferResult.NOT_CONNECTED


async def test_c8_a_spy_simulates_a_connection_where_the_channel_asks_for_it(client: Client, stream_id: int) -> None:
    channel = endpoint()
    spy = await open_spy(client, channel, stream_id)
    publication = await client.add_publication(f"{channel}|ssc=true", stream_id)
    received: list[int] = []

    async def read() -> None:
        received.extend(unseal(data)[1] for data in await take(spy.payloads(), 200))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        for number in range(200):
            await publication.publish(sealed(0, number, 1500), timeout=LIMIT)
    assert received == list(range(200))
    assert publication.is_connected
    # Nobody reads any more, so the spy's window is all there is.
    with pytest.raises(TimeoutError):
        for number in range(200):
            await publication.publish(sealed(0, number, 1500), timeout=0.2)
    await spy.aclose()
    await eventually(lambda: not publication.is_connected)


async def test_c8_a_spy_finds_a_publication_on_port_0_by_its_tag(client: Client, stream_id: int) -> None:
    tag = 700_000 + stream_id
    publication = await client.add_publication(
        f"aeron:udp?control=127.0.0.1:0|control-mode=dynamic|ssc=true|tags={tag}", stream_id
    )
    await eventually(lambda: len(publication.local_socket_addresses) == 1)
    (address,) = publication.local_socket_addresses
    assert not address.endswith(":0")
    spy = await open_spy(client, f"aeron:udp?tags={tag}", stream_id)
    await publication.publish(b"found by tag", timeout=LIMIT)
    assert await take(spy.payloads(), 1) == [b"found by tag"]
    # A spy has no socket.
    assert (spy.local_socket_addresses, spy.resolved_endpoint) == ([], None)
    receiver = await client.add_subscription(
        f"aeron:udp?endpoint=127.0.0.1:0|control={address}|control-mode=dynamic", stream_id
    )
    await receiver.wait_connected(LIMIT)


async def test_c8_a_spy_cannot_reject_an_image(client: Client, stream_id: int) -> None:
    channel = endpoint()
    publication = await client.add_publication(f"{channel}|ssc=true", stream_id)
    spy = await open_spy(client, channel, stream_id)
    await publication.wait_connected(LIMIT)
    await spy.wait_connected(LIMIT)
    with pytest.raises(RegistrationError):
        await spy.images[0].reject("not mine to reject")
    assert publication.is_connected

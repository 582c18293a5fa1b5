"""What the driver refuses, what nobody reads, and what is used after it was closed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from aeron_async import (
    Client,
    ClientClosedError,
    CloseReason,
    NotConnectedError,
    OfferResult,
    Publication,
    PublicationClosedError,
    RegistrationError,
    SubscriptionClosedError,
    connect,
)
from aeron_async.protocol.error_codes import ErrorCode
from tests.support import LIMIT, open_pair, running_driver, take

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def shared_dir() -> Iterator[Path]:
    """The directory of a driver that these tests share: what they do may harm clients, not drivers."""
    with running_driver() as driver:
        yield driver.aeron_dir


@pytest.fixture
async def client(shared_dir: Path) -> AsyncIterator[Client]:
    async with connect(shared_dir) as client:
        yield client


# --- what the driver refuses -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "channel",
    [
        "",
        "nonsense",
        "aeron:tcp?endpoint=127.0.0.1:40000",
        "aeron:udp",
        "aeron:udp?endpoint=",
        "aeron:udp?endpoint=127.0.0.1:not-a-port",
        "aeron:udp?endpoint=127.0.0.1:40000|mtu=17",
        "aeron:ipc?term-length=17",
        "aeron:ipc?alias=" + 5000 * "x",
    ],
)
async def test_a_bad_channel_is_an_error_with_code_and_text_and_the_client_lives_on(
    client: Client, channel: str
) -> None:
    for add in (client.add_publication, client.add_exclusive_publication):
        with pytest.raises(RegistrationError) as caught:
            await add(channel, 1001)
        assert caught.value.code in list(ErrorCode)
        assert caught.value.message
        assert caught.value.message in str(caught.value)
    publication, subscription = await open_pair(client, "aeron:ipc", 1001)
    await publication.publish(b"all is well")
    assert await take(subscription.payloads(), 1) == [b"all is well"]


async def test_a_bad_channel_of_a_subscription_is_an_error_too(client: Client) -> None:
    with pytest.raises(RegistrationError) as caught:
        await client.add_subscription("aeron:udp?endpoint=127.0.0.1:not-a-port", 1001)
    assert caught.value.code in list(ErrorCode)
    assert "not-a-port" in caught.value.message
    assert not client.is_closed


async def test_a_channel_that_clashes_with_an_open_one_is_refused(client: Client) -> None:
    session_id = await _unused_session_id(client)
    async with await client.add_publication(f"aeron:ipc?term-length=64k|session-id={session_id}", 1001):
        with pytest.raises(RegistrationError, match="session"):
            await client.add_exclusive_publication(f"aeron:ipc?session-id={session_id}", 1001)


async def _unused_session_id(client: Client) -> int:
    async with await client.add_exclusive_publication("aeron:ipc", 1001) as publication:
        return publication.session_id + 1_000_000


async def test_a_command_longer_than_the_drivers_buffer_is_refused_here(client: Client) -> None:
    with pytest.raises(ValueError, match="too long"):
        await client.add_subscription("aeron:ipc?alias=" + (1 << 20) * "x", 1001)
    await client.add_subscription("aeron:ipc", 1001)


async def test_a_counter_key_or_label_that_is_too_long_is_an_error(client: Client) -> None:
    for key, label in ((bytes(113), ""), (b"", 381 * "x")):
        with pytest.raises(ValueError, match="is longer than"):
            await client.add_counter(1101, key, label)
    assert (await client.add_counter(1101, bytes(112), 380 * "x")).label == 380 * "x"


# --- what nobody reads -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channel", ["aeron:ipc", "aeron:udp?endpoint=127.0.0.1:40999"])
async def test_a_stream_that_nobody_reads_is_a_result_and_in_the_end_an_error(client: Client, channel: str) -> None:
    publication = await client.add_exclusive_publication(channel, 9001)
    assert publication.offer(b"unheard") is OfferResult.NOT_CONNECTED
    assert publication.offer_vectored([b"un", b"heard"]) is OfferResult.NOT_CONNECTED
    assert publication.offer_many([b"unheard"]) is OfferResult.NOT_CONNECTED
    for attempt in (publication.publish(b"unheard", timeout=0.05), publication.wait_connected(0.05)):
        with pytest.raises(NotConnectedError) as caught:
            await attempt
        assert isinstance(caught.value, TimeoutError)
        assert channel in str(caught.value)
    with pytest.raises(NotConnectedError):
        await publication.publish(b"unheard", timeout=0)
    assert publication.position == 0


# --- what is closed ----------------------------------------------------------------------------------------------


async def test_a_closed_publication_takes_nothing(client: Client) -> None:
    publication, _ = await open_pair(client, "aeron:ipc", 1001)
    await publication.aclose()
    await publication.aclose()
    assert publication.offer(b"late") is OfferResult.CLOSED
    assert publication.offer_vectored([b"late"]) is OfferResult.CLOSED
    assert publication.offer_many([b"late"]) is OfferResult.CLOSED
    for attempt in (
        publication.publish(b"late"),
        publication.publish_vectored([b"late"]),
        publication.wait_connected(),
    ):
        with pytest.raises(PublicationClosedError):
            await attempt
    assert not publication.is_connected


async def test_closing_ends_what_waits_for_a_publication(client: Client) -> None:
    waits: list[Callable[[Publication], Awaitable[object]]] = [
        lambda publication: publication.publish(b"unheard", timeout=None),
        lambda publication: publication.publish_vectored([b"unheard"], timeout=None),
        lambda publication: publication.wait_connected(None),
    ]
    for wait in waits:
        publication = await client.add_publication("aeron:ipc", 9002)

        async def expect_closed(wait: Callable[[Publication], Awaitable[object]], publication: Publication) -> None:
            with pytest.raises(PublicationClosedError):
                await wait(publication)

        with anyio.fail_after(LIMIT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(expect_closed, wait, publication)
                await anyio.sleep(0.01)
                await publication.aclose()


async def test_closing_ends_what_waits_for_a_subscription(client: Client) -> None:
    subscription = await client.add_subscription("aeron:ipc", 9003)

    async def expect_closed() -> None:
        with pytest.raises(SubscriptionClosedError):
            await subscription.wait_connected(None)

    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(expect_closed)
            await anyio.sleep(0.01)
            await subscription.aclose()


async def test_closing_the_client_closes_what_it_had(shared_dir: Path) -> None:
    async with connect(shared_dir) as client:
        publication, subscription = await open_pair(client, "aeron:ipc", 1001)
    assert publication.is_closed
    assert subscription.is_closed
    assert publication.offer(b"late") is OfferResult.CLOSED
    with pytest.raises(PublicationClosedError):
        await publication.publish(b"late")
    assert [data async for data in subscription.payloads()] == []
    assert len(subscription.poll_batch()) == 0
    await publication.aclose()
    await subscription.aclose()
    await client.aclose()


async def test_closing_the_client_ends_an_add_that_waits(shared_dir: Path) -> None:
    client = await connect(shared_dir)
    outcomes: list[object] = []

    async def add() -> None:
        try:
            outcomes.append(await client.add_publication("aeron:ipc", 1001))
        except ClientClosedError as error:
            outcomes.append(error.reason)

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(add)
        await anyio.lowlevel.checkpoint()
        await client.aclose()
    assert len(outcomes) == 20
    for outcome in outcomes:
        assert outcome is CloseReason.USER or (isinstance(outcome, Publication) and outcome.is_closed)

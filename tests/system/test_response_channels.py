"""Response channels (parity C9) with plain publications and subscriptions, over UDP and IPC."""

from __future__ import annotations

import anyio
import pytest

from aeron_async import Client, Image, RegistrationError, Subscription
from aeron_async.protocol.counter_types import CounterType
from tests.response_routes import PlainDialler, Route, plain_dialler, route_of
from tests.support import LIMIT, eventually, holds_nothing, take

pytestmark = pytest.mark.anyio


@pytest.fixture
def udp_route(stream_id: int) -> Route:
    return route_of("udp", 2 * stream_id)


async def image_of(requests: Subscription, dialler: PlainDialler) -> Image:
    """The dialler's image at the server."""
    await eventually(lambda: requests.image_by_session_id(dialler.requests.session_id))
    image = requests.image_by_session_id(dialler.requests.session_id)
    assert image is not None
    return image


async def test_c9_a_response_comes_back_by_the_image_of_the_request(client: Client, route: Route) -> None:
    async with (
        await client.add_subscription(route.requests, route.stream_id) as requests,
        plain_dialler(client, route) as dialler,
    ):
        await dialler.requests.publish(b"question", timeout=LIMIT)
        image = await image_of(requests, dialler)
        assert await take(image.payloads(), 1) == [b"question"]
        async with await client.add_publication(route.answers_to(image), route.response_stream_id) as responses:
            await dialler.wait_connected()
            await responses.publish(b"answer", timeout=LIMIT)
            assert await take(dialler.responses.payloads(), 1) == [b"answer"]
            assert [image.session_id for image in dialler.responses.images] == [responses.session_id]
    await eventually(lambda: holds_nothing(client))


async def test_c9_two_clients_never_see_each_others_responses(
    client: Client, other_client: Client, route: Route
) -> None:
    async with (
        await client.add_subscription(route.requests, route.stream_id) as requests,
        plain_dialler(client, route) as one,
        plain_dialler(client, route) as two,
        plain_dialler(other_client, route) as three,
    ):
        diallers = (one, two, three)
        expected = []
        for number, dialler in enumerate(diallers):
            image = await image_of(requests, dialler)
            responses = await client.add_exclusive_publication(route.answers_to(image), route.response_stream_id)
            await dialler.wait_connected()
            expected.append([b"%d.%d" % (number, message) for message in range(50)])
            for payload in expected[-1]:
                await responses.publish(payload, timeout=LIMIT)
        for dialler, payloads in zip(diallers, expected, strict=True):
            assert await take(dialler.responses.payloads(), 50) == payloads
            assert dialler.responses.image_count == 1
            assert not dialler.responses.poll_batch()


async def test_c9_a_response_comes_back_by_its_session_id(client: Client, route: Route, stream_id: int) -> None:
    session = f"|session-id={-stream_id}"
    async with (
        await client.add_subscription(route.requests, route.stream_id) as requests,
        plain_dialler(client, route, session) as dialler,
    ):
        image = await image_of(requests, dialler)
        channel = route.answers_to(image) + session
        async with await client.add_exclusive_publication(channel, route.response_stream_id) as responses:
            assert responses.session_id == -stream_id
            await responses.publish(b"answer", timeout=LIMIT)
            assert await take(dialler.responses.payloads(), 1) == [b"answer"]


async def test_c9_a_response_of_another_session_is_refused_or_never_connected(
    client: Client, route: Route, stream_id: int
) -> None:
    async with (
        await client.add_subscription(route.requests, route.stream_id) as requests,
        plain_dialler(client, route, "|session-id=42") as dialler,
    ):
        image = await image_of(requests, dialler)
        channel = f"{route.answers_to(image)}|session-id=43"
        if route.is_udp:
            errors = system_counter(client, "Errors")
            async with await client.add_exclusive_publication(channel, route.response_stream_id) as responses:
                await eventually(lambda: system_counter(client, "Errors") > errors)
                assert not responses.is_connected
                assert not dialler.responses.is_connected
        else:
            with pytest.raises(RegistrationError, match="failed to create response publication"):
                await client.add_exclusive_publication(channel, route.response_stream_id)


def system_counter(client: Client, label: str) -> int:
    (value,) = (info.value for info in client.counters.find(type_id=CounterType.SYSTEM) if info.label.startswith(label))
    return value


async def test_c9_a_prototype_keeps_the_servers_address_while_nobody_dials(client: Client, udp_route: Route) -> None:
    def response_endpoints() -> list[int]:
        return [
            info.registration_id
            for info in client.counters.find(type_id=CounterType.SEND_CHANNEL_STATUS)
            if udp_route.responses in info.label
        ]

    async with (
        await client.add_subscription(udp_route.requests, udp_route.stream_id) as requests,
        await client.add_exclusive_publication(
            f"{udp_route.responses}|response-correlation-id=prototype|term-length=1m", udp_route.response_stream_id
        ) as prototype,
    ):
        assert prototype.term_buffer_length == 64 << 10
        endpoints = response_endpoints()
        assert len(endpoints) == 1
        for number in range(3):
            async with plain_dialler(client, udp_route) as dialler:
                image = await image_of(requests, dialler)
                channel = f"{udp_route.answers_to(image)}|term-length=256k"
                async with await client.add_publication(channel, udp_route.response_stream_id) as responses:
                    assert responses.term_buffer_length == 256 << 10
                    await responses.publish(b"%d" % number, timeout=LIMIT)
                    assert await take(dialler.responses.payloads(), 1) == [b"%d" % number]
                    assert not prototype.is_connected
            await eventually(lambda: requests.image_count == 0)
            assert response_endpoints() == endpoints


async def test_c9_a_response_subscription_waits_for_its_own_answer(client: Client, route: Route) -> None:
    async with (
        await client.add_subscription(route.requests, route.stream_id) as requests,
        await client.add_subscription(route.responses, route.response_stream_id) as nobodys,
        plain_dialler(client, route) as dialler,
    ):
        image = await image_of(requests, dialler)
        async with await client.add_publication(route.answers_to(image), route.response_stream_id) as responses:
            await responses.publish(b"answer", timeout=LIMIT)
            assert await take(dialler.responses.payloads(), 1) == [b"answer"]
            assert nobodys.image_count == 0


async def test_c9_publications_that_answer_the_same_image_are_shared(client: Client, route: Route) -> None:
    async with (
        await client.add_subscription(route.requests, route.stream_id) as requests,
        plain_dialler(client, route) as one,
        plain_dialler(client, route) as two,
    ):
        images = [await image_of(requests, dialler) for dialler in (one, one, two)]
        first, same, other = [
            await client.add_publication(route.answers_to(image), route.response_stream_id) for image in images
        ]
        assert first.original_registration_id == same.original_registration_id
        assert first.original_registration_id != other.original_registration_id


async def test_c9_a_long_exchange_of_fragmented_messages_arrives_whole(
    client: Client, other_client: Client, route: Route
) -> None:
    messages = [bytes([number]) * 6000 for number in range(100)]
    async with (
        await client.add_subscription(route.requests, route.stream_id) as requests,
        plain_dialler(other_client, route) as dialler,
    ):
        image = await image_of(requests, dialler)
        async with await client.add_publication(route.answers_to(image), route.response_stream_id) as responses:

            async def ask() -> None:
                for message in messages:
                    await dialler.requests.publish(message, timeout=LIMIT)

            async def echo() -> None:
                for request in await take(requests.payloads(), len(messages)):
                    await responses.publish(request, timeout=LIMIT)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                tasks.start_soon(echo)
                assert await take(dialler.responses.payloads(), len(messages)) == messages
            # More than all three terms: the positions have gone around.
            assert responses.position > 3 * responses.term_buffer_length


@pytest.mark.parametrize(
    ("response_correlation_id", "message"),
    [
        ("", "no response-correlation-id set"),
        ("|response-correlation-id=123456789", "image.correlationId=123456789 not found"),
        ("|response-correlation-id=-2", "must be a number greater than or equal to -1, or 'prototype'"),
        ("|response-correlation-id=what", "must be a number greater than or equal to -1, or 'prototype'"),
    ],
)
async def test_c9_a_response_publication_without_an_image_is_refused(
    client: Client, udp_route: Route, response_correlation_id: str, message: str
) -> None:
    with pytest.raises(RegistrationError, match=message):
        await client.add_publication(udp_route.responses + response_correlation_id, udp_route.response_stream_id)


async def test_c9_an_image_that_asked_for_no_responses_gets_none(client: Client, udp_route: Route) -> None:
    async with (
        await client.add_subscription(udp_route.requests, udp_route.stream_id) as requests,
        await client.add_publication(udp_route.requests, udp_route.stream_id),
    ):
        await requests.wait_connected(LIMIT)
        with pytest.raises(RegistrationError, match="did not request a response channel"):
            await client.add_publication(udp_route.answers_to(requests.images[0]), udp_route.response_stream_id)


async def test_c9_requests_need_a_response_subscription_that_is_there(client: Client, udp_route: Route) -> None:
    with pytest.raises(RegistrationError, match="unable to find response subscription"):
        await client.add_publication(f"{udp_route.requests}|response-correlation-id=123456789", udp_route.stream_id)


async def test_c9_one_stream_of_an_address_is_for_responses_or_not(client: Client, udp_route: Route) -> None:
    await client.add_subscription(udp_route.responses, udp_route.response_stream_id)
    with pytest.raises(RegistrationError, match="option conflicts with existing subscription"):
        await client.add_subscription(
            udp_route.responses.replace("control-mode=response|", ""), udp_route.response_stream_id
        )

"""Channels and the bundled driver: it takes what `ChannelUri` takes, and refuses or misreads what it refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest

from aeron_async import ChannelError, ChannelUri, Client, Publication, RegistrationError, Subscription
from aeron_async._channel_params import PARAMETERS
from tests.support import LIMIT, free_udp_port, take

pytestmark = pytest.mark.anyio

TERM_LENGTH = 64 << 10


@pytest.fixture
def anyio_backend() -> str:
    """What a driver makes of a channel does not depend on the event loop."""
    return "asyncio"


def with_ports(text: str) -> str:
    """The channel with a free port for each that it leaves open."""
    return re.sub("PORT", lambda _: str(free_udp_port()), text)


async def add(client: Client, role: str, channel: str | ChannelUri, stream_id: int) -> Publication | Subscription:
    match role:
        case "publication":
            return await client.add_publication(channel, stream_id)
        case "exclusive":
            return await client.add_exclusive_publication(channel, stream_id)
        case "subscription":
            return await client.add_subscription(channel, stream_id)
    raise AssertionError(role)


UDP = "aeron:udp?endpoint=127.0.0.1:PORT"
MDC = "aeron:udp?control=127.0.0.1:PORT|control-mode=dynamic"

TAKEN = [
    ("publication", "aeron:ipc?term-length=128k|mtu=8k|pub-wnd=64k|sparse=false|eos=false|ssc=true|linger=0"),
    ("publication", "aeron:ipc?session-id=-5|stream-id=1001|alias=a=b, ünï?|linger=100MS|tags=1001,1002"),
    ("publication", "aeron:ipc?response-correlation-id=-1"),
    ("exclusive", "aeron:ipc?init-term-id=-5|term-id=-5|term-offset=0|term-length=64K"),
    ("exclusive", "aeron:ipc?init-term-id=2147483647|term-id=-2147483648|term-offset=65536"),
    (
        "exclusive",
        "aeron:ipc?untethered-window-limit-timeout=5s|untethered-linger-timeout=20us|untethered-resting-timeout=1000",
    ),
    ("subscription", "aeron:ipc"),
    ("subscription", "aeron:ipc?tether=false|rejoin=false|session-id=7|sparse=true"),
    ("subscription", "aeron:ipc?control-mode=response"),
    ("publication", f"{UDP}|mtu=64|max-resend=256|ttl=4|so-tos=8|so-sndbuf=64k|ats=false"),
    ("publication", f"{UDP}|channel-snd-ts-offset=reserved|response-endpoint=127.0.0.1:PORT"),
    ("publication", "aeron:udp?endpoint=localhost:PORT|control=127.0.0.1:0"),
    ("publication", f"{MDC}|fc=max,rrwm:4"),
    ("publication", f"{MDC}|fc=min,g:/2,t:500ms"),
    ("publication", f"{MDC}|fc=tagged,g:-5/0,t:5s,rrwm:2"),
    ("publication", "aeron:udp?control=127.0.0.1:0|control-mode=dynamic"),
    ("publication", "aeron:udp?control-mode=manual"),
    ("publication", "aeron:udp?control-mode=response|control=127.0.0.1:PORT|response-correlation-id=prototype"),
    ("subscription", "aeron:udp?control-mode=response|control=127.0.0.1:PORT"),
    ("subscription", "aeron:udp?control-mode=manual"),
    ("subscription", "aeron:udp?tags=2001"),
    ("subscription", f"{UDP}|reliable=false|group=infer|gtag=-1|cc=cubic|nak-delay=200us"),
    ("subscription", f"{UDP}|group=true|cc=static|rcv-wnd=128k|so-rcvbuf=192k"),
    ("subscription", f"{UDP}|media-rcv-ts-offset=reserved|channel-rcv-ts-offset=0"),
    ("subscription", "aeron:udp?endpoint=127.0.0.1:0"),
    ("subscription", f"{UDP}|interface=127.0.0.1:0/32"),
    ("subscription", "aeron:udp?endpoint=224.20.30.39:PORT|interface=127.0.0.0/24"),
    ("subscription", "aeron:udp?endpoint=224.20.30.39:PORT|interface={lo}"),
    ("subscription", f"aeron-spy:{UDP}"),
    ("subscription", "aeron-spy:aeron:udp?tags=1001|session-id=7"),
]

REFUSED = [
    ("subscription", "aeron"),
    ("subscription", "aeron:tcp?endpoint=127.0.0.1:PORT"),
    ("publication", "aeron:ipcsdf"),
    ("publication", "aeron:ipc|sparse=true"),
    ("publication", "aeron:udp"),
    ("subscription", "aeron-spy:aeron:ipc"),
    ("publication", "aeron:ipc?sparse=maybe"),
    ("publication", "aeron:ipc?mtu=4096|alias="),
    ("publication", "aeron:ipc?alias=|mtu=4096"),
    ("publication", "aeron:ipc?=4096"),
    ("publication", "aeron:ipc?mtu|alias=a"),
    ("publication", "aeron:ipc?term-length=32k"),
    ("publication", "aeron:ipc?term-length=3m"),
    ("publication", "aeron:ipc?term-length=2g"),
    ("publication", "aeron:ipc?mtu=32"),
    ("publication", "aeron:ipc?mtu=1000"),
    ("publication", "aeron:ipc?mtu=65536"),
    ("publication", "aeron:ipc?session-id=2147483648"),
    ("publication", "aeron:ipc?linger=1.5s"),
    ("publication", "aeron:ipc?linger=-5s"),
    ("publication", "aeron:ipc?response-correlation-id=-2"),
    ("publication", "aeron:ipc?pub-wnd=64k|term-length=64k"),
    ("publication", "aeron:ipc?pub-wnd=1024|mtu=2048"),
    ("exclusive", "aeron:ipc?init-term-id=1|term-id=1"),
    ("exclusive", "aeron:ipc?init-term-id=1|term-id=0|term-offset=0"),
    ("exclusive", "aeron:ipc?init-term-id=1|term-id=1|term-offset=8"),
    ("exclusive", "aeron:ipc?init-term-id=1|term-id=1|term-offset=65568|term-length=64k"),
    ("publication", "aeron:udp?mtu=4096"),
    ("publication", "aeron:udp?endpoint=127.0.0.1"),
    ("publication", "aeron:udp?endpoint=:PORT"),
    ("publication", "aeron:udp?endpoint=127.0.0.1:65536"),
    ("publication", "aeron:udp?endpoint=127.0.0.1:PORT/24"),
    ("publication", "aeron:udp?endpoint=256.1.1.1:PORT"),
    ("publication", "aeron:udp?endpoint=224.20.30.40:PORT"),
    ("publication", f"{UDP}|control-mode=dynamic"),
    ("publication", f"{UDP}|max-resend=0"),
    ("publication", f"{UDP}|max-resend=257"),
    ("publication", f"{UDP}|so-tos=256"),
    ("publication", f"{UDP}|mtu=2048|so-sndbuf=1k"),
    ("publication", f"{UDP}|ats=maybe"),
    ("publication", f"{MDC}|fc=pref"),
    ("publication", f"{MDC}|fc=max,g:1"),
    ("publication", f"{MDC}|fc=max,rrwm:0"),
    ("publication", f"{MDC}|fc=min,t:soon"),
    ("publication", f"{MDC}|fc=tagged,g:"),
    ("publication", f"{MDC}|fc=tagged,g:1/-1"),
    ("subscription", "aeron:udp?tags=-1"),
    ("subscription", f"{UDP}|interface=127.0.0.1/33"),
    ("subscription", f"{UDP}|interface={{name-of-16-chars}}"),
    ("subscription", f"{UDP}|interface={{lo}}/24"),
    ("subscription", f"{UDP}|gtag=x"),
    ("subscription", f"{UDP}|rcv-wnd=128k|so-rcvbuf=64k"),
    ("subscription", f"{UDP}|media-rcv-ts-offset=4|channel-rcv-ts-offset=0"),
    ("subscription", f"{UDP}|media-rcv-ts-offset=reserved|channel-rcv-ts-offset=reserved"),
]

# The driver takes these without a word, and does something else than they say.
MISREAD = [
    ("publication", "aeron:ipc?"),
    ("publication", "aeron:ipc?mtu"),
    ("publication", "aeron:ipc?mtu=4096|"),
    ("publication", "aeron:ipc?term-lenght=64k"),
    ("publication", "aeron:ipc?mtu=4096|mtu=8192"),
    ("publication", "aeron:ipc?mtu=4kb"),
    ("publication", "aeron:ipc?sparse=trueish"),
    ("publication", "aeron:ipc?session-id=010"),
    ("publication", "aeron:ipc?linger=5msx"),
    ("publication", "aeron:ipc?tags=abc"),
    ("publication", "aeron:ipc?endpoint=127.0.0.1:PORT"),
    ("publication", "aeron:ipc?control-mode=manual"),
    ("publication", "aeron:ipc?stream-id=x"),
    ("exclusive", "aeron:ipc?init-term-id=1|term-id=1|term-offset=32k"),
    ("publication", f"{UDP}x"),
    ("publication", f"{UDP}|ttl=300"),
    ("publication", f"{UDP}|fc=pref"),
    ("publication", f"{UDP}|control-mode=other"),
    ("publication", f"{UDP}|response-endpoint=x"),
    ("publication", f"{MDC}|fc=max,rrwm:2k"),
    ("publication", f"{MDC}|fc=tagged,g:x/3"),
    ("subscription", f"{UDP}|group=maybe"),
    ("subscription", f"{UDP}|cc=other"),
    ("subscription", f"{UDP}|nak-delay=soon"),
    ("subscription", f"{UDP}|channel-rcv-ts-offset=-5"),
]


@pytest.mark.parametrize(("role", "text"), TAKEN)
async def test_d1_a_good_channel_is_taken_by_the_driver(client: Client, stream_id: int, role: str, text: str) -> None:
    uri = ChannelUri.parse(with_ports(text))
    async with await add(client, role, uri, stream_id) as resource:
        assert resource.channel == str(uri)


def test_d1_every_parameter_is_tried_on_the_driver() -> None:
    assert {name for _, text in TAKEN for name in ChannelUri.parse(with_ports(text)).params} == PARAMETERS.keys()


@pytest.mark.parametrize(("role", "text"), REFUSED)
async def test_d1_what_the_driver_refuses_is_refused_before(
    client: Client, stream_id: int, role: str, text: str
) -> None:
    channel = with_ports(text)
    with pytest.raises(ChannelError):
        ChannelUri.parse(channel)
    with pytest.raises(RegistrationError):
        await add(client, role, channel, stream_id)
    assert not client.is_closed


@pytest.mark.parametrize(("role", "text"), MISREAD)
async def test_d1_what_the_driver_misreads_is_refused_before(
    client: Client, stream_id: int, role: str, text: str
) -> None:
    channel = with_ports(text)
    with pytest.raises(ChannelError):
        ChannelUri.parse(channel)
    async with await add(client, role, channel, stream_id) as resource:
        assert resource.channel == channel


@pytest.mark.parametrize(
    ("params", "values"),
    [
        ({"mtu": "8k"}, {"max_payload_length": 8192 - 32}),
        ({"term_length": 128 << 10}, {"term_buffer_length": 128 << 10}),
        ({"session_id": -77}, {"session_id": -77}),
        ({"initial_term_id": -1, "term_id": 1, "term_offset": 64}, {"initial_term_id": -1, "position": 131136}),
    ],
)
async def test_d1_the_driver_reads_parameters_as_meant(
    client: Client, stream_id: int, params: dict[str, Any], values: dict[str, int]
) -> None:
    async with await client.add_exclusive_publication(ChannelUri.ipc(**params), stream_id) as publication:
        assert {name: getattr(publication, name) for name in values} == values


async def test_d1_a_session_is_shared_by_tag(client: Client, stream_id: int) -> None:
    first = ChannelUri.udp(endpoint=f"127.0.0.1:{free_udp_port()}", tags=(3001, 3002))
    second = ChannelUri.udp(endpoint=f"127.0.0.1:{free_udp_port()}", session_id="tag:3002")
    async with (
        await client.add_publication(first, stream_id) as one,
        await client.add_publication(second, stream_id) as other,
    ):
        assert one.session_id == other.session_id


@pytest.mark.parametrize("media", ["ipc", "udp"])
@pytest.mark.parametrize("position", [4096, TERM_LENGTH, 5 * TERM_LENGTH - 32])
async def test_d1_a_stream_goes_on_at_its_position(client: Client, stream_id: int, media: str, position: int) -> None:
    udp = ChannelUri.udp(endpoint=f"127.0.0.1:{free_udp_port()}")
    channel = udp if media == "udp" else ChannelUri.ipc()
    resumed = channel.with_initial_position(position, 2**31 - 3, TERM_LENGTH)
    await assert_goes_on(client, channel, resumed, stream_id, position)


async def test_d1_a_stream_goes_on_from_the_very_end_of_a_term(client: Client, stream_id: int) -> None:
    resumed = ChannelUri.ipc(initial_term_id=5, term_id=5, term_offset=TERM_LENGTH, term_length=TERM_LENGTH)
    await assert_goes_on(client, ChannelUri.ipc(), resumed, stream_id, TERM_LENGTH)


async def assert_goes_on(
    client: Client, channel: ChannelUri, resumed: ChannelUri, stream_id: int, position: int
) -> None:
    async with (
        await client.add_subscription(channel, stream_id) as subscription,
        await client.add_exclusive_publication(resumed, stream_id) as publication,
    ):
        assert publication.position == position
        await publication.publish(b"again", timeout=LIMIT)
        (message,) = await take(aiter(subscription), 1)
        assert message.payload == b"again"
        (image,) = subscription.images
        assert image.join_position == position
        assert image.initial_term_id == publication.initial_term_id


async def test_text_goes_to_the_driver_as_it_is(client: Client, stream_id: int) -> None:
    async with await client.add_publication("aeron:ipc?mtu=8k|of-tomorrow=1", stream_id) as publication:
        assert publication.channel == "aeron:ipc?mtu=8k|of-tomorrow=1"


@pytest.mark.parametrize("role", ["publication", "exclusive", "subscription"])
@pytest.mark.parametrize("channel", [None, b"aeron:ipc", 5])
async def test_a_channel_of_another_type_is_refused(client: Client, stream_id: int, role: str, channel: Any) -> None:
    with pytest.raises(TypeError, match=type(channel).__name__):
        await add(client, role, channel, stream_id)

"""The parameters of a channel: their names, what they are for, and the values they take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypedDict, get_type_hints

from aeron_async._channel_values import (
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    Address,
    AnyOf,
    Boolean,
    Choice,
    Duration,
    FlowControl,
    Integer,
    Interface,
    Kind,
    SessionTag,
    Size,
    Tags,
    Text,
)
from aeron_async.protocol.frames import DATA_HEADER_LENGTH, FRAME_ALIGNMENT

__all__ = ["KEYWORDS", "MAX_TERM_LENGTH", "PARAMETERS", "ChannelParams", "Parameter"]

MAX_TERM_LENGTH = 1 << 30

_MIN_TERM_LENGTH = 64 << 10
_MIN_MTU = DATA_HEADER_LENGTH + FRAME_ALIGNMENT
_MAX_MTU = 65504
_MAX_RESENDS = 256


@dataclass(frozen=True)
class Parameter:
    """The kind of its values, and whether only UDP has it."""

    kind: Kind
    udp_only: bool = False


def _udp(kind: Kind) -> Parameter:
    return Parameter(kind, udp_only=True)


_FLAG = Parameter(Boolean())
_UDP_FLAG = _udp(Boolean())
_DURATION = Parameter(Duration())
_UDP_ADDRESS = _udp(Address())
_INT32 = Parameter(Integer(INT32_MIN, INT32_MAX))
_UDP_BUFFER = _udp(Size(0, INT32_MAX))
_UDP_OFFSET = _udp(AnyOf(Choice("reserved"), Integer(0, INT32_MAX)))

Flag = bool | str | None
Number = int | str | None
Seconds = float | str | None


class ChannelParams(TypedDict, total=False):
    """The parameters of a channel, by Aeron's names with underscores; `initial_term_id` is Aeron's `init-term-id`.

    Sizes are bytes (int), or texts with the driver's suffixes: `"64k"`, `"16m"`, `"1g"`. Durations are seconds (float),
    or texts with the driver's suffixes: `"5s"`, `"100ms"`, `"20us"`, `"500ns"`; a text without one is nanoseconds, as
    for the driver. Booleans are `bool`, or `"true"` and `"false"`. None leaves a parameter out.

    Source: `io.aeron.CommonContext`, `aeron_uri.h`.
    """

    endpoint: Annotated[str | None, _UDP_ADDRESS]
    """`host:port` that publications send to and subscriptions receive at."""
    interface: Annotated[str | None, _udp(Interface())]
    """Network interface to use: an address with an optional prefix length, or `{name}`."""
    control: Annotated[str | None, _UDP_ADDRESS]
    """`host:port` at which a publication takes its receivers' control messages."""
    control_mode: Annotated[str | None, Parameter(Choice("manual", "dynamic", "response"))]
    """How a publication gets its destinations: `manual`, `dynamic`, or `response` for response channels."""
    ttl: Annotated[Number, _udp(Integer(0, 255))]
    """Time to live of multicast datagrams."""
    response_endpoint: Annotated[str | None, _UDP_ADDRESS]
    """`host:port` of the responses, on the channels of a response server."""
    response_correlation_id: Annotated[Number, Parameter(AnyOf(Integer(-1, INT64_MAX), Choice("prototype")))]
    """Registration id of the response subscription, or correlation id of the image that is answered, or `prototype`."""

    term_length: Annotated[Number, Parameter(Size(_MIN_TERM_LENGTH, MAX_TERM_LENGTH, power_of_two=True))]
    """Size of a term: a power of two from 64 KiB to 1 GiB."""
    mtu: Annotated[Number, Parameter(Size(_MIN_MTU, _MAX_MTU, multiple=FRAME_ALIGNMENT))]
    """Size of the longest frame, header included: a multiple of 32 up to 65,504 bytes."""
    initial_term_id: Annotated[Number, _INT32]
    """Term id that the stream began with; goes with `term_id` and `term_offset`."""
    term_id: Annotated[Number, _INT32]
    """Term id to go on from."""
    term_offset: Annotated[Number, Parameter(Integer(0, MAX_TERM_LENGTH))]
    """Offset in the term to go on from, in bytes: a multiple of 32."""
    session_id: Annotated[Number, Parameter(AnyOf(Integer(INT32_MIN, INT32_MAX), SessionTag()))]
    """Session of a publication, or the only one that a subscription takes; `"tag:1002"` is that of a UDP publication
    with this entity tag."""
    stream_id: Annotated[Number, _INT32]
    """Stream id that goes with the channel; the caller still passes it to `add_*`."""
    tags: Annotated[int | str | tuple[int, int] | None, Parameter(Tags())]
    """Channel tag and entity tag, by which channels refer to each other: `1001`, `(1001, 1002)`, `"1001,1002"`."""
    alias: Annotated[str | None, Parameter(Text())]
    """Name for people, which Aeron does not interpret."""

    linger: Annotated[Seconds, _DURATION]
    """How long a publication stays in the driver after it was closed and drained."""
    eos: Annotated[Flag, _FLAG]
    """Whether a publication that is closed says that the stream has ended."""
    sparse: Annotated[Flag, _FLAG]
    """Whether log files take room only as they are written."""
    ssc: Annotated[Flag, _FLAG]
    """Whether spies alone make a publication connected."""
    pub_wnd: Annotated[Number, Parameter(Size(_MIN_MTU, MAX_TERM_LENGTH // 2))]
    """How far a publication may be ahead of its subscribers, in bytes: from one MTU to half a term."""
    max_resend: Annotated[Number, _udp(Integer(1, _MAX_RESENDS))]
    """How many retransmissions a publication has under way at most."""
    fc: Annotated[str | None, _udp(FlowControl())]
    """Flow control for several receivers: `max`, `min` or `tagged`, with options, such as `"tagged,g:1001/3,t:5s"`."""

    reliable: Annotated[Flag, _UDP_FLAG]
    """Whether a subscription has losses sent again, or filled with padding."""
    tether: Annotated[Flag, _FLAG]
    """Whether a subscription that falls behind slows the publisher down."""
    rejoin: Annotated[Flag, _FLAG]
    """Whether a subscription may rejoin a stream that it has lost."""
    group: Annotated[Flag, _udp(AnyOf(Boolean(), Choice("infer")))]
    """Whether a subscription is one of several receivers, or `infer`."""
    gtag: Annotated[Number, _udp(Integer(INT64_MIN, INT64_MAX))]
    """Group tag of a receiver, for the publisher's `fc=tagged`."""
    cc: Annotated[str | None, _udp(Choice("static", "cubic"))]
    """Congestion control of a receiver: `static` or `cubic`."""
    rcv_wnd: Annotated[Number, _UDP_BUFFER]
    """Initial window of a receiver in bytes; 0 is the driver's default."""
    nak_delay: Annotated[Seconds, _udp(Duration())]
    """How long a receiver waits before it asks for what is lost."""
    untethered_window_limit_timeout: Annotated[Seconds, _DURATION]
    """How long an untethered subscription may be outside of the window."""
    untethered_linger_timeout: Annotated[Seconds, _DURATION]
    """How long an untethered subscription that was given up lingers."""
    untethered_resting_timeout: Annotated[Seconds, _DURATION]
    """How long an untethered subscription rests before it may rejoin."""

    so_sndbuf: Annotated[Number, _UDP_BUFFER]
    """Send buffer of the socket in bytes; 0 is the default."""
    so_rcvbuf: Annotated[Number, _UDP_BUFFER]
    """Receive buffer of the socket in bytes; 0 is the default."""
    so_tos: Annotated[Number, _udp(Integer(0, 255))]
    """Type of service of the socket's datagrams."""
    media_rcv_ts_offset: Annotated[Number, _UDP_OFFSET]
    """Where in a message the time of its arrival at the host goes, in bytes, or `reserved` for the reserved value."""
    channel_rcv_ts_offset: Annotated[Number, _UDP_OFFSET]
    """Where in a message the time of its arrival at the driver goes."""
    channel_snd_ts_offset: Annotated[Number, _UDP_OFFSET]
    """Where in a message the time of its leaving the driver goes."""
    ats: Annotated[Flag, _UDP_FLAG]
    """Whether the transport is secure; for drivers that have Aeron Transport Security."""


def _aeron_name(keyword: str) -> str:
    return "init-term-id" if keyword == "initial_term_id" else keyword.replace("_", "-")


_parameters = get_type_hints(ChannelParams, include_extras=True)

KEYWORDS: dict[str, str] = {keyword: _aeron_name(keyword) for keyword in _parameters}
"""Aeron's name of each parameter, by its keyword."""

PARAMETERS: dict[str, Parameter] = {
    _aeron_name(keyword): parameter.__metadata__[0] for keyword, parameter in _parameters.items()
}
"""Each parameter, by Aeron's name."""

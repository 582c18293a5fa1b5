"""Channels as values: building, parsing, changing, and what is refused."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from aeron_async import ChannelError, ChannelUri
from aeron_async._channel_params import KEYWORDS, PARAMETERS

ENDPOINT = "127.0.0.1:40123"

VALUES: dict[str, tuple[Any, str]] = {
    "endpoint": ("[::1]:40123", "endpoint=[::1]:40123"),
    "interface": ("127.0.0.0/24", "interface=127.0.0.0/24"),
    "control": ("localhost:0", "control=localhost:0"),
    "control_mode": ("manual", "control-mode=manual"),
    "ttl": (8, "ttl=8"),
    "response_endpoint": (ENDPOINT, "response-endpoint=127.0.0.1:40123"),
    "response_correlation_id": (1 << 40, "response-correlation-id=1099511627776"),
    "term_length": ("64k", "term-length=64k"),
    "mtu": (8192, "mtu=8192"),
    "session_id": (-7, "session-id=-7"),
    "stream_id": (1001, "stream-id=1001"),
    "tags": ((1001, 1002), "tags=1001,1002"),
    "alias": ("prices = good", "alias=prices = good"),
    "linger": (0.25, "linger=250ms"),
    "eos": (False, "eos=false"),
    "sparse": (True, "sparse=true"),
    "ssc": ("true", "ssc=true"),
    "pub_wnd": ("128K", "pub-wnd=128K"),
    "max_resend": (256, "max-resend=256"),
    "fc": ("tagged,g:1001/3,t:5s", "fc=tagged,g:1001/3,t:5s"),
    "reliable": (False, "reliable=false"),
    "tether": (True, "tether=true"),
    "rejoin": (False, "rejoin=false"),
    "group": ("infer", "group=infer"),
    "gtag": (-1, "gtag=-1"),
    "cc": ("cubic", "cc=cubic"),
    "rcv_wnd": ("128k", "rcv-wnd=128k"),
    "nak_delay": (0.001, "nak-delay=1ms"),
    "untethered_window_limit_timeout": (5, "untethered-window-limit-timeout=5s"),
    "untethered_linger_timeout": ("20US", "untethered-linger-timeout=20US"),
    "untethered_resting_timeout": ("1000", "untethered-resting-timeout=1000"),
    "so_sndbuf": (1 << 20, "so-sndbuf=1048576"),
    "so_rcvbuf": ("2m", "so-rcvbuf=2m"),
    "so_tos": (255, "so-tos=255"),
    "media_rcv_ts_offset": ("reserved", "media-rcv-ts-offset=reserved"),
    "channel_rcv_ts_offset": (0, "channel-rcv-ts-offset=0"),
    "channel_snd_ts_offset": (8, "channel-snd-ts-offset=8"),
    "ats": (False, "ats=false"),
}
"""A value for each parameter that may stand alone, and its text in the channel."""

POSITION = {"initial_term_id": -5, "term_id": -3, "term_offset": 4096}


@pytest.mark.parametrize("keyword", VALUES)
def test_each_parameter_has_its_aeron_name_and_text(keyword: str) -> None:
    value, text = VALUES[keyword]
    uri = ChannelUri.udp(**{"control_mode": "manual", keyword: value})
    name, _, value_text = text.partition("=")
    assert text in str(uri).partition("?")[2].split("|")
    assert uri.get(keyword) == uri.get(name) == uri.params[name] == value_text


def test_every_parameter_is_tried() -> None:
    assert VALUES.keys() | POSITION.keys() == KEYWORDS.keys()
    assert set(KEYWORDS.values()) == PARAMETERS.keys()


def test_an_initial_position_is_three_parameters() -> None:
    assert str(ChannelUri.ipc(**POSITION)) == "aeron:ipc?init-term-id=-5|term-id=-3|term-offset=4096"


def test_parts_of_a_channel() -> None:
    uri = ChannelUri.parse(f"aeron-spy:aeron:udp?endpoint={ENDPOINT}|alias=a")
    assert (uri.prefix, uri.media) == ("aeron-spy", "udp")
    assert list(uri.params.items()) == [("endpoint", ENDPOINT), ("alias", "a")]
    plain = ChannelUri.ipc()
    assert (str(plain), plain.prefix, plain.media, dict(plain.params)) == ("aeron:ipc", "", "ipc", {})
    assert plain.get("mtu") is None


@pytest.mark.parametrize(
    "text",
    [
        "aeron:ipc",
        "aeron:ipc?term-length=64K|alias=a=b?c",
        "aeron:udp?tags=1001",
        "aeron:udp?control-mode=manual",
        "aeron:udp?control-mode=response|control=127.0.0.1:40990|response-correlation-id=prototype",
        "aeron:udp?control=127.0.0.1:0|control-mode=dynamic|fc=min,g:/3,rrwm:4,t:1s",
        "aeron:udp?endpoint=[ff02::11%eth0]:40456|interface=[::1]/64|ttl=0",
        "aeron:udp?endpoint=224.20.30.39:40456|interface={lo}:0",
        "aeron:udp?endpoint=my-host_1.example.org:65535|interface=localhost:0/24",
        f"aeron-spy:aeron:udp?endpoint={ENDPOINT}|session-id=tag:7",
        "aeron:udp?endpoint=localhost:1|linger=0|term-length=1g|pub-wnd=512m|fc=max,rrwm:2",
        "aeron:ipc?alias=börse",
    ],
)
def test_parsed_text_comes_back_as_it_was(text: str) -> None:
    assert str(ChannelUri.parse(text)) == text


def test_equality_does_not_look_at_the_order() -> None:
    one = ChannelUri.udp(endpoint=ENDPOINT, mtu=8192)
    other = ChannelUri.parse(f"aeron:udp?mtu=8192|endpoint={ENDPOINT}")
    assert one == other
    assert hash(one) == hash(other)
    assert one != ChannelUri.spy(one)
    assert one != one.replace(mtu=4096)
    assert one != str(one)


def test_a_channel_cannot_be_changed() -> None:
    uri = ChannelUri.ipc(mtu=8192)
    with pytest.raises(AttributeError):
        uri.media = "udp"  # type: ignore[misc]
    with pytest.raises(TypeError):
        uri.params["mtu"] = "4096"  # type: ignore[index]


def test_copies_and_pickles_are_equal() -> None:
    uri = ChannelUri.udp(endpoint=ENDPOINT, alias="a")
    for other in (copy.copy(uri), copy.deepcopy(uri), pickle.loads(pickle.dumps(uri)), eval(repr(uri))):
        assert other == uri
        assert str(other) == str(uri)


def test_replace_changes_in_place_adds_at_the_end_and_removes() -> None:
    uri = ChannelUri.udp(endpoint=ENDPOINT, mtu=8192, alias="a")
    assert str(uri.replace(mtu=4096, linger=1, alias=None)) == f"aeron:udp?endpoint={ENDPOINT}|mtu=4096|linger=1s"
    assert uri.replace(sparse=None) == uri
    with pytest.raises(ChannelError, match="endpoint, control, tags"):
        uri.replace(endpoint=None)


def test_none_leaves_a_parameter_out() -> None:
    assert str(ChannelUri.ipc(alias=None, mtu=None)) == "aeron:ipc"


def test_a_spy_of_a_channel_or_text() -> None:
    uri = ChannelUri.udp(endpoint=ENDPOINT)
    assert str(ChannelUri.spy(uri)) == f"aeron-spy:{uri}"
    assert ChannelUri.spy(str(uri)) == ChannelUri.spy(uri)
    for refused in ("aeron:ipc", ChannelUri.ipc(), ChannelUri.spy(uri), "nonsense"):
        with pytest.raises(ChannelError):
            ChannelUri.spy(refused)


@pytest.mark.parametrize(
    ("position", "initial_term_id", "term_id", "term_offset"),
    [
        (0, 7, 7, 0),
        (65504, 7, 7, 65504),
        (65536, 7, 8, 0),
        (65536 + 32, (1 << 31) - 1, -(1 << 31), 32),
        ((1 << 47) - 32, 0, (1 << 31) - 1, 65504),
        ((1 << 47) - 32, -1, (1 << 31) - 2, 65504),
    ],
)
def test_an_initial_position_names_its_term(
    position: int, initial_term_id: int, term_id: int, term_offset: int
) -> None:
    uri = ChannelUri.ipc().with_initial_position(position, initial_term_id, 65536)
    assert str(uri) == (
        f"aeron:ipc?init-term-id={initial_term_id}|term-id={term_id}|term-offset={term_offset}|term-length=65536"
    )


@pytest.mark.parametrize(
    ("position", "initial_term_id", "term_length"),
    [(-32, 0, 65536), (31, 0, 65536), (1 << 47, 0, 65536), (0, 0, 65535), (0, 0, 0), (0, 1 << 31, 65536)],
)
def test_an_impossible_initial_position_is_refused(position: int, initial_term_id: int, term_length: int) -> None:
    with pytest.raises(ChannelError):
        ChannelUri.ipc().with_initial_position(position, initial_term_id, term_length)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (5, "5s"),
        (1.5, "1500ms"),
        (0.1, "100ms"),
        (1.1, "1100ms"),
        (2e-05, "20us"),
        (1e-9, "1ns"),
        (1 / 3, "333333333ns"),
        (9_223_372_036, "9223372036s"),
    ],
)
def test_seconds_are_rendered_with_the_suffix_that_is_exact(seconds: float, text: str) -> None:
    assert ChannelUri.ipc(linger=seconds).get("linger") == text


REFUSED = [
    # What is no channel.
    ("", "aeron:"),
    ("udp?endpoint=localhost:1", "aeron:"),
    ("aeron", "aeron:"),
    (" aeron:ipc", "aeron:"),
    ("AERON:ipc", "aeron:"),
    ("aeron:", "media"),
    ("aeron:IPC", "media"),
    ("aeron:tcp?endpoint=localhost:1", "media"),
    ("aeron:ipcsdf", "media"),
    ("aeron:ipc|sparse=true", "media"),
    ("aeron:udp", "endpoint, control, tags"),
    ("aeron-spy:aeron:ipc", "spy"),
    ("aeron-spy:aeron-spy:aeron:udp?endpoint=localhost:1", "aeron:"),
    # Fields.
    ("aeron:ipc?", "name=value"),
    ("aeron:ipc?mtu", "name=value"),
    ("aeron:ipc?mtu=4096|", "name=value"),
    ("aeron:ipc?|mtu=4096", "name=value"),
    ("aeron:ipc?mtu=4096||sparse=true", "name=value"),
    ("aeron:ipc?=4096", "unknown channel parameter ''"),
    ("aeron:ipc?mtu=|sparse=true", "mtu"),
    ("aeron:ipc?sparse=true|mtu=", "mtu"),
    ("aeron:ipc?alias=", "alias"),
    ("aeron:ipc?mtu=4096|mtu=4096", "mtu is there twice"),
    # Names.
    ("aeron:ipc?term-lenght=64k", "did you mean term-length?"),
    ("aeron:ipc?term_length=64k", "did you mean term-length?"),
    ("aeron:ipc?Mtu=4096", "did you mean mtu?"),
    ("aeron:ipc?mtu-length=4096", "'mtu-length'"),
    ("aeron:ipc?init-term=0", "did you mean init-term-id?"),
    ("aeron:ipc?zzz=1", "there are endpoint"),
    # Values.
    ("aeron:ipc?sparse=maybe", "sparse accepts true or false"),
    ("aeron:ipc?sparse=trueish", "sparse"),
    ("aeron:ipc?sparse=True", "sparse"),
    ("aeron:ipc?term-length=32k", "term-length accepts a power of two of bytes from 65536 to 1073741824"),
    ("aeron:ipc?term-length=3m", "term-length"),
    ("aeron:ipc?term-length=2g", "term-length"),
    ("aeron:ipc?term-length=64kb", "term-length"),
    ("aeron:ipc?term-length=064k", "term-length"),
    ("aeron:ipc?term-length=0x10000", "term-length"),
    ("aeron:ipc?mtu=32", "mtu accepts a multiple of 32"),
    ("aeron:ipc?mtu=65536", "mtu"),
    ("aeron:ipc?mtu=1000", "mtu"),
    ("aeron:ipc?session-id=2147483648", "session-id accepts an integer from -2147483648 to 2147483647, or 'tag:'"),
    ("aeron:ipc?session-id=0x10", "session-id"),
    ("aeron:ipc?session-id=010", "session-id"),
    ("aeron:ipc?session-id=+1", "session-id"),
    ("aeron:ipc?session-id=\u0661", "session-id"),
    ("aeron:ipc?session-id=tag:", "session-id"),
    ("aeron:ipc?tags=abc", "tags"),
    ("aeron:ipc?tags=,5", "tags"),
    ("aeron:ipc?tags=5,", "tags"),
    ("aeron:ipc?tags=1,2,3", "tags"),
    ("aeron:udp?tags=-1", "tags"),
    ("aeron:ipc?alias=two\nlines", "alias"),
    ("aeron:ipc?alias=\0", "alias"),
    ("aeron:ipc?alias=\ud800", "alias"),
    ("aeron:ipc?linger=5m", "linger accepts seconds"),
    ("aeron:ipc?linger=1.5s", "linger"),
    ("aeron:ipc?linger=-5s", "linger"),
    ("aeron:ipc?linger=5msx", "linger"),
    ("aeron:ipc?linger=9223372037s", "linger"),
    ("aeron:ipc?response-correlation-id=-2", "response-correlation-id"),
    ("aeron:udp?endpoint=localhost", "endpoint accepts host:port"),
    ("aeron:udp?endpoint=:40123", "endpoint"),
    ("aeron:udp?endpoint=*:40123", "endpoint"),
    ("aeron:udp?endpoint=127.0.0.1:", "endpoint"),
    ("aeron:udp?endpoint=127.0.0.1:65536", "endpoint"),
    ("aeron:udp?endpoint=127.0.0.1:4012x", "endpoint"),
    ("aeron:udp?endpoint=127.0.0.1:40123/24", "endpoint"),
    ("aeron:udp?endpoint=256.1.1.1:40123", "endpoint"),
    ("aeron:udp?endpoint=::1:40123", "endpoint"),
    ("aeron:udp?endpoint=[::1]", "endpoint"),
    ("aeron:udp?endpoint=[localhost]:40123", "endpoint"),
    ("aeron:udp?endpoint=two words:40123", "endpoint"),
    ("aeron:udp?control=127.0.0.1|control-mode=dynamic", "control"),
    (f"aeron:udp?endpoint={ENDPOINT}|response-endpoint=nonsense", "response-endpoint"),
    (f"aeron:udp?endpoint={ENDPOINT}|interface=127.0.0.1/33", "interface"),
    (f"aeron:udp?endpoint={ENDPOINT}|interface=[::1]/129", "interface"),
    (f"aeron:udp?endpoint={ENDPOINT}|interface=127.0.0.1:/24", "interface"),
    (f"aeron:udp?endpoint={ENDPOINT}|interface={{}}", "interface"),
    (f"aeron:udp?endpoint={ENDPOINT}|interface={{name-of-16-chars}}", "interface"),
    (f"aeron:udp?endpoint={ENDPOINT}|interface={{lo}}/24", "interface"),
    (f"aeron:udp?endpoint={ENDPOINT}|control-mode=other", "control-mode accepts manual or dynamic or response"),
    (f"aeron:udp?endpoint={ENDPOINT}|ttl=256", "ttl"),
    (f"aeron:udp?endpoint={ENDPOINT}|so-tos=-1", "so-tos"),
    (f"aeron:udp?endpoint={ENDPOINT}|max-resend=0", "max-resend"),
    (f"aeron:udp?endpoint={ENDPOINT}|max-resend=257", "max-resend"),
    (f"aeron:udp?endpoint={ENDPOINT}|group=maybe", "group accepts true or false, or infer"),
    (f"aeron:udp?endpoint={ENDPOINT}|cc=other", "cc"),
    (f"aeron:udp?endpoint={ENDPOINT}|nak-delay=soon", "nak-delay"),
    (f"aeron:udp?endpoint={ENDPOINT}|channel-rcv-ts-offset=-8", "channel-rcv-ts-offset"),
    (f"aeron:udp?endpoint={ENDPOINT}|gtag=9223372036854775808", "gtag"),
    (f"aeron:udp?endpoint={ENDPOINT}|fc=pref", "fc accepts max, min or tagged"),
    (f"aeron:udp?endpoint={ENDPOINT}|fc=max,g:1", "fc"),
    (f"aeron:udp?endpoint={ENDPOINT}|fc=max,rrwm:0", "fc"),
    (f"aeron:udp?endpoint={ENDPOINT}|fc=min,", "fc"),
    (f"aeron:udp?endpoint={ENDPOINT}|fc=min,t:soon", "fc"),
    (f"aeron:udp?endpoint={ENDPOINT}|fc=min,t:1s,t:1s", "fc"),
    (f"aeron:udp?endpoint={ENDPOINT}|fc=tagged,g:", "fc"),
    (f"aeron:udp?endpoint={ENDPOINT}|fc=tagged,g:x/3", "fc"),
    (f"aeron:udp?endpoint={ENDPOINT}|fc=tagged,g:1/", "fc"),
    (f"aeron:udp?endpoint={ENDPOINT}|fc=tagged,g:1/-1", "fc"),
    # Combinations.
    ("aeron:udp?mtu=4096", "endpoint, control, tags"),
    ("aeron:udp?control-mode=dynamic", "control"),
    (f"aeron:udp?endpoint={ENDPOINT}|control-mode=dynamic", "control-mode=dynamic needs control"),
    ("aeron:udp?endpoint=224.20.30.40:40456", "endpoint: .* must be odd"),
    ("aeron:udp?endpoint=[ff02::10]:40456", "endpoint: .* must be odd"),
    ("aeron:ipc?control-mode=manual", "control-mode on IPC"),
    ("aeron:ipc?endpoint=localhost:1|ttl=1", "endpoint is for UDP.*ttl is for UDP"),
    ("aeron:ipc?init-term-id=1", "there is no term-id and no term-offset"),
    ("aeron:ipc?init-term-id=1|term-id=1", "there is no term-offset"),
    ("aeron:ipc?init-term-id=1|term-id=0|term-offset=0", "term-id=0"),
    ("aeron:ipc?init-term-id=1|term-id=1|term-offset=8", "term-offset=8 must be a multiple"),
    ("aeron:ipc?init-term-id=1|term-id=1|term-offset=65568|term-length=64k", "term-offset=65568 .* term-length=65536"),
    ("aeron:ipc?init-term-id=1|term-id=1|term-offset=1073741856", "term-offset"),
    ("aeron:ipc?pub-wnd=64k|term-length=64k", "pub-wnd=65536 must not exceed half of term-length=65536"),
    ("aeron:ipc?pub-wnd=1024|mtu=2048", "pub-wnd=1024 must not be less than mtu=2048"),
    (f"aeron:udp?endpoint={ENDPOINT}|rcv-wnd=128k|so-rcvbuf=64k", "rcv-wnd=131072 must not exceed so-rcvbuf=65536"),
    (f"aeron:udp?endpoint={ENDPOINT}|mtu=2048|so-sndbuf=1k", "mtu=2048 must not exceed so-sndbuf=1024"),
    (
        f"aeron:udp?endpoint={ENDPOINT}|media-rcv-ts-offset=4|channel-rcv-ts-offset=0",
        "media-rcv-ts-offset=4 and channel-rcv-ts-offset=0 overlap",
    ),
    (f"aeron:udp?endpoint={ENDPOINT}|channel-snd-ts-offset=reserved|media-rcv-ts-offset=reserved", "overlap"),
    # Length.
    (f"aeron:ipc?alias={'a' * 4080}", "4096 bytes"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[ascii(text)[:70] for text, _ in REFUSED])
def test_a_bad_channel_is_refused_by_what_is_wrong_with_it(text: str, message: str) -> None:
    with pytest.raises(ChannelError, match=message):
        ChannelUri.parse(text)


def test_the_longest_channel_is_taken() -> None:
    assert len(str(ChannelUri.ipc(alias="a" * 4079))) == 4095


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"term_lenght": "64k"}, "did you mean term_length?"),
        ({"term-length": "64k"}, "did you mean term_length?"),
        ({"init_term_id": 1}, "did you mean initial_term_id?"),
        ({"mtu": True}, "mtu=True"),
        ({"mtu": 4096.0}, "mtu"),
        ({"mtu": b"4096"}, "mtu"),
        ({"sparse": 1}, "sparse=1"),
        ({"alias": 5}, "alias"),
        ({"alias": ""}, "alias"),
        ({"alias": "a|mtu=4096"}, "alias"),
        ({"linger": -1}, "linger"),
        ({"linger": True}, "linger"),
        ({"linger": float("nan")}, "linger"),
        ({"linger": float("inf")}, "linger"),
        ({"linger": 9_223_372_037}, "linger"),
        ({"tags": (1, 2, 3)}, "tags"),
        ({"tags": ()}, "tags"),
        ({"tags": "1, 2"}, "tags"),
        ({"session_id": 1 << 31}, "session-id"),
        ({"term_offset": "4k", "term_id": 1, "initial_term_id": 1}, "term-offset"),
    ],
)
def test_a_bad_keyword_or_value_is_refused_by_name(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ChannelError, match=message):
        ChannelUri.ipc(**params)


def test_an_error_is_also_a_value_error() -> None:
    with pytest.raises(ValueError, match="sparse"):
        ChannelUri.parse("aeron:ipc?sparse=maybe")


def test_only_text_is_parsed() -> None:
    with pytest.raises(TypeError, match="bytes"):
        ChannelUri.parse(b"aeron:ipc")  # type: ignore[arg-type]


def test_a_channel_made_of_its_parts_is_checked_too() -> None:
    assert ChannelUri("", "udp", {"endpoint": ENDPOINT}) == ChannelUri.udp(endpoint=ENDPOINT)
    with pytest.raises(ChannelError, match="prefix"):
        ChannelUri("spy", "udp", {"endpoint": ENDPOINT})
    with pytest.raises(ChannelError, match="sparse"):
        ChannelUri("", "ipc", {"sparse": "maybe"})

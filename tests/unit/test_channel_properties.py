"""Channels at random: texts and values survive each other, and garbage is refused by nothing but `ChannelError`."""

from __future__ import annotations

import string
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aeron_async import ChannelError, ChannelUri
from aeron_async._channel_params import PARAMETERS

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TAG = st.integers(0, (1 << 63) - 1)
PORT = st.integers(0, 65535)
FLAG = st.booleans() | st.sampled_from(["true", "false"])
DURATION = st.one_of(
    st.floats(0, 1e6),
    st.integers(0, 1 << 30),
    st.builds("{}{}".format, st.integers(0, 1 << 30), st.sampled_from(["", "s", "ms", "us", "ns", "S", "Ms"])),
)
BUFFER = st.integers(1 << 20, 1 << 30) | st.sampled_from(["1m", "64M", "1g", 0])
HOST = st.one_of(
    st.sampled_from(["localhost", "a-1.example.org", "x_y"]),
    st.ip_addresses(v=4).filter(lambda address: not address.is_multicast).map(str),
    st.ip_addresses(v=6).filter(lambda address: not address.is_multicast).map("[{}]".format),
)
ADDRESS = st.builds("{}:{}".format, HOST, PORT)
PRINTABLE = st.text(min_size=1, max_size=30).filter(lambda text: text.isprintable() and "|" not in text)

COMMON: dict[str, st.SearchStrategy[Any]] = {
    "term_length": st.integers(16, 30).map(lambda bits: 1 << bits) | st.sampled_from(["64k", "16M", "1g"]),
    "mtu": st.integers(2, 2047).map(lambda frames: 32 * frames),
    "session_id": INT32 | st.builds("tag:{}".format, TAG),
    "stream_id": INT32,
    "tags": TAG | st.tuples(TAG, TAG),
    "alias": PRINTABLE,
    "linger": DURATION,
    "untethered_window_limit_timeout": DURATION,
    "untethered_linger_timeout": DURATION,
    "untethered_resting_timeout": DURATION,
    "eos": FLAG,
    "sparse": FLAG,
    "ssc": FLAG,
    "tether": FLAG,
    "rejoin": FLAG,
    "response_correlation_id": st.integers(-1, (1 << 63) - 1) | st.just("prototype"),
}
"""Values of parameters that go with all others."""

UDP: dict[str, st.SearchStrategy[Any]] = COMMON | {
    "endpoint": ADDRESS,
    "response_endpoint": ADDRESS,
    "interface": st.builds("{}:{}/{}".format, HOST, PORT, st.integers(0, 32)) | st.just("{eth0}"),
    "control_mode": st.sampled_from(["manual", "dynamic", "response"]),
    "ttl": st.integers(0, 255),
    "so_tos": st.integers(0, 255),
    "so_sndbuf": BUFFER,
    "so_rcvbuf": BUFFER,
    "rcv_wnd": st.integers(0, 1 << 20),
    "max_resend": st.integers(1, 256),
    "fc": st.builds("tagged,g:{}/{},t:{}s".format, INT64, st.integers(0, 99), st.integers(0, 99)),
    "gtag": INT64,
    "cc": st.sampled_from(["static", "cubic"]),
    "group": FLAG | st.just("infer"),
    "reliable": FLAG,
    "ats": FLAG,
    "nak_delay": DURATION,
    "channel_snd_ts_offset": st.integers(0, (1 << 31) - 1) | st.just("reserved"),
}


def some_of(values: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """A few of the parameters, in any order."""
    names = st.lists(st.sampled_from(sorted(values)), unique=True, max_size=8)
    return names.flatmap(lambda names: st.fixed_dictionaries({name: values[name] for name in names}))


POSITIONS = st.tuples(INT32, st.integers(0, (1 << 31) - 1), st.integers(0, 65536 // 32))
CHANNELS = st.one_of(
    some_of(COMMON).map(lambda params: ChannelUri.ipc(**params)),
    some_of(UDP).map(lambda params: ChannelUri.udp(**{"control": "localhost:40123", **params})),
    some_of(UDP).map(lambda params: ChannelUri.spy(ChannelUri.udp(**{"control": "localhost:40123", **params}))),
)


@given(CHANNELS)
def test_a_channel_is_what_its_text_says(uri: ChannelUri) -> None:
    parsed = ChannelUri.parse(str(uri))
    assert parsed == uri
    assert str(parsed) == str(uri)
    assert list(parsed.params) == list(uri.params)


@given(CHANNELS)
def test_replacing_what_is_there_by_itself_changes_nothing(uri: ChannelUri) -> None:
    keywords = {"initial_term_id" if name == "init-term-id" else name.replace("-", "_"): name for name in uri.params}
    assert str(uri.replace(**{keyword: uri.params[name] for keyword, name in keywords.items()})) == str(uri)


@given(POSITIONS)
def test_an_initial_position_is_the_position_of_its_term(place: tuple[int, int, int]) -> None:
    initial_term_id, terms, frames = place
    position = terms * 65536 + frames % 2048 * 32
    uri = ChannelUri.ipc().with_initial_position(position, initial_term_id, 65536)
    term_id, term_offset = int(uri.params["term-id"]), int(uri.params["term-offset"])
    assert (term_id - initial_term_id) % (1 << 32) * 65536 + term_offset == position


def assert_only_channels_are_parsed(text: str) -> None:
    try:
        uri = ChannelUri.parse(text)
    except ChannelError:
        return
    assert str(uri) == text


@given(st.text())
def test_garbage_raises_nothing_else(text: str) -> None:
    assert_only_channels_are_parsed(text)


@given(
    st.sampled_from(["aeron:ipc?", "aeron:udp?endpoint=localhost:1|", "aeron-spy:aeron:udp?tags=1|"]),
    st.sampled_from(sorted(PARAMETERS)),
    st.text(string.digits + "-:,/.kmgst[]{}=|truefalse") | st.text(),
)
def test_a_garbled_value_raises_nothing_else(start: str, name: str, value: str) -> None:
    assert_only_channels_are_parsed(f"{start}{name}={value}")


@given(CHANNELS, st.data())
def test_a_garbled_channel_raises_nothing_else(uri: ChannelUri, data: st.DataObject) -> None:
    text = str(uri)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 3, len(text))))
    assert_only_channels_are_parsed(text[:start] + data.draw(st.text(max_size=3)) + text[end:])


@given(
    st.sampled_from(sorted(UDP)),
    st.one_of(st.integers(), st.floats(), st.booleans(), st.binary(), st.text(), st.lists(st.integers())),
)
def test_a_value_of_any_type_raises_nothing_else(keyword: str, value: Any) -> None:
    try:
        uri = ChannelUri.udp(**{"control": "localhost:40123", keyword: value})
    except ChannelError:
        return
    assert_only_channels_are_parsed(str(uri))
    assert uri.get(keyword) is not None

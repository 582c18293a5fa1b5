"""What the parameters of one channel must be together: the driver's rules, as far as a channel alone shows them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from aeron_async._channel_params import MAX_TERM_LENGTH, PARAMETERS
from aeron_async.protocol.frames import FRAME_ALIGNMENT

__all__ = ["violations"]

_INT64_LENGTH = 8
_RESERVED_VALUE_OFFSET = -8
_POSITION = ("init-term-id", "term-id", "term-offset")
_TIMESTAMPS = ("media-rcv-ts-offset", "channel-rcv-ts-offset", "channel-snd-ts-offset")


def violations(media: str, values: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a channel, by the parsed values of its parameters.

    Source: `aeron_udp_channel.c`, `aeron_driver_uri.c`.
    """
    yield from _udp_rules(values) if media == "udp" else _ipc_rules(values)
    yield from _position_rules(values)
    yield from _window_rules(values)
    yield from _timestamp_rules(values)


def _ipc_rules(values: Mapping[str, Any]) -> Iterator[str]:
    for name in values:
        if PARAMETERS[name].udp_only:
            yield f"{name} is for UDP alone"
    if values.get("control-mode", "response") != "response":
        yield "control-mode on IPC accepts response alone"


def _udp_rules(values: Mapping[str, Any]) -> Iterator[str]:
    mode = values.get("control-mode")
    if mode == "dynamic" and "control" not in values:
        yield "control-mode=dynamic needs control, the address that receivers report to"
    if not values.keys() & {"endpoint", "control", "tags"} and mode not in ("manual", "response"):
        yield "a UDP channel needs endpoint, control, tags, or control-mode=manual or response"
    match values.get("endpoint"):
        case (IPv4Address() | IPv6Address() as group, _) if group.is_multicast and group.packed[-1] % 2 == 0:
            yield f"endpoint: the last byte of the multicast address {group} must be odd; the next is for control"


def _position_rules(values: Mapping[str, Any]) -> Iterator[str]:
    missing = [name for name in _POSITION if name not in values]
    if missing:
        if len(missing) < len(_POSITION):
            yield f"{', '.join(_POSITION)} go together, and there is no {' and no '.join(missing)}"
        return
    initial_term_id, term_id, term_offset = (values[name] for name in _POSITION)
    if (term_id - initial_term_id) % (1 << 32) >= 1 << 31:
        yield f"term-id={term_id} must be init-term-id={initial_term_id} or at most 2^31 - 1 terms after it"
    if term_offset % FRAME_ALIGNMENT:
        yield f"term-offset={term_offset} must be a multiple of {FRAME_ALIGNMENT}"
    term_length = values.get("term-length", MAX_TERM_LENGTH)
    if term_offset > term_length:
        yield f"term-offset={term_offset} must not exceed term-length={term_length}"


def _window_rules(values: Mapping[str, Any]) -> Iterator[str]:
    window = values.get("pub-wnd")
    if window is not None and window < values.get("mtu", window):
        yield f"pub-wnd={window} must not be less than mtu={values['mtu']}"
    if window is not None and window > values.get("term-length", MAX_TERM_LENGTH) // 2:
        yield f"pub-wnd={window} must not exceed half of term-length={values['term-length']}"
    for length, buffer in (("rcv-wnd", "so-rcvbuf"), ("mtu", "so-sndbuf")):
        # A buffer of 0 is the driver's default.
        if values.get(buffer) and values.get(length, 0) > values[buffer]:
            yield f"{length}={values[length]} must not exceed {buffer}={values[buffer]}"


def _timestamp_rules(values: Mapping[str, Any]) -> Iterator[str]:
    offsets = {name: values[name] for name in _TIMESTAMPS if name in values}
    for (name, offset), (other_name, other_offset) in itertools.combinations(offsets.items(), 2):
        if abs(_message_offset(offset) - _message_offset(other_offset)) < _INT64_LENGTH:
            yield f"{name}={offset} and {other_name}={other_offset} overlap; each takes {_INT64_LENGTH} bytes"


def _message_offset(offset: int | str) -> int:
    return _RESERVED_VALUE_OFFSET if isinstance(offset, str) else offset

"""What the values of channel parameters look like.

Only texts that every Aeron driver reads alike are taken. The C driver alone reads `0x10` as 16, `010` as 8, `64kb` as
64k, `5m` as 5 ms, `trueish` as true and port `4040x` as 4040.
"""

from __future__ import annotations

import ipaddress
import re
from abc import ABC, abstractmethod
from typing import SupportsIndex

__all__ = [
    "INT32_MAX",
    "INT32_MIN",
    "INT64_MAX",
    "INT64_MIN",
    "Address",
    "AnyOf",
    "Boolean",
    "Choice",
    "Duration",
    "FlowControl",
    "Host",
    "Integer",
    "Interface",
    "Kind",
    "SessionTag",
    "Size",
    "Tags",
    "Text",
]

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1

Host = ipaddress.IPv4Address | ipaddress.IPv6Address | str
"""An address, or a name to look up."""

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_SIZE = re.compile(r"(0|[1-9][0-9]*)([kKmMgG]?)")
_DURATION = re.compile(r"(0|[1-9][0-9]*)(s|ms|us|ns|)", re.IGNORECASE)
_ADDRESS = re.compile(r"(\[[^\[\]]+\]|[^:/\[\]]+):([^:/]+)")
_INTERFACE = re.compile(r"(\[[^\[\]]+\]|[^:/\[\]{}]+)(?::([^:/]+))?(?:/([^:/]+))?")
_NAMED_INTERFACE = re.compile(r"\{[^{}/\s]{1,15}\}(?::([^:/]+))?")
_HOST_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")
_IPV4_LIKE = re.compile(r"[0-9]+(?:\.[0-9]+){3}")

_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


class Kind(ABC):
    """A kind of value. `accepts` says what it looks like, for error messages."""

    accepts: str

    @abstractmethod
    def parse(self, text: str) -> object:
        """What a text means. Raises `ValueError` where it means nothing."""

    def render(self, value: object) -> str:
        """The text for a value that is not a text, which `parse` has yet to judge. Raises `ValueError`."""
        raise ValueError


class Text(Kind):
    """A text for people."""

    accepts = "printable text without |"

    def parse(self, text: str) -> str:
        if not text or "|" in text or not text.isprintable():
            raise ValueError
        return text


class Choice(Kind):
    """One of a few words."""

    def __init__(self, *words: str) -> None:
        self._words = words
        self.accepts = " or ".join(words)

    def parse(self, text: str) -> str:
        if text not in self._words:
            raise ValueError
        return text


class Boolean(Choice):
    """True or false, also as a `bool`."""

    def __init__(self) -> None:
        super().__init__("true", "false")

    def render(self, value: object) -> str:
        if not isinstance(value, bool):
            raise ValueError
        return "true" if value else "false"


class Integer(Kind):
    """A decimal number in a range."""

    def __init__(self, low: int, high: int) -> None:
        self._range = range(low, high + 1)
        self.accepts = f"an integer from {low} to {high}"

    def parse(self, text: str) -> int:
        if not _INTEGER.fullmatch(text) or int(text) not in self._range:
            raise ValueError
        return int(text)

    def render(self, value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, SupportsIndex):
            raise ValueError
        return str(value.__index__())


class Size(Integer):
    """A number of bytes in a range, a multiple of `multiple`."""

    def __init__(self, low: int, high: int, *, multiple: int = 1, power_of_two: bool = False) -> None:
        super().__init__(low, high)
        self._multiple = multiple
        self._power_of_two = power_of_two
        shape = "a power of two" if power_of_two else f"a multiple of {multiple}" if multiple > 1 else "a number"
        self.accepts = f"{shape} of bytes from {low} to {high}, also with a suffix: 64k, 16m, 1g"

    def parse(self, text: str) -> int:
        match = _SIZE.fullmatch(text)
        if not match:
            raise ValueError
        size = int(match[1]) * _BYTES[match[2].lower()]
        if size not in self._range or size % self._multiple or (self._power_of_two and size & (size - 1)):
            raise ValueError
        return size


class Duration(Kind):
    """A time span: nanoseconds in a text without suffix, as the driver has it, and seconds in a number."""

    accepts = "seconds as a number, or a text with a suffix: '5s', '100ms', '20us', '500ns'"

    def parse(self, text: str) -> int:
        match = _DURATION.fullmatch(text)
        if not match:
            raise ValueError
        duration = int(match[1]) * _NANOSECONDS[match[2].lower() or "ns"]
        if duration > INT64_MAX:
            raise ValueError
        return duration

    def render(self, value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= INT64_MAX:
            raise ValueError
        duration = round(value * 10**9)
        suffix = next(suffix for suffix, unit in _NANOSECONDS.items() if duration % unit == 0)
        return f"{duration // _NANOSECONDS[suffix]}{suffix}"


class Address(Kind):
    """A host and a port; what they mean is a `Host` and an `int`."""

    accepts = "host:port, an IPv6 address in brackets, port 0 for one that the system chooses"

    def parse(self, text: str) -> tuple[Host, int]:
        match = _ADDRESS.fullmatch(text)
        if not match:
            raise ValueError
        return _parse_host(match[1]), _PORT.parse(match[2])


class Interface(Kind):
    """The network interface to use: by an address of its own or of its network, or by its name."""

    accepts = "host[:port][/prefix length], an IPv6 address in brackets, or {name}[:port]"

    def parse(self, text: str) -> str:
        if named := _NAMED_INTERFACE.fullmatch(text):
            port = named[1]
        elif match := _INTERFACE.fullmatch(text):
            host, port, prefix_length = _parse_host(match[1]), match[2], match[3]
            if prefix_length is not None:
                Integer(0, 128 if isinstance(host, ipaddress.IPv6Address) else 32).parse(prefix_length)
        else:
            raise ValueError
        if port is not None:
            _PORT.parse(port)
        return text


class Tags(Kind):
    """The tag of a channel, and one of a publication or subscription on it."""

    accepts = "a channel tag, or a channel tag and an entity tag: '1001' or '1001,1002', each from 0 to 2^63 - 1"

    def parse(self, text: str) -> tuple[int, ...]:
        tags = text.split(",")
        if len(tags) > 2:
            raise ValueError
        return tuple(_TAG.parse(tag) for tag in tags)

    def render(self, value: object) -> str:
        return ",".join(_TAG.render(tag) for tag in (value if isinstance(value, tuple | list) else (value,)))


class SessionTag(Kind):
    """The session of another publication, by its entity tag."""

    accepts = "'tag:' with the entity tag of a UDP publication"

    def parse(self, text: str) -> int:
        if not text.startswith("tag:"):
            raise ValueError
        return _TAG.parse(text.removeprefix("tag:"))


class FlowControl(Kind):
    """A flow control strategy for several receivers, with its options."""

    accepts = (
        "max, min or tagged, then options between commas: rrwm:<retransmit receiver window multiple>, and but for max "
        "g:[<group tag>][/<group size>] and t:<receiver timeout>, such as 'tagged,g:1001/3,t:5s'"
    )

    def parse(self, text: str) -> dict[str, str]:
        strategy, *fields = text.split(",")
        allowed = {"rrwm"} if _STRATEGY.parse(strategy) == "max" else {"rrwm", "g", "t"}
        options: dict[str, str] = {}
        for field in fields:
            name, _, value = field.partition(":")
            if name not in allowed - options.keys():
                raise ValueError
            options[name] = value
            if name == "rrwm":
                Integer(1, INT32_MAX).parse(value)
            elif name == "t":
                Duration().parse(value)
            else:
                self._check_group(value)
        return options

    @staticmethod
    def _check_group(text: str) -> None:
        tag, has_size, size = text.partition("/")
        if has_size:
            Integer(0, INT32_MAX).parse(size)
        if tag or not has_size:
            Integer(INT64_MIN, INT64_MAX).parse(tag)


class AnyOf(Kind):
    """What one of several kinds accepts; the first one that does counts."""

    def __init__(self, *kinds: Kind) -> None:
        self._kinds = kinds
        self.accepts = ", or ".join(kind.accepts for kind in kinds)

    def parse(self, text: str) -> object:
        for kind in self._kinds:
            try:
                return kind.parse(text)
            except ValueError:
                continue
        raise ValueError

    def render(self, value: object) -> str:
        for kind in self._kinds:
            try:
                return kind.render(value)
            except ValueError:
                continue
        raise ValueError


_PORT = Integer(0, (1 << 16) - 1)
_TAG = Integer(0, INT64_MAX)
_STRATEGY = Choice("max", "min", "tagged")


def _parse_host(text: str) -> Host:
    """An IPv6 address in brackets, an IPv4 address or a name. Raises `ValueError`."""
    if text.startswith("["):
        return ipaddress.IPv6Address(text[1:-1])
    if _IPV4_LIKE.fullmatch(text):
        return ipaddress.IPv4Address(text)
    if not _HOST_NAME.fullmatch(text):
        raise ValueError
    return text

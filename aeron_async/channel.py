"""The channel that a stream runs over, as a value."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self, Unpack, final

from aeron_async._channel_params import KEYWORDS, PARAMETERS, ChannelParams
from aeron_async._channel_rules import violations
from aeron_async._channel_values import INT32_MAX, INT32_MIN
from aeron_async.errors import ChannelError
from aeron_async.protocol.frames import FRAME_ALIGNMENT

__all__ = ["ChannelParams", "ChannelUri"]

_SPY = "aeron-spy"
_SCHEME = "aeron:"

# The driver's buffer for a channel takes 4096 bytes with the final NUL.
_MAX_LENGTH = 4095


@final
@dataclass(frozen=True, slots=True, repr=False)
class ChannelUri:
    """An Aeron channel whose names, values and combination of parameters are what drivers accept.

    Immutable, hashable, and equal to another with the same parameters in any order. `str()` gives the text that drivers
    take, and every `add_*` takes a `ChannelUri` in place of a text. Names and values are checked when one is made, by
    whichever of its methods; what depends on the driver's settings and on its other streams is the driver's to refuse.

    `prefix` is `"aeron-spy"` for a spy and empty otherwise, `media` is `"udp"` or `"ipc"`, and `params` has the texts
    of the parameters by Aeron's names, in the order of the channel's text.

    Raises `ChannelError`, which names the parameter and what it accepts. Source: `io.aeron.ChannelUri`, `aeron_uri.h`.
    """

    prefix: str
    media: str
    params: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", MappingProxyType(dict(self.params)))
        if self.prefix not in ("", _SPY):
            raise ChannelError(f"prefix {self.prefix!r}: accepts {_SPY!r} or none")
        if self.media not in ("udp", "ipc"):
            raise ChannelError(f"media {self.media!r}: a channel begins with aeron:udp? or is aeron:ipc")
        if self.prefix and self.media == "ipc":
            raise ChannelError("a spy reads a UDP publication; on IPC an ordinary subscription does that")
        values = {name: _parse(name, text) for name, text in self.params.items()}
        if problems := list(violations(self.media, values)):
            raise ChannelError("; ".join(problems))
        if (length := len(str(self).encode())) > _MAX_LENGTH:
            raise ChannelError(f"a channel of {length} bytes is too long; drivers take {_MAX_LENGTH}")

    @classmethod
    def ipc(cls, **params: Unpack[ChannelParams]) -> Self:
        """An IPC channel. Parameters and their units: `ChannelParams`. Raises `ChannelError`."""
        return cls("", "ipc", _updated({}, params))

    @classmethod
    def udp(cls, **params: Unpack[ChannelParams]) -> Self:
        """A UDP channel. Parameters and their units: `ChannelParams`. Raises `ChannelError`."""
        return cls("", "udp", _updated({}, params))

    @classmethod
    def spy(cls, uri: str | ChannelUri) -> Self:
        """The channel of a subscription that reads what a publication on this driver sends to the UDP channel `uri`.

        Raises `ChannelError`, for IPC too. Source: `CommonContext.SPY_PREFIX`.
        """
        of = uri if isinstance(uri, ChannelUri) else ChannelUri.parse(uri)
        if of.prefix:
            raise ChannelError(f"{str(of)!r} is a spy already")
        return cls(_SPY, of.media, of.params)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The channel that `text` spells; `str()` of it is `text` again.

        Names match exactly. Raises `ChannelError` for all that is no channel, also for an empty value, a duplicate and
        an unknown parameter. Source: `io.aeron.ChannelUri.parse`.
        """
        if not isinstance(text, str):
            raise TypeError(f"a channel is a str, not {type(text).__name__}")
        spied = text.removeprefix(f"{_SPY}:")
        prefix = "" if spied == text else _SPY
        if not spied.startswith(_SCHEME):
            raise ChannelError(f"{text!r}: a channel begins with {_SCHEME}")
        media, mark, fields = spied.removeprefix(_SCHEME).partition("?")
        params: dict[str, str] = {}
        for item in fields.split("|") if mark else ():
            name, equals, value = item.partition("=")
            if not equals:
                raise ChannelError(f"{item!r} in {text!r}: parameters are name=value, with | between them")
            if name in params:
                raise ChannelError(f"{name} is there twice in {text!r}")
            params[name] = value
        return cls(prefix, media, params)

    def get(self, name: str) -> str | None:
        """The text of a parameter, by Aeron's name or by its keyword; None where the channel does not have it."""
        return self.params.get(KEYWORDS.get(name, name))

    def replace(self, **params: Unpack[ChannelParams]) -> Self:
        """The same channel with parameters changed or added, or removed by None. Raises `ChannelError`."""
        return type(self)(self.prefix, self.media, _updated(self.params, params))

    def with_initial_position(self, position: int, initial_term_id: int, term_length: int) -> Self:
        """The same channel for an exclusive publication that goes on with a stream at `position`, in bytes.

        `initial_term_id` and `term_length` (bytes) are those of the stream. Raises `ChannelError`. Source:
        `io.aeron.ChannelUri.initialPosition`.
        """
        sized = self.replace(
            initial_term_id=initial_term_id, term_id=initial_term_id, term_offset=0, term_length=term_length
        )
        terms, term_offset = divmod(position, term_length)
        if position % FRAME_ALIGNMENT or not 0 <= terms <= INT32_MAX:
            raise ChannelError(
                f"position {position}: accepts a multiple of {FRAME_ALIGNMENT} in the stream's 2^31 terms"
            )
        term_id = (initial_term_id + terms - INT32_MIN) % (1 << 32) + INT32_MIN
        return sized.replace(term_id=term_id, term_offset=term_offset)

    def __hash__(self) -> int:
        return hash((self.prefix, self.media, frozenset(self.params.items())))

    def __str__(self) -> str:
        prefix = f"{self.prefix}:" if self.prefix else ""
        fields = "|".join(f"{name}={value}" for name, value in self.params.items())
        return f"{prefix}{_SCHEME}{self.media}{'?' if fields else ''}{fields}"

    def __repr__(self) -> str:
        return f"ChannelUri.parse({str(self)!r})"

    # A mapping proxy can be neither copied nor pickled.
    def __reduce__(self) -> tuple[Any, ...]:
        return ChannelUri, (self.prefix, self.media, dict(self.params))


def _updated(texts: Mapping[str, str], params: Mapping[str, object]) -> dict[str, str]:
    """The texts of the parameters after the changes that keywords ask for."""
    updated = dict(texts)
    for keyword, value in params.items():
        if keyword not in KEYWORDS:
            raise _unknown(keyword, KEYWORDS)
        name = KEYWORDS[keyword]
        if value is None:
            updated.pop(name, None)
        else:
            updated[name] = value if isinstance(value, str) else _render(name, value)
    return updated


def _parse(name: str, text: str) -> object:
    if name not in PARAMETERS:
        raise _unknown(name, PARAMETERS)
    try:
        return PARAMETERS[name].kind.parse(text)
    except ValueError:
        raise _unacceptable(name, text) from None


def _render(name: str, value: object) -> str:
    try:
        return PARAMETERS[name].kind.render(value)
    except ValueError:
        raise _unacceptable(name, value) from None


def _unacceptable(name: str, value: object) -> ChannelError:
    return ChannelError(f"{name}={value!r}: {name} accepts {PARAMETERS[name].kind.accepts}")


def _unknown(name: str, known: Iterable[str]) -> ChannelError:
    nearest = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {nearest[0]}?" if nearest else f"; there are {', '.join(known)}"
    return ChannelError(f"unknown channel parameter {name!r}{hint}")


def channel_text(channel: str | ChannelUri) -> str:
    """A channel as it goes to the driver. Raises `TypeError` for what is none."""
    if not isinstance(channel, str | ChannelUri):
        raise TypeError(f"a channel is a str or a ChannelUri, not {type(channel).__name__}")
    return str(channel)


def is_ipc(channel: str) -> bool:
    """Whether publishers and subscribers of the channel have one and the same log."""
    return channel.startswith("aeron:ipc")

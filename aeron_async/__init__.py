"""An asyncio-native client for the Aeron messaging system."""

from aeron_async.channel import ChannelParams, ChannelUri
from aeron_async.client import Client, Connect, connect
from aeron_async.counters import Counter, CounterInfo, CountersReader
from aeron_async.driver import DriverConfig, MediaDriver
from aeron_async.errors import *  # noqa: F403
from aeron_async.errors import __all__ as _errors
from aeron_async.publication import ExclusivePublication, OfferResult, Publication
from aeron_async.subscription import Header, Image, Message, MessageBatch, Subscription

__all__ = [
    "ChannelParams",
    "ChannelUri",
    "Client",
    "Connect",
    "Counter",
    "CounterInfo",
    "CountersReader",
    "DriverConfig",
    "ExclusivePublication",
    "Header",
    "Image",
    "MediaDriver",
    "Message",
    "MessageBatch",
    "OfferResult",
    "Publication",
    "Subscription",
    "connect",
]
__all__ += _errors

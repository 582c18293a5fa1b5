"""An asyncio-native client for the Aeron messaging system."""

from aeron_async.action import Action
from aeron_async.batch_publisher import BatchPublisher
from aeron_async.block import Block
from aeron_async.channel import ChannelParams, ChannelUri
from aeron_async.claim import BufferClaim
from aeron_async.client import Client, Connect, connect
from aeron_async.counters import Counter, CounterInfo, CountersReader
from aeron_async.driver import DriverConfig, MediaDriver
from aeron_async.errors import *  # noqa: F403
from aeron_async.errors import __all__ as _errors
from aeron_async.idle import Backoff, BusySpin, IdleStrategy, Parking, Sleeping, Yielding
from aeron_async.publication import ExclusivePublication, OfferResult, Publication
from aeron_async.publication_error import PublicationError
from aeron_async.subscription import Header, Image, Message, MessageBatch, Subscription

__all__ = [
    "Action",
    "Backoff",
    "BatchPublisher",
    "Block",
    "BufferClaim",
    "BusySpin",
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
    "IdleStrategy",
    "Image",
    "MediaDriver",
    "Message",
    "MessageBatch",
    "OfferResult",
    "Parking",
    "Publication",
    "PublicationError",
    "Sleeping",
    "Subscription",
    "Yielding",
    "connect",
]
__all__ += _errors

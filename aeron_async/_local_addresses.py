"""The socket addresses behind a channel, which the driver tells in counters.

The key of such a counter (type `CounterType.LOCAL_SOCKET_ADDRESS_STATUS`):

```
0   int32  id of the channel's status counter
4   int32  address length
8   text   address
```
"""

from __future__ import annotations

from struct import Struct

from aeron_async.counters import CountersReader
from aeron_async.protocol.counter_types import CounterType

CHANNEL_ACTIVE = 1
"""A channel's status, and an address's, once it is in use."""

_KEY = Struct("<ii")


def local_socket_addresses(counters: CountersReader, channel_status_id: int) -> list[str]:
    """The addresses in use by the channel whose status counter has this id, as `host:port`.

    Source: Aeron's `LocalSocketAddressStatus`.
    """
    if channel_status_id < 0 or counters[channel_status_id] != CHANNEL_ACTIVE:
        return []
    addresses = []
    for info in counters.find(type_id=CounterType.LOCAL_SOCKET_ADDRESS_STATUS):
        owner_id, length = _KEY.unpack_from(info.key)
        if owner_id == channel_status_id and info.value == CHANNEL_ACTIVE and length > 0:
            addresses.append(info.key[_KEY.size : _KEY.size + length].decode("ascii", errors="replace"))
    return addresses

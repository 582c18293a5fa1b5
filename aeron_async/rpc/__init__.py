"""Request and response over Aeron's response channels, on UDP and IPC.

A server subscribes to a channel and stream; each dialler publishes its requests there, and the server answers it on a
publication that no other dialler sees. The frames are those of `aeron_async.protocol.rpc_frames`.

Source: Aeron's response channels (`control-mode=response`, `response-correlation-id`).
"""

from aeron_async.rpc.dialler import Remote, dial
from aeron_async.rpc.server import Server, serve

__all__ = ["Remote", "Server", "dial", "serve"]

"""The ways to use our client that have rows of their own, by the modes of the peer that know them."""

from __future__ import annotations

MESSAGES = "offer / poll"
"""One message a call."""
LISTS = "offer_many / poll_batch"
COLUMNS = "offer_array / as_array"
BLOCKS = "offer_array / block"
TASKS = "publish / async for"
PAYLOADS = "async for payloads()"
CALLS = "rpc.call"
POLL = "poll"
POLL_BATCH = "poll_batch"
AS_ARRAY = "as_array"
BLOCK = "block"

WAYS = {
    "latency": (MESSAGES, TASKS),
    "throughput": (MESSAGES, LISTS, COLUMNS, BLOCKS, TASKS),
    "receive": (PAYLOADS,),
    "rpc-client": (MESSAGES, CALLS),
    "market-consumer": (POLL, POLL_BATCH, AS_ARRAY, BLOCK, PAYLOADS),
}

"""The peer of the asyncio suite: `python -m benchmarks.peers.python.aio MODE --client NAME …`, one end of a link."""

"""Processes that fork while they have a client."""

from __future__ import annotations

import pytest

from tests.support import RUNNERS, run_program, running_driver

PREAMBLE = """
    import asyncio
    import inspect
    import os
    import sys
    import threading
    import time
    import traceback
    import warnings
    import anyio
    from aeron_async import ForkedClientError, connect

    # CPython warns of forks beside threads.
    warnings.simplefilter("ignore", DeprecationWarning)

    def is_refused(call):
        # In an event loop of the child's own: the parent's is not for it.
        refused = []

        async def attempt():
            result = call()
            if inspect.isawaitable(result):
                await result

        def run():
            try:
                asyncio.run(attempt())
            except ForkedClientError:
                refused.append(True)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(5)
        return bool(refused)

    def not_refused(client, publication, subscription, image, counter):
        calls = {
            "add_publication": lambda: client.add_publication("aeron:ipc", 1),
            "add_exclusive_publication": lambda: client.add_exclusive_publication("aeron:ipc", 1),
            "add_subscription": lambda: client.add_subscription("aeron:ipc", 1),
            "add_counter": lambda: client.add_counter(1101),
            "wait_closed": lambda: client.wait_closed(),
            "client.aclose": lambda: client.aclose(),
            "offer": lambda: publication.offer(b"from the child"),
            "offer_vectored": lambda: publication.offer_vectored([b"from the child"]),
            "offer_many": lambda: publication.offer_many([b"from the child"]),
            "publish": lambda: publication.publish(b"from the child"),
            "publish_vectored": lambda: publication.publish_vectored([b"from the child"]),
            "publication.wait_connected": lambda: publication.wait_connected(),
            "publication.aclose": lambda: publication.aclose(),
            "poll": lambda: subscription.poll(lambda payload, header: None),
            "poll_batch": lambda: subscription.poll_batch(),
            "messages": lambda: anext(aiter(subscription)),
            "payloads": lambda: anext(subscription.payloads()),
            "batches": lambda: anext(subscription.batches()),
            "subscription.wait_connected": lambda: subscription.wait_connected(),
            "subscription.aclose": lambda: subscription.aclose(),
            "image.poll_batch": lambda: image.poll_batch(),
            "image.payloads": lambda: anext(image.payloads()),
            "counter.value": lambda: setattr(counter, "value", 1),
            "counter.increment": lambda: counter.increment(),
            "counter.get_and_set": lambda: counter.get_and_set(1),
            "counter.compare_and_set": lambda: counter.compare_and_set(0, 1),
            "counter.aclose": lambda: counter.aclose(),
        }
        return [name for name, call in calls.items() if not is_refused(call)]

    async def open_all(client):
        subscription = await client.add_subscription("aeron:ipc", 1001)
        publication = await client.add_publication("aeron:ipc", 1001)
        counter = await client.add_counter(1101, label="of the parent")
        await publication.wait_connected()
        await subscription.wait_connected()
        return publication, subscription, subscription.images[0], counter

    async def works(client, publication, subscription, image, counter):
        assert not client.is_closed
        assert client.driver.is_alive
        assert counter.value == 0
        await publication.publish(b"from the parent")
        assert await anext(subscription.payloads()) == b"from the parent"
        async with await client.add_subscription("aeron:ipc", 1002):
            pass

    def wait_for(child):
        _, status = os.waitpid(child, 0)
        assert status == 0, status
"""

FORK_IN_THE_LOOP = """
    async def main():
        async with connect(keepalive_interval=0.1) as client:
            resources = await open_all(client)
            resources[0].offer(b"unread")
            child = os.fork()
            if child == 0:
                # Nothing of the child may run on in the parent's event loop.
                try:
                    print(not_refused(client, *resources), flush=True)
                    os._exit(0)
                finally:
                    traceback.print_exc()
                    os._exit(1)
            wait_for(child)
            assert await anext(resources[1].payloads()) == b"unread"
            await works(client, *resources)
            await anyio.sleep(0.3)
            await works(client, *resources)
"""

BESIDE_THE_LOOP = """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def call(coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(20)

    async def open_client(connecting):
        return await connecting

    def end_loop():
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
"""

FORK_BESIDE_THE_LOOP = """
    from tests.support import quick_config

    client = call(open_client(connect(driver=quick_config(client_liveness_timeout=1), keepalive_interval=0.1)))
    resources = call(open_all(client))
    child = os.fork()
    if child == 0:
        print(not_refused(client, *resources), flush=True)
        # The end of an interpreter, with all its finalizers and exit handlers.
        sys.exit(0)
    wait_for(child)
    call(works(client, *resources))
    time.sleep(1.5)
    call(works(client, *resources))
    call(client.aclose())
    assert not client.driver.is_alive
    end_loop()
"""

CHILD_WITH_A_CLIENT_OF_ITS_OWN = """
    async def child_main():
        async with connect(sys.argv[1]) as client:
            publication = await client.add_publication("aeron:ipc", 1001)
            await publication.publish(b"from the child")
            # Its subscriber is in the parent, which reads before it lets the child go.
            os.read(read_end, 1)

    client = call(open_client(connect(sys.argv[1])))
    subscription = call(client.add_subscription("aeron:ipc", 1001))
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        asyncio.run(child_main())
        sys.exit(0)
    assert call(anext(subscription.payloads())) == b"from the child"
    os.write(write_end, b".")
    wait_for(child)
    call(client.add_subscription("aeron:ipc", 1002))
    call(client.aclose())
    end_loop()
"""


@pytest.mark.usefixtures("runtime_dir")
@pytest.mark.parametrize("run", RUNNERS.values(), ids=RUNNERS)
def test_a_forked_child_may_use_nothing_and_harms_nothing(run: str) -> None:
    assert run_program(f"{PREAMBLE}{FORK_IN_THE_LOOP}\n    {run}\n") == "[]\n"


@pytest.mark.usefixtures("runtime_dir")
def test_the_orderly_end_of_a_forked_child_does_not_touch_the_parents_client() -> None:
    assert run_program(PREAMBLE + BESIDE_THE_LOOP + FORK_BESIDE_THE_LOOP) == "[]\n"


def test_a_forked_child_may_have_a_client_of_its_own() -> None:
    with running_driver() as driver:
        assert run_program(PREAMBLE + BESIDE_THE_LOOP + CHILD_WITH_A_CLIENT_OF_ITS_OWN, driver.aeron_dir) == ""

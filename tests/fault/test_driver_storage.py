"""A driver on a file system that is too small."""

from __future__ import annotations

import os

import pytest

from tests.support import run_program

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not hasattr(os, "unshare"), reason="mounting a small file system takes root and Python 3.12"
)

PROGRAM = """
    import asyncio, os, subprocess, sys
    from pathlib import Path
    from tempfile import mkdtemp
    import structlog
    from aeron_async import connect, DriverConfig, InsufficientStorageError, MediaDriver, RegistrationError

    def mount_small(size):
        "A file system of `size` that is gone with this process."
        os.unshare(os.CLONE_NEWNS)
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={{size}}", "tmpfs", "/mnt"], check=True)
        return Path("/mnt/driver")

    async def main(aeron_dir):
        {body}

    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    asyncio.run(main(mount_small(sys.argv[1])))
"""

NO_ROOM_FOR_A_DRIVER = """
        try:
            await MediaDriver(aeron_dir=aeron_dir).start()
        except InsufficientStorageError as error:
            print(error)
        print(os.listdir(aeron_dir.parent))
"""

ROOM_FOR_A_FEW_STREAMS = """
        async with connect(aeron_dir, driver="embedded") as client:
            publications = []
            try:
                while True:
                    publications.append(await client.add_publication("aeron:ipc", 1000 + len(publications)))
            except InsufficientStorageError:
                print(len(publications))
            subscription = await client.add_subscription("aeron:ipc", 1000)
            await publications[0].wait_connected()
            await publications[0].publish(b"still here")
            print(await anext(subscription.payloads()))
"""


def test_a_driver_that_has_no_room_says_where_and_what_to_do() -> None:
    *error, rest = run_program(PROGRAM.format(body=NO_ROOM_FOR_A_DRIVER.strip()), "4m").splitlines()
    for part in ("/mnt/driver", "No space left", "aeron_dir=", "counters_values_buffer_length"):
        assert part in "".join(error)
    assert rest == "[]"


def test_a_containers_shared_memory_carries_a_few_streams_and_then_says_no() -> None:
    count, payload = run_program(PROGRAM.format(body=ROOM_FOR_A_FEW_STREAMS.strip()), "64m").splitlines()
    assert int(count) >= 3
    assert payload == "b'still here'"

"""Rejecting an image: the command, its answers, and what it raises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from aeron_async import Client
from aeron_async.errors import (
    ClientClosedError,
    DriverShutdownError,
    RegistrationError,
    SubscriptionClosedError,
)
from aeron_async.protocol import commands, responses
from aeron_async.protocol.error_codes import ErrorCode
from aeron_async.subscription import Image
from tests.fakes import FakeDriver
from tests.unit.rig import Bench

pytestmark = pytest.mark.anyio


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[FakeDriver]:
    """A driver whose buffer takes the longest reason."""
    driver = FakeDriver(tmp_path, to_driver_capacity=16 << 10)
    yield driver
    driver.close()


@pytest.fixture
def image(bench: Bench) -> Image:
    stream = bench.add_image(bench.add_subscription(), correlation_id=77)
    stream.log.append(b"one")
    stream.image.poll_batch()
    return stream.image


async def test_the_driver_is_told_which_image_where_and_why(bench: Bench, image: Image) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(image.reject, "grüße")
        command = await bench.answer_removal(commands.RejectImage)
    assert (command.image_correlation_id, command.position, command.reason) == (77, 64, "grüße")
    assert not image.is_closed


@pytest.mark.parametrize("reason", ["", "x" * 1023])
async def test_a_reason_may_be_empty_or_long(bench: Bench, image: Image, reason: str) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(image.reject, reason)
        command = await bench.answer_removal(commands.RejectImage)
    assert command.reason == reason


@pytest.mark.parametrize("reason", ["x" * 1024, "ü" * 512])
async def test_a_reason_that_is_too_long_is_refused_before_anything_is_sent(
    bench: Bench, image: Image, reason: str
) -> None:
    with pytest.raises(ValueError, match="1024 bytes is longer than 1023"):
        await image.reject(reason)
    assert bench.driver.receive() == []


async def test_what_the_driver_refuses_is_raised(bench: Bench, image: Image) -> None:
    async def reject() -> None:
        with pytest.raises(RegistrationError, match="no such image"):
            await image.reject("why")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reject)
        command = await bench.next_command(commands.RejectImage)
        bench.answer(responses.ErrorResponse(command.correlation_id, ErrorCode.GENERIC_ERROR, "no such image"))


async def test_the_end_of_the_client_ends_the_waiting(bench: Bench, client: Client, image: Image) -> None:
    async def reject() -> None:
        with pytest.raises(ClientClosedError):
            await image.reject("why")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reject)
        await bench.next_command(commands.RejectImage)
        await client.aclose()


async def test_an_image_that_has_gone_cannot_be_rejected(bench: Bench, image: Image) -> None:
    bench.remove_image(image)
    with pytest.raises(SubscriptionClosedError):
        await image.reject("why")
    assert bench.driver.receive() == []


async def test_an_image_of_a_client_that_lost_its_driver_says_why_it_cannot_be_rejected(
    bench: Bench, image: Image
) -> None:
    bench.conductor.driver_exited()
    with pytest.raises(DriverShutdownError):
        await image.reject("why")


async def test_a_rejection_that_is_cancelled_leaves_the_client_as_it_is(bench: Bench, image: Image) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(image.reject, "why")
        command = await bench.next_command(commands.RejectImage)
        tasks.cancel_scope.cancel()
    bench.answer(responses.OperationSucceeded(command.correlation_id))
    assert bench.driver.receive() == []
    assert not image.is_closed

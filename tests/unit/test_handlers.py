"""Users' handlers: in order, plain or async, and none of them can harm the client."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import structlog.testing

from aeron_async._handlers import HandlerRunner
from tests.unit.rig import until


@pytest.fixture
def errors() -> list[Exception]:
    return []


@pytest.fixture
def runner(errors: list[Exception]) -> HandlerRunner:
    return HandlerRunner(errors.append)


def test_a_plain_handler_runs_in_the_callers_turn(runner: HandlerRunner) -> None:
    heard: list[tuple[int, str]] = []
    runner.call(lambda number, text: heard.append((number, text)), 1, "one", order=0)
    assert heard == [(1, "one")]


def test_a_plain_handler_that_raises_is_logged_and_reported(runner: HandlerRunner, errors: list[Exception]) -> None:
    def handler() -> None:
        raise ZeroDivisionError("the handler's own")

    with structlog.testing.capture_logs() as logs:
        runner.call(handler, order=0)
    assert [str(error) for error in errors] == ["the handler's own"]
    assert [entry["event"] for entry in logs] == ["handler_failed"]


def test_without_on_error_a_failure_is_logged_all_the_same() -> None:
    with structlog.testing.capture_logs() as logs:
        HandlerRunner(None).failed(ValueError("lost"))
    assert [(entry["event"], str(entry["exc_info"])) for entry in logs] == [("handler_failed", "lost")]


def test_an_on_error_that_raises_is_logged_too() -> None:
    def on_error(error: Exception) -> None:
        raise ZeroDivisionError

    with structlog.testing.capture_logs() as logs:
        HandlerRunner(on_error).failed(ValueError("first"))
    assert [entry["event"] for entry in logs] == ["handler_failed", "on_error_failed"]


@pytest.mark.parametrize("exception", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_is_not_held_back(runner: HandlerRunner, exception: type[BaseException]) -> None:
    def handler() -> None:
        raise exception

    with pytest.raises(exception):
        runner.call(handler, order=0)


@pytest.mark.anyio
async def test_an_async_handler_runs_as_a_task(runner: HandlerRunner) -> None:
    heard: list[int] = []

    async def handler(number: int) -> None:
        await anyio.lowlevel.checkpoint()
        heard.append(number)

    runner.call(handler, 1, order=0)
    assert heard == []
    await until(lambda: heard == [1])


@pytest.mark.anyio
async def test_async_handlers_of_one_order_run_one_after_the_other(runner: HandlerRunner) -> None:
    heard: list[str] = []
    go_on = anyio.Event()

    async def slow() -> None:
        heard.append("slow begins")
        await go_on.wait()
        heard.append("slow ends")

    async def quick(number: int) -> None:
        heard.append(f"quick {number}")

    runner.call(slow, order=7)
    runner.call(quick, 1, order=7)
    runner.call(quick, 2, order=7)
    await until(lambda: heard == ["slow begins"])
    go_on.set()
    await until(lambda: heard[1:] == ["slow ends", "quick 1", "quick 2"])


@pytest.mark.anyio
async def test_an_async_handler_does_not_hold_up_those_of_another_order(runner: HandlerRunner) -> None:
    heard: list[int] = []
    go_on = anyio.Event()

    async def quick(order: int) -> None:
        heard.append(order)

    runner.call(go_on.wait, order=1)
    runner.call(quick, 2, order=2)
    await until(lambda: heard == [2])
    go_on.set()


@pytest.mark.anyio
async def test_an_async_handler_that_raises_is_reported_and_the_next_one_runs(
    runner: HandlerRunner, errors: list[Exception]
) -> None:
    heard: list[int] = []

    async def bad() -> None:
        raise ZeroDivisionError("the handler's own")

    async def good() -> None:
        heard.append(1)

    with structlog.testing.capture_logs() as logs:
        runner.call(bad, order=0)
        runner.call(good, order=0)
        await until(lambda: heard == [1])
    assert [str(error) for error in errors] == ["the handler's own"]
    assert [entry["event"] for entry in logs] == ["handler_failed"]


@pytest.mark.anyio
async def test_an_order_that_has_run_dry_starts_again(runner: HandlerRunner) -> None:
    heard: list[int] = []

    async def handler(number: int) -> None:
        heard.append(number)

    for number in range(3):
        runner.call(handler, number, order=0)
        await until(lambda count=number + 1: len(heard) == count)
        await anyio.sleep(0.002)
    assert heard == [0, 1, 2]


@pytest.mark.anyio
async def test_a_handler_may_make_another_one_run(runner: HandlerRunner) -> None:
    heard: list[str] = []

    async def second() -> None:
        heard.append("second")

    async def first() -> None:
        runner.call(second, order=0)
        heard.append("first")

    runner.call(first, order=0)
    await until(lambda: heard == ["first", "second"])


@pytest.mark.anyio
async def test_at_the_end_of_the_loop_plain_handlers_still_run_and_async_ones_do_not(runner: HandlerRunner) -> None:
    heard: list[str] = []

    async def never() -> None:
        heard.append("async")

    runner.stop()
    runner.call(never, order=0)
    runner.call(heard.append, "plain", order=0)
    await anyio.sleep(0.01)
    assert heard == ["plain"]


@pytest.mark.anyio
async def test_an_async_on_error_is_awaited() -> None:
    heard: list[str] = []

    async def on_error(error: Exception) -> None:
        await anyio.lowlevel.checkpoint()
        heard.append(str(error))

    runner = HandlerRunner(on_error)
    with structlog.testing.capture_logs():
        runner.failed(ValueError("first"))
        runner.failed(ValueError("second"))
        await until(lambda: len(heard) == 2)
    assert heard == ["first", "second"]


@pytest.mark.anyio
async def test_an_async_on_error_that_raises_is_logged_and_not_told_of_itself() -> None:
    calls = 0

    async def on_error(error: Exception) -> None:
        nonlocal calls
        calls += 1
        raise ZeroDivisionError

    with structlog.testing.capture_logs() as logs:
        HandlerRunner(on_error).failed(ValueError("first"))
        await until(lambda: len(logs) == 2)
    assert [entry["event"] for entry in logs] == ["handler_failed", "on_error_failed"]
    assert calls == 1


def test_a_plain_handler_that_lets_a_cancellation_out_harms_nobody(
    runner: HandlerRunner, errors: list[Exception]
) -> None:
    """Such as the `result()` of a future that was cancelled."""

    def handler() -> None:
        raise asyncio.CancelledError

    with structlog.testing.capture_logs():
        runner.call(handler, order=0)
    assert [type(error.__cause__) for error in errors] == [asyncio.CancelledError]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_async_handler_that_lets_a_cancellation_out_does_not_keep_the_next_from_running(
    runner: HandlerRunner, errors: list[Exception], anyio_backend: Any
) -> None:
    heard = anyio.Event()

    async def cancelled() -> None:
        await anyio.lowlevel.checkpoint()
        raise asyncio.CancelledError

    async def next_one() -> None:
        heard.set()

    with structlog.testing.capture_logs():
        runner.call(cancelled, order=1)
        runner.call(next_one, order=1)
        with anyio.fail_after(30):
            await heard.wait()
    assert [type(error.__cause__) for error in errors] == [asyncio.CancelledError]

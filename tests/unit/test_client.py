"""The client: connecting, commands that are waited for, and the end."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import structlog.testing

import aeron_async
from aeron_async._control import CLIENT_TIMEOUT
from aeron_async.conductor import ImageHandlers
from aeron_async.errors import (
    AddTimeoutError,
    ClientClosedError,
    CloseReason,
    CncVersionError,
    DriverNotRunningError,
    DriverShutdownError,
    RegistrationError,
)
from aeron_async.protocol import commands, responses
from aeron_async.protocol.counter_types import CounterType
from aeron_async.protocol.error_codes import ErrorCode
from aeron_async.subscription import Image
from tests.conftest import BACKENDS
from tests.fakes import FakeDriver
from tests.unit.rig import IPC, STREAM_ID, Bench, until

Client = aeron_async.Client


def connect(driver: FakeDriver, **options: Any) -> aeron_async.Connect:
    driver.beat()
    return aeron_async.connect(driver.aeron_dir, **{"driver_timeout": 60.0} | options)


# --- connecting -------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_client_is_entered_and_left(driver: FakeDriver) -> None:
    async with connect(driver) as client:
        assert not client.is_closed
        assert client.close_reason is None
        assert client.aeron_dir == driver.aeron_dir
        assert client.driver is None
        assert "open" in repr(client)
    assert client.is_closed
    assert client.close_reason is CloseReason.USER
    assert driver.receive() == [commands.ClientClose(client.client_id)]
    assert "USER" in repr(client)


@pytest.mark.anyio
async def test_a_client_is_awaited_and_closed(driver: FakeDriver) -> None:
    client = await connect(driver)
    assert not client.is_closed
    await client.aclose()
    await client.aclose()
    assert driver.receive() == [commands.ClientClose(client.client_id)]


@pytest.mark.anyio
async def test_an_awaited_client_may_be_entered(driver: FakeDriver) -> None:
    async with await connect(driver) as client:
        assert not client.is_closed
    assert client.is_closed


@pytest.mark.anyio
async def test_clients_have_ids_of_their_own(driver: FakeDriver) -> None:
    async with connect(driver) as first, connect(driver) as second:
        assert first.client_id != second.client_id


@pytest.mark.anyio
async def test_a_client_may_be_entered_in_one_task_and_left_in_another(driver: FakeDriver) -> None:
    connecting = connect(driver)
    entered: list[Client] = []

    async def enter() -> None:
        entered.append(await connecting.__aenter__())

    async def leave() -> None:
        await connecting.__aexit__(None, None, None)

    for step in (enter, leave):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(step)
    assert entered[0].close_reason is CloseReason.USER


@pytest.mark.anyio
async def test_an_error_of_the_user_arrives_as_it_is(driver: FakeDriver) -> None:
    with pytest.raises(ZeroDivisionError):
        async with connect(driver):
            raise ZeroDivisionError


@pytest.mark.anyio
async def test_an_iteration_gives_a_fresh_client_after_a_loss(driver: FakeDriver) -> None:
    clients: list[Client] = []
    async for client in connect(driver):
        assert not client.is_closed
        clients.append(client)
        async with client:
            if len(clients) == 3:
                break
            client._session.conductor.driver_exited()
    assert [client.close_reason for client in clients] == [
        CloseReason.DRIVER_SHUTDOWN,
        CloseReason.DRIVER_SHUTDOWN,
        CloseReason.USER,
    ]
    assert len({client.client_id for client in clients}) == 3


@pytest.mark.anyio
async def test_a_client_of_an_iteration_is_closed_when_the_next_is_asked_for(driver: FakeDriver) -> None:
    clients = []
    async for client in connect(driver):
        clients.append(client)
        if len(clients) == 2:
            break
    assert [client.is_closed for client in clients] == [True, False]
    await clients[1].aclose()


@pytest.mark.anyio
async def test_a_driver_that_comes_while_it_is_waited_for_is_found(tmp_path: Path) -> None:
    aeron_dir = tmp_path / "later"
    clients: list[Client] = []

    async def open_and_close() -> None:
        async with aeron_async.connect(aeron_dir, driver_timeout=60.0) as client:
            clients.append(client)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_and_close)
        await anyio.sleep(0.05)
        aeron_dir.mkdir()
        (aeron_dir / "cnc.dat").write_bytes(b"")
        await anyio.sleep(0.05)
        driver = FakeDriver(aeron_dir)
        driver.beat()
    assert clients[0].close_reason is CloseReason.USER
    driver.close()


@pytest.mark.anyio
async def test_a_directory_without_a_driver_says_so(tmp_path: Path) -> None:
    with pytest.raises(DriverNotRunningError, match="nothing-here"):
        await aeron_async.connect(tmp_path / "nothing-here", driver_timeout=0.05)


@pytest.mark.anyio
async def test_a_directory_that_a_driver_left_behind_is_stale(driver: FakeDriver) -> None:
    driver.beat()
    driver.heartbeat -= 3_600_000
    with pytest.raises(DriverNotRunningError, match=r"stale.*3600 s ago"):
        await aeron_async.connect(driver.aeron_dir, driver_timeout=0.05)


@pytest.mark.anyio
async def test_a_directory_of_a_driver_that_has_shut_down_is_not_served(driver: FakeDriver) -> None:
    driver.heartbeat = -1
    with pytest.raises(DriverNotRunningError):
        await aeron_async.connect(driver.aeron_dir, driver_timeout=0.05)


@pytest.mark.anyio
async def test_a_layout_of_another_version_says_both(driver: FakeDriver) -> None:
    driver.beat()
    driver.put_version(1 << 16)
    with pytest.raises(CncVersionError, match=r"1\.0\.0.*0\.2"):
        await aeron_async.connect(driver.aeron_dir)


@pytest.mark.parametrize("name", ["driver_timeout", "keepalive_interval", "loop_stall_limit"])
@pytest.mark.parametrize("value", [0, -1.0, float("nan")])
def test_a_time_that_cannot_be_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        aeron_async.connect("/nowhere", **{name: value})  # type: ignore[arg-type]


# --- adding -----------------------------------------------------------------------------------------------------------

ADD: dict[str, Callable[..., Awaitable[Any]]] = {
    "publication": lambda client, **options: client.add_publication(IPC, STREAM_ID, **options),
    "exclusive": lambda client, **options: client.add_exclusive_publication(IPC, STREAM_ID, **options),
    "subscription": lambda client, **options: client.add_subscription(IPC, STREAM_ID, **options),
    "counter": lambda client, **options: client.add_counter(1001, b"key", "label", **options),
}
COMMANDS: dict[str, type[commands.Command]] = {
    "publication": commands.AddPublication,
    "exclusive": commands.AddExclusivePublication,
    "subscription": commands.AddSubscription,
    "counter": commands.AddCounter,
}
REMOVALS: dict[str, type[commands.Command]] = {
    "publication": commands.RemovePublication,
    "exclusive": commands.RemovePublication,
    "subscription": commands.RemoveSubscription,
    "counter": commands.RemoveCounter,
}
each_kind = pytest.mark.parametrize("kind", ADD)


def ready(bench: Bench, kind: str, command: commands.Command) -> responses.Response:
    """The driver's consent."""
    match kind:
        case "subscription":
            return responses.SubscriptionReady(command.correlation_id, -1)
        case "counter":
            return responses.CounterReady(command.correlation_id, bench.driver.allocate_counter(1001).id)
    return bench.publication_ready(
        command,
        bench.driver.create_log(),
        bench.driver.allocate_counter(CounterType.PUBLISHER_LIMIT),
        kind=responses.ExclusivePublicationReady if kind == "exclusive" else responses.PublicationReady,
    )


@pytest.mark.anyio
@each_kind
async def test_adding_returns_when_the_driver_has_answered(client: Client, bench: Bench, kind: str) -> None:
    added: list[Any] = []

    async def add() -> None:
        added.append(await ADD[kind](client))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(add)
        command = await bench.next_command(COMMANDS[kind])
        await anyio.sleep(0.01)
        assert added == []
        bench.driver.send(ready(bench, kind, command))
    assert added[0].registration_id == command.correlation_id
    assert not added[0].is_closed


@pytest.mark.anyio
@each_kind
async def test_a_refusal_is_raised_and_the_client_lives_on(client: Client, bench: Bench, kind: str) -> None:
    async def add() -> None:
        with pytest.raises(RegistrationError, match="not that one"):
            await ADD[kind](client)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(add)
        command = await bench.next_command(COMMANDS[kind])
        bench.driver.send(responses.ErrorResponse(command.correlation_id, ErrorCode.INVALID_CHANNEL, "not that one"))
    assert not client.is_closed


@pytest.mark.anyio
@each_kind
async def test_adding_that_runs_out_of_time_is_taken_back_when_the_answer_comes(
    client: Client, bench: Bench, kind: str
) -> None:
    with pytest.raises(AddTimeoutError, match=r"0\.01 s") as raised:
        await ADD[kind](client, timeout=0.01)
    assert isinstance(raised.value, TimeoutError)
    command = bench.command(COMMANDS[kind])
    bench.driver.send(ready(bench, kind, command))
    with anyio.fail_after(30):
        removal = await bench.next_command(REMOVALS[kind])
    assert removal.registration_id == command.correlation_id  # type: ignore[attr-defined]


@pytest.mark.anyio
@each_kind
async def test_adding_that_is_cancelled_is_taken_back_when_the_answer_comes(
    client: Client, bench: Bench, kind: str
) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ADD[kind], client)
        command = await bench.next_command(COMMANDS[kind])
        tasks.cancel_scope.cancel()
    bench.driver.send(ready(bench, kind, command))
    with anyio.fail_after(30):
        removal = await bench.next_command(REMOVALS[kind])
    assert removal.registration_id == command.correlation_id  # type: ignore[attr-defined]


@pytest.mark.anyio
@each_kind
@pytest.mark.parametrize("cancel_first", [True, False])
async def test_when_answer_and_cancellation_race_the_caller_has_it_or_the_driver_hears_of_its_removal(
    client: Client, bench: Bench, kind: str, cancel_first: bool
) -> None:
    added: list[Any] = []

    async def add() -> None:
        added.append(await ADD[kind](client))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(add)
        command = await bench.next_command(COMMANDS[kind])
        if cancel_first:
            tasks.cancel_scope.cancel()
        bench.answer(ready(bench, kind, command))
        tasks.cancel_scope.cancel()
    removals = [received.registration_id for received in bench.driver.receive()]  # type: ignore[attr-defined]
    assert removals == ([] if added else [command.correlation_id])


@pytest.mark.anyio
async def test_a_command_that_waits_for_room_goes_as_soon_as_there_is_some(client: Client, bench: Bench) -> None:
    keepalive = commands.ClientKeepalive(999)
    while client._session.cnc.send(keepalive.TYPE_ID, keepalive.encode()):
        pass
    added: list[Any] = []

    async def add() -> None:
        added.append(await client.add_counter(1001))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(add)
        await anyio.sleep(0.01)
        bench.driver.receive()
        command = await bench.next_command(commands.AddCounter)
        bench.driver.send(ready(bench, "counter", command))
    assert len(added) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("value", [1 << 31, -(1 << 31) - 1])
async def test_an_id_that_does_not_fit_32_bits_is_refused_by_name(client: Client, bench: Bench, value: int) -> None:
    for add in (client.add_publication, client.add_exclusive_publication, client.add_subscription):
        with pytest.raises(ValueError, match=f"stream_id={value}"):
            await add(IPC, value)
    with pytest.raises(ValueError, match=f"type_id={value}"):
        await client.add_counter(value)
    assert bench.driver.receive() == []


@pytest.mark.anyio
async def test_a_timeout_left_out_is_the_clients_driver_timeout(client: Client) -> None:
    session = client._session
    assert session.seconds(CLIENT_TIMEOUT) == 60.0
    assert session.seconds(None) is None
    assert session.seconds(0) == 0
    assert session.seconds(2.5) == 2.5


@pytest.mark.anyio
async def test_closing_a_resource_goes_on_where_the_driver_does_not_answer(client: Client, bench: Bench) -> None:
    counter, _ = bench.add_counter()
    session = client._session
    session.settings = dataclasses.replace(session.settings, driver_timeout=0.01)
    with structlog.testing.capture_logs() as logs:
        await counter.aclose()
    assert [entry["event"] for entry in logs] == ["close_unanswered"]
    assert counter.is_closed


# --- handlers ---------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_an_async_image_handler_may_add_resources(client: Client, bench: Bench) -> None:
    """The usual response server: it answers where the image came from."""
    added: list[Any] = []

    async def on_available(image: Image) -> None:
        added.append(await client.add_publication(IPC, image.session_id))

    registration = bench.conductor.add_subscription(IPC, STREAM_ID, ImageHandlers(on_available, None))
    bench.answer(responses.SubscriptionReady(bench.command(commands.AddSubscription).correlation_id, -1))
    log = bench.add_image(registration.result()).log
    command = await bench.next_command(commands.AddPublication)
    assert command.stream_id == log.session_id
    bench.driver.send(ready(bench, "publication", command))
    await until(lambda: len(added) == 1)


@pytest.mark.anyio
async def test_a_handler_that_raises_is_reported_and_the_client_lives(driver: FakeDriver) -> None:
    errors: list[Exception] = []

    def bad(image: Image) -> None:
        raise ZeroDivisionError("plain")

    async def worse(image: Image) -> None:
        raise ZeroDivisionError("async")

    async with connect(driver, on_error=errors.append) as client:
        bench = Bench(driver, client._session.conductor)
        subscription = bench.add_subscription(on_available=bad, on_unavailable=worse)
        with structlog.testing.capture_logs() as logs:
            bench.remove_image(bench.add_image(subscription).image)
            await until(lambda: len(errors) == 2)
        assert [str(error) for error in errors] == ["plain", "async"]
        assert [entry["event"] for entry in logs] == ["handler_failed"] * 2
        assert not client.is_closed


# --- the end ----------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_on_close_hears_the_reason_once(driver: FakeDriver) -> None:
    heard: list[CloseReason] = []

    async def on_close_async(reason: CloseReason) -> None:
        await anyio.lowlevel.checkpoint()
        heard.append(reason)

    async with connect(driver, on_close=heard.append) as client:
        client._session.conductor.driver_exited()
        assert heard == [CloseReason.DRIVER_SHUTDOWN]
    async with connect(driver, on_close=on_close_async):
        pass
    await until(lambda: len(heard) == 2)
    assert heard == [CloseReason.DRIVER_SHUTDOWN, CloseReason.USER]


@pytest.mark.anyio
async def test_wait_closed_returns_the_reason(client: Client, bench: Bench) -> None:
    reasons: list[CloseReason] = []

    async def wait() -> None:
        reasons.append(await client.wait_closed())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        tasks.start_soon(wait)
        await anyio.sleep(0.01)
        bench.driver.send(responses.ClientTimeout(client.client_id))
    assert reasons == [CloseReason.CLIENT_TIMEOUT] * 2
    assert await client.wait_closed() is CloseReason.CLIENT_TIMEOUT


@pytest.mark.anyio
async def test_a_driver_that_shuts_down_is_noticed_without_anybody_asking(driver: FakeDriver) -> None:
    async with connect(driver, keepalive_interval=0.01) as client:
        driver.heartbeat = -1
        assert await client.wait_closed() is CloseReason.DRIVER_SHUTDOWN


@pytest.mark.anyio
async def test_a_pending_call_fails_with_the_reason(client: Client, bench: Bench) -> None:
    async def add() -> None:
        with pytest.raises(DriverShutdownError):
            await client.add_counter(1001, timeout=None)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(add)
        await bench.next_command(commands.AddCounter)
        bench.conductor.driver_exited()
    await add()


@pytest.mark.anyio
async def test_a_client_that_its_user_has_closed_refuses_to_add(client: Client, bench: Bench) -> None:
    await client.aclose()
    with pytest.raises(ClientClosedError) as raised:
        await client.add_publication(IPC, STREAM_ID)
    assert raised.value.reason is CloseReason.USER


@pytest.mark.anyio
async def test_closing_that_is_cancelled_is_done_all_the_same(driver: FakeDriver) -> None:
    client = await connect(driver)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await client.aclose()
    assert client.close_reason is CloseReason.USER
    assert client._session._task.done


@pytest.mark.anyio
async def test_several_tasks_may_close_at_once(driver: FakeDriver) -> None:
    client = await connect(driver)
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(client.aclose)
    assert driver.receive() == [commands.ClientClose(client.client_id)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_client_whose_loop_ends_is_closed(driver: FakeDriver, backend: str) -> None:
    heard: list[CloseReason] = []

    async def leave_it_open() -> tuple[Client, Any]:
        client = await connect(driver, on_close=heard.append)
        return client, Bench(driver, client._session.conductor).add_publication().publication

    name, options = BACKENDS[backend]
    client, publication = anyio.run(leave_it_open, backend=name, backend_options=options)
    assert client.close_reason is CloseReason.USER
    assert publication.is_closed
    assert heard == [CloseReason.USER]
    assert driver.receive() == [commands.ClientClose(client.client_id)]

"""Whether both ends live: the client's heartbeat, the driver's, and the event loop's."""

from __future__ import annotations

import pytest

from aeron_async.errors import CloseReason, CorruptFileError
from aeron_async.protocol import commands, responses
from tests.fakes import FakeDriver
from tests.unit.rig import Rig

# --- this client's heartbeat ------------------------------------------------------------------------------------------


def test_without_a_heartbeat_counter_there_is_nothing_to_beat_and_the_client_lives(rig: Rig) -> None:
    for _ in range(100):
        rig.pass_time(rig.settings.keepalive_interval)
    assert not rig.conductor.is_closed
    assert rig.driver.receive() == []


def test_the_heartbeat_counter_is_set_to_the_time_once_per_keepalive_interval(rig: Rig) -> None:
    counter = rig.allocate_heartbeat_counter()
    rig.work()
    assert counter.value == rig.epoch_ms
    first = rig.epoch_ms
    rig.pass_time(0.9 * rig.settings.keepalive_interval)
    assert counter.value == first
    rig.pass_time(0.1 * rig.settings.keepalive_interval)
    assert counter.value == rig.epoch_ms > first


def test_a_heartbeat_counter_that_comes_later_is_found(rig: Rig) -> None:
    rig.pass_time(rig.settings.keepalive_interval)
    counter = rig.allocate_heartbeat_counter()
    rig.pass_time(rig.settings.keepalive_interval)
    assert counter.value == rig.epoch_ms


def test_the_heartbeat_counter_gets_the_clients_name_once(driver: FakeDriver) -> None:
    rig = Rig(driver, client_name="orders é")
    counter = rig.allocate_heartbeat_counter()
    given = counter.label
    for _ in range(3):
        rig.pass_time(rig.settings.keepalive_interval)
    assert counter.label.startswith(given)
    assert counter.label.count("name=orders é") == 1


def test_the_heartbeat_counter_of_another_client_is_left_alone(rig: Rig) -> None:
    other = Rig(rig.driver, client_name="other").allocate_heartbeat_counter()
    label = other.label
    rig.pass_time(rig.settings.keepalive_interval)
    assert other.value == 0
    assert other.label == label


def test_a_heartbeat_counter_that_is_taken_away_is_the_drivers_verdict(rig: Rig) -> None:
    counter = rig.allocate_heartbeat_counter()
    rig.pass_time(rig.settings.keepalive_interval)
    counter.free()
    rig.pass_time(rig.settings.keepalive_interval)
    assert rig.conductor.close_reason is CloseReason.CLIENT_TIMEOUT


def test_a_heartbeat_counter_that_somebody_else_got_is_not_beaten(rig: Rig) -> None:
    counter = rig.allocate_heartbeat_counter()
    rig.pass_time(rig.settings.keepalive_interval)
    counter.free()
    counter.allocate(1001, b"", "somebody else's", 5, 5, 0, value=77)
    rig.pass_time(rig.settings.keepalive_interval)
    assert counter.value == 77
    assert counter.label == "somebody else's"
    assert rig.conductor.close_reason is CloseReason.CLIENT_TIMEOUT


def test_the_next_turn_is_due_at_the_next_keepalive(rig: Rig) -> None:
    rig.work()
    assert rig.conductor.idle_time(rig.now) == pytest.approx(rig.settings.keepalive_interval)
    assert rig.conductor.idle_time(rig.now + 0.2) == pytest.approx(rig.settings.keepalive_interval - 0.2)
    assert rig.conductor.idle_time(rig.now + 100) == 0


# --- the driver's heartbeat -------------------------------------------------------------------------------------------


def test_a_driver_that_beats_is_alive_for_ever(rig: Rig) -> None:
    for _ in range(1000):
        rig.pass_time(rig.settings.keepalive_interval)
    assert not rig.conductor.is_closed


def test_a_driver_that_does_not_beat_for_the_driver_timeout_closes_the_client(driver: FakeDriver) -> None:
    rig = Rig(driver, driver_timeout=5.0, keepalive_interval=0.5)
    for _ in range(10):
        rig.pass_time(0.5, driver_lives=False)
    assert not rig.conductor.is_closed
    rig.pass_time(0.5, driver_lives=False)
    assert rig.conductor.close_reason is CloseReason.DRIVER_TIMEOUT
    assert "driver_timeout=5.0" in rig.conductor.close_detail


def test_one_beat_starts_the_driver_timeout_anew(driver: FakeDriver) -> None:
    rig = Rig(driver, driver_timeout=5.0, keepalive_interval=0.5)
    for _ in range(9):
        rig.pass_time(0.5, driver_lives=False)
    rig.pass_time(0.5, driver_lives=True)
    for _ in range(9):
        rig.pass_time(0.5, driver_lives=False)
    assert not rig.conductor.is_closed


@pytest.mark.parametrize("step_ms", [3_600_000, -3_600_000], ids=["forwards", "backwards"])
def test_a_step_of_the_systems_clock_is_nobodys_death(rig: Rig, step_ms: int) -> None:
    counter = rig.allocate_heartbeat_counter()
    rig.pass_time(rig.settings.keepalive_interval)
    rig.epoch_ms += step_ms
    rig.driver.heartbeat += step_ms
    for _ in range(100):
        rig.pass_time(rig.settings.keepalive_interval)
    assert not rig.conductor.is_closed
    assert counter.value == rig.epoch_ms


@pytest.mark.parametrize("step_ms", [3_600_000, -3_600_000], ids=["forwards", "backwards"])
def test_a_clock_that_only_the_client_sees_step_is_nobodys_death(rig: Rig, step_ms: int) -> None:
    rig.epoch_ms += step_ms
    for _ in range(100):
        rig.pass_time(rig.settings.keepalive_interval)
    assert not rig.conductor.is_closed


def test_a_driver_that_says_it_has_shut_down_closes_the_client(rig: Rig) -> None:
    rig.pass_time(rig.settings.keepalive_interval)
    rig.driver.heartbeat = -1
    rig.pass_time(rig.settings.keepalive_interval, driver_lives=False)
    assert rig.conductor.close_reason is CloseReason.DRIVER_SHUTDOWN


def test_a_driver_whose_process_has_ended_closes_the_client_at_once(rig: Rig) -> None:
    rig.conductor.driver_exited()
    assert rig.conductor.close_reason is CloseReason.DRIVER_SHUTDOWN


def test_what_the_driver_said_before_its_process_ended_counts(rig: Rig) -> None:
    rig.driver.send(responses.ClientTimeout(rig.conductor.client_id))
    rig.conductor.driver_exited()
    assert rig.conductor.close_reason is CloseReason.CLIENT_TIMEOUT


# --- the driver's verdict, and the loop's gaps -----------------------------------------------------------------------


def test_the_driver_gives_this_client_up(rig: Rig) -> None:
    rig.answer(responses.ClientTimeout(rig.conductor.client_id))
    assert rig.conductor.close_reason is CloseReason.CLIENT_TIMEOUT


def test_the_driver_gives_another_client_up(rig: Rig) -> None:
    rig.answer(responses.ClientTimeout(rig.conductor.client_id + 1))
    assert not rig.conductor.is_closed


def test_a_gap_as_long_as_the_stall_limit_is_survived(driver: FakeDriver) -> None:
    rig = Rig(driver, loop_stall_limit=60.0)
    rig.pass_time(60.0)
    assert not rig.conductor.is_closed


def test_a_gap_longer_than_the_stall_limit_closes_the_client(driver: FakeDriver) -> None:
    rig = Rig(driver, loop_stall_limit=60.0)
    rig.pass_time(60.1)
    assert rig.conductor.close_reason is CloseReason.SERVICE_TIMEOUT
    assert "loop_stall_limit=60.0" in rig.conductor.close_detail


def test_after_a_gap_the_drivers_verdict_wins(driver: FakeDriver) -> None:
    rig = Rig(driver, loop_stall_limit=60.0)
    driver.send(responses.ClientTimeout(rig.conductor.client_id))
    rig.pass_time(100.0)
    assert rig.conductor.close_reason is CloseReason.CLIENT_TIMEOUT


def test_a_gap_longer_than_the_driver_timeout_does_not_make_a_live_driver_dead(driver: FakeDriver) -> None:
    rig = Rig(driver, loop_stall_limit=60.0, driver_timeout=5.0)
    rig.pass_time(30.0)
    assert not rig.conductor.is_closed


# --- the broadcast ----------------------------------------------------------------------------------------------------


def test_a_client_that_falls_behind_the_broadcast_is_closed(rig: Rig) -> None:
    for _ in range(20):
        rig.driver.transmit(0x0FFF, bytes(500))
    rig.work()
    assert rig.conductor.close_reason is CloseReason.LAPPED


def test_a_broadcast_that_goes_round_many_times_is_no_problem_for_who_listens(rig: Rig) -> None:
    for _ in range(100):
        rig.driver.transmit(0x0FFF, bytes(500))
        rig.work()
    assert not rig.conductor.is_closed


@pytest.mark.parametrize("length", [0, 7, -1, 1 << 20, 2**31 - 1])
def test_a_record_whose_length_cannot_be_true_is_reported_once_and_closes_the_client(rig: Rig, length: int) -> None:
    registration = rig.conductor.add_counter(1001, b"", "")
    rig.driver.corrupt_next_length(length)
    rig.work()
    rig.work()
    assert [type(error) for error in rig.surroundings.errors] == [CorruptFileError]
    assert rig.conductor.close_reason is CloseReason.LAPPED
    assert registration.is_done


def test_responses_from_before_the_client_was_there_are_not_read(driver: FakeDriver) -> None:
    for _ in range(3):
        driver.transmit(responses.SubscriptionReady.TYPE_ID, b"malformed")
    driver.transmit(0x0FFF, b"the latest record is read again, as Aeron does")
    rig = Rig(driver)
    rig.work()
    assert rig.surroundings.errors == []


def test_a_client_that_does_nothing_says_nothing_to_the_driver(rig: Rig) -> None:
    for _ in range(10):
        rig.pass_time(rig.settings.keepalive_interval)
    assert [type(command) for command in rig.driver.receive()] == []
    assert rig.surroundings.commands_sent == 0
    rig.conductor.close(CloseReason.USER, "done")
    assert rig.driver.receive() == [commands.ClientClose(rig.conductor.client_id)]

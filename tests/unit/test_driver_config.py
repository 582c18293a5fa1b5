"""The settings of a driver, and which driver the arguments of `connect` mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aeron_async.driver import DriverConfig, MediaDriver, choose_driver
from aeron_async.driver.files import default_aeron_dir
from aeron_async.driver.sources import _Embedded, _External, _Given, _Shared


@pytest.fixture(autouse=True)
def no_aeron_dir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AERON_DIR", raising=False)


def test_a_field_that_is_not_set_leaves_the_variable_to_the_profile() -> None:
    environment = DriverConfig(profile="balanced").build_environment({})
    assert environment["AERON_THREADING_MODE"] == "SHARED_NETWORK"
    assert environment["AERON_TERM_BUFFER_LENGTH"] == "4m"
    assert "AERON_MTU_LENGTH" not in environment


def test_the_environment_of_the_process_wins_over_the_profile() -> None:
    environment = DriverConfig().build_environment({"AERON_TERM_BUFFER_LENGTH": "1m", "PATH": "/bin"})
    assert environment["AERON_TERM_BUFFER_LENGTH"] == "1m"
    assert environment["PATH"] == "/bin"


def test_fields_win_over_the_environment_of_the_process() -> None:
    environment = DriverConfig(term_buffer_length=65536).build_environment({"AERON_TERM_BUFFER_LENGTH": "1m"})
    assert environment["AERON_TERM_BUFFER_LENGTH"] == "65536"


def test_the_environment_that_is_named_wins_over_the_fields() -> None:
    config = DriverConfig(term_buffer_length=65536, environment={"AERON_TERM_BUFFER_LENGTH": "2m"})
    assert config.build_environment({})["AERON_TERM_BUFFER_LENGTH"] == "2m"


@pytest.mark.parametrize("name", ["AERON_DRIVER_DYNAMIC_LIBRARIES", "AERON_AGENT_ON_START_FUNCTION", "LD_PRELOAD"])
def test_what_loads_code_comes_only_from_the_environment_that_is_named(name: str) -> None:
    assert name not in DriverConfig().build_environment({name: "x"})
    assert DriverConfig(environment={name: "y"}).build_environment({name: "x"})[name] == "y"


@pytest.mark.parametrize(
    ("setting", "variable", "expected"),
    [
        ({"client_liveness_timeout": 0.25}, "AERON_CLIENT_LIVENESS_TIMEOUT", "250000000ns"),
        ({"timer_interval": 1}, "AERON_TIMER_INTERVAL", "1000000000ns"),
        ({"term_buffer_sparse_file": True}, "AERON_TERM_BUFFER_SPARSE_FILE", "true"),
        ({"term_buffer_sparse_file": False}, "AERON_TERM_BUFFER_SPARSE_FILE", "false"),
        ({"resolver_name": "here"}, "AERON_DRIVER_RESOLVER_NAME", "here"),
        ({"mtu_length": 8192}, "AERON_MTU_LENGTH", "8192"),
    ],
)
def test_values_are_written_as_the_driver_reads_them(setting: dict[str, Any], variable: str, expected: str) -> None:
    assert DriverConfig(**setting).build_environment({})[variable] == expected


@pytest.mark.parametrize(
    ("setting", "accepted"),
    [
        ({"profile": "fast"}, "balanced, low_latency, low_power"),
        ({"threading_mode": "PARALLEL"}, "DEDICATED, SHARED_NETWORK, SHARED"),
        ({"term_buffer_length": -1}, "term_buffer_length"),
        ({"timer_interval": -0.5}, "timer_interval"),
    ],
)
def test_a_value_that_cannot_be_is_an_error_that_says_what_can(setting: dict[str, Any], accepted: str) -> None:
    with pytest.raises(ValueError, match=accepted):
        DriverConfig(**setting)


def test_the_directory_may_be_named_in_either_way() -> None:
    assert DriverConfig().directory is None
    assert DriverConfig(aeron_dir="/a").directory == "/a"
    assert DriverConfig(aeron_dir="/a", environment={"AERON_DIR": "/b"}).directory == "/b"


def test_nothing_named_is_an_embedded_driver() -> None:
    assert isinstance(choose_driver(None, None, None), _Embedded)


def test_a_directory_is_that_of_a_driver_of_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AERON_DIR", "/of/environment")
    source = choose_driver("/of/argument", None, None)
    assert isinstance(source, _External)
    assert source._aeron_dir == Path("/of/argument")


def test_the_directory_in_the_environment_comes_before_an_embedded_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AERON_DIR", "/of/environment")
    source = choose_driver(None, None, None)
    assert isinstance(source, _External)
    assert source._aeron_dir == Path("/of/environment")


def test_an_empty_directory_in_the_environment_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AERON_DIR", "")
    assert isinstance(choose_driver(None, None, None), _Embedded)


@pytest.mark.parametrize("driver", ["embedded", DriverConfig()])
def test_an_explicit_embedded_driver_comes_before_the_directory_in_the_environment(
    driver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AERON_DIR", "/of/environment")
    source = choose_driver(None, driver, None)
    assert isinstance(source, _Embedded)
    assert source._config.directory is None


def test_an_embedded_driver_serves_the_directory_it_is_given() -> None:
    source = choose_driver("/a", "embedded", DriverConfig(profile="low_power"))
    assert isinstance(source, _Embedded)
    assert source._config == DriverConfig(profile="low_power", aeron_dir="/a")


@pytest.mark.parametrize("kind", ["shared", "external"])
def test_the_other_kinds_take_their_directory_from_where_there_is_one(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def directory(aeron_dir: str | None) -> Path:
        source = choose_driver(aeron_dir, kind, None)
        if isinstance(source, _External):
            return source._aeron_dir
        assert isinstance(source, _Shared)
        return source._files.aeron_dir

    assert directory(None) == default_aeron_dir()
    monkeypatch.setenv("AERON_DIR", "/of/environment")
    assert directory(None) == Path("/of/environment")
    assert directory("/of/argument") == Path("/of/argument")


@pytest.mark.anyio
async def test_an_external_driver_is_neither_started_nor_watched() -> None:
    source = choose_driver("/no/such/directory", "external", None)
    assert await source.acquire() == Path("/no/such/directory")
    assert source.driver is None
    source.on_exit(lambda: pytest.fail("nothing is watched"))()
    await source.release()


def test_a_driver_of_the_user_is_used() -> None:
    driver = MediaDriver()
    source = choose_driver(None, driver, None)
    assert isinstance(source, _Given)
    assert source.driver is driver


@pytest.mark.parametrize(
    "arguments",
    [("/a", MediaDriver(), None), (None, MediaDriver(), DriverConfig()), (None, DriverConfig(), DriverConfig())],
)
def test_arguments_that_say_two_things_are_an_error(arguments: Any) -> None:
    with pytest.raises(ValueError, match="driver"):
        choose_driver(*arguments)


def test_an_unknown_kind_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"embedded.*shared.*external"):
        choose_driver(None, "private", None)  # type: ignore[arg-type]


def test_aerons_default_directory_is_named_after_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "somebody")
    assert default_aeron_dir().name == "aeron-somebody"

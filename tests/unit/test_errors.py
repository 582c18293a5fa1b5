"""Every exception: whose kind it is, and what it says."""

from __future__ import annotations

import pickle

import pytest

import aeron_async
from aeron_async import errors
from aeron_async.errors import CloseReason, InsufficientStorageRegistrationError
from aeron_async.protocol.error_codes import ErrorCode

BASES: dict[str, tuple[type[BaseException], ...]] = {
    "AeronError": (Exception,),
    "DriverError": (errors.AeronError,),
    "DriverNotFoundError": (errors.DriverError,),
    "DriverStartError": (errors.DriverError,),
    "DirectoryInUseError": (errors.DriverError,),
    "DriverAccessError": (errors.DriverError, PermissionError),
    "InsufficientStorageError": (errors.DriverError,),
    "CncVersionError": (errors.DriverError,),
    "DriverNotRunningError": (errors.DriverError,),
    "CorruptFileError": (errors.DriverError,),
    "ClosedError": (errors.AeronError,),
    "PublicationClosedError": (errors.ClosedError,),
    "SubscriptionClosedError": (errors.ClosedError,),
    "CounterClosedError": (errors.ClosedError,),
    "ClientClosedError": (errors.ClosedError,),
    "DriverShutdownError": (errors.ClientClosedError,),
    "DriverTimeoutError": (errors.ClientClosedError,),
    "ClientTimeoutError": (errors.ClientClosedError,),
    "ServiceTimeoutError": (errors.ClientClosedError,),
    "LappedError": (errors.ClientClosedError,),
    "RegistrationError": (errors.AeronError,),
    "ChannelError": (errors.AeronError, ValueError),
    "MessageTooLongError": (errors.AeronError, ValueError),
    "NotConnectedError": (errors.AeronError, TimeoutError),
    "BackPressuredError": (errors.AeronError, TimeoutError),
    "MaxPositionExceededError": (errors.AeronError,),
    "AddTimeoutError": (errors.AeronError, TimeoutError),
    "CallTimeoutError": (errors.AeronError, TimeoutError),
    "ForkedClientError": (errors.AeronError,),
    "RemoteError": (errors.AeronError,),
}

REASONS = {
    CloseReason.USER: errors.ClientClosedError,
    CloseReason.DRIVER_SHUTDOWN: errors.DriverShutdownError,
    CloseReason.DRIVER_TIMEOUT: errors.DriverTimeoutError,
    CloseReason.CLIENT_TIMEOUT: errors.ClientTimeoutError,
    CloseReason.SERVICE_TIMEOUT: errors.ServiceTimeoutError,
    CloseReason.LAPPED: errors.LappedError,
}


def exceptions_of(module: object) -> set[str]:
    return {
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, BaseException) and not name.startswith("_")
    }


@pytest.mark.parametrize("name", BASES)
def test_an_error_is_of_the_kinds_that_a_caller_catches(name: str) -> None:
    error = getattr(aeron_async, name)
    assert all(issubclass(error, base) for base in BASES[name])
    assert issubclass(error, errors.AeronError)


def test_all_errors_are_public() -> None:
    assert exceptions_of(errors) - {"InsufficientStorageRegistrationError"} == set(BASES)
    assert set(BASES) | {"CloseReason"} == set(errors.__all__) <= set(aeron_async.__all__)


@pytest.mark.parametrize("name", set(BASES) - {"MessageTooLongError", "RegistrationError", "DriverAccessError"})
def test_an_error_says_what_it_was_given(name: str) -> None:
    assert str(getattr(errors, name)("what happened")) == "what happened"


@pytest.mark.parametrize("reason", CloseReason)
def test_each_reason_has_an_error_of_its_own(reason: CloseReason) -> None:
    error = errors.ClientClosedError.of(reason, "why")
    assert type(error) is REASONS[reason]
    assert error.reason is reason
    assert str(error) == "why"


def test_a_refusal_has_code_and_message() -> None:
    error = errors.RegistrationError(ErrorCode.INVALID_CHANNEL, "no such channel")
    assert (error.code, error.message) == (1, "no such channel")
    assert str(error) == "the driver refused the command: no such channel (error code 1)"


def test_a_refusal_for_lack_of_storage_is_both_kinds_and_says_what_to_do() -> None:
    error = InsufficientStorageRegistrationError(ErrorCode.STORAGE_SPACE, "insufficient usable storage")
    assert isinstance(error, errors.RegistrationError)
    assert isinstance(error, errors.InsufficientStorageError)
    assert error.code == 12
    assert "insufficient usable storage (error code 12)" in str(error)
    assert "term_buffer_length" in str(error)


def test_a_message_that_is_too_long_says_both_lengths() -> None:
    error = errors.MessageTooLongError(8193, 8192)
    assert (error.length, error.limit) == (8193, 8192)
    assert "8193" in str(error)
    assert "max_message_length=8192" in str(error)


def test_lack_of_permission_has_an_errno() -> None:
    error = errors.DriverAccessError(13, "open of /x: Permission denied")
    assert error.errno == 13
    assert "Permission denied" in str(error)


@pytest.mark.parametrize(
    "error",
    [
        errors.RegistrationError(3, "text"),
        InsufficientStorageRegistrationError(12, "text"),
        errors.MessageTooLongError(2, 1),
        errors.ClientClosedError.of(CloseReason.LAPPED, "why"),
        errors.DriverAccessError(13, "text"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_pickling(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_close_reasons_are_those_of_the_contract() -> None:
    names = ["USER", "DRIVER_SHUTDOWN", "DRIVER_TIMEOUT", "CLIENT_TIMEOUT", "SERVICE_TIMEOUT", "LAPPED"]
    assert [reason.name for reason in CloseReason] == names

"""The driver's error codes."""

from __future__ import annotations

from aeron_async.protocol.error_codes import ErrorCode


def test_a_known_code_has_its_name() -> None:
    assert ErrorCode(12) is ErrorCode.STORAGE_SPACE


def test_a_code_of_a_newer_driver_is_unknown() -> None:
    assert ErrorCode(4711) is ErrorCode.UNKNOWN_CODE_VALUE

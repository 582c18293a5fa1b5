"""The package's log: one event name a thing that happened, its context as key-values.

It goes where the program has configured structlog to go; where it has not, to the standard library's logger
"aeron_async", which shows warnings and errors on standard error unless told otherwise.
"""

from __future__ import annotations

import logging
from typing import Any

import structlog

_standard: structlog.stdlib.BoundLogger = structlog.wrap_logger(
    logging.getLogger("aeron_async"),
    processors=[
        structlog.stdlib.filter_by_level,
        structlog.processors.format_exc_info,
        structlog.dev.ConsoleRenderer(colors=False),
    ],
    wrapper_class=structlog.stdlib.BoundLogger,
)


class Log:
    """A structlog logger that looks at each event whether structlog is configured."""

    def __init__(self, **context: Any) -> None:
        self._context = context

    def bind(self, **context: Any) -> Log:
        """A log whose events carry this context too."""
        return Log(**self._context, **context)

    def info(self, event: str, **context: Any) -> None:
        self._logger().info(event, **context)

    def warning(self, event: str, **context: Any) -> None:
        self._logger().warning(event, **context)

    def error(self, event: str, **context: Any) -> None:
        self._logger().error(event, **context)

    def exception(self, event: str, **context: Any) -> None:
        """An error, with the exception that is being handled."""
        self._logger().error(event, exc_info=True, **context)

    def _logger(self) -> Any:
        logger = structlog.get_logger("aeron_async") if structlog.is_configured() else _standard
        return logger.bind(**self._context)


log = Log()

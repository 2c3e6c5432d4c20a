"""Structured logs, loaded when the first line is written.

structlog (with rich behind it) takes about as long to import as the rest of the broker; a broker that starts, serves
and stops without an incident never needs it. Embedded in a program, structlog's configuration is the program's own; a
broker process calls `write_to_stderr`.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

_to_stderr = False
_configured = False


class Logger:
    """`log = Logger("millstream.node")`, then `log.warning("what happened", topic=…)`."""

    __slots__ = ("_bound", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._bound: Any = None

    def info(self, event: str, **fields: object) -> None:
        self._logger().info(event, **fields)

    def warning(self, event: str, **fields: object) -> None:
        self._logger().warning(event, **fields)

    def error(self, event: str, **fields: object) -> None:
        self._logger().error(event, **fields)

    def _logger(self) -> Any:
        if self._bound is None:
            import structlog

            if _to_stderr:
                _configure(structlog)
            self._bound = structlog.get_logger(self._name).bind(logger=self._name)
        return self._bound


def write_to_stderr() -> None:
    """One line per event: readable on a terminal, JSON where stderr is a file or a pipe."""
    global _to_stderr  # noqa: PLW0603  # the process has one stderr
    _to_stderr = True


def _configure(structlog: Any) -> None:
    global _configured  # noqa: PLW0603
    if _configured:
        return
    _configured = True
    on_terminal = sys.stderr.isatty()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([] if on_terminal else [structlog.processors.format_exc_info]),
            structlog.dev.ConsoleRenderer() if on_terminal else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )

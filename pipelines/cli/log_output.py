"""Configures the log that commands write to stderr: its lowest level, and its format (text or JSON)."""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.typing import EventDict, Processor

from engine.printing import visible
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import LogSettings, load

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure() -> None:
    """Applies the settings `log.level` and `log.format`; the times of log lines are ISO 8601, UTC."""
    settings = _settings()
    last: list[Processor] = [_visible, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    if settings.format == "json":
        last = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    logging.getLogger("elastic_transport").setLevel(logging.ERROR)  # the jobs report themselves that the server is away
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%Y-%m-%dT%H:%M:%SZ", utc=True),
            *last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[settings.level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def is_json() -> bool:
    """True if log lines are written as JSON."""
    return isinstance(structlog.get_config()["processors"][-1], structlog.processors.JSONRenderer)


def _visible(_logger: object, _name: str, event: EventDict) -> EventDict:
    """Escapes control characters in logged texts: user data must not break lines or send codes to the terminal."""
    return {name: visible(value) if isinstance(value, str) else value for name, value in event.items()}


def _settings() -> LogSettings:
    """The settings of the log; the defaults if settings are wrong, which the command itself will report."""
    try:
        return load().log
    except NewnormalError:
        return LogSettings()

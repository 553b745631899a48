"""What the commands write to stderr while they run: lines for people, or JSON for machines, from a level on."""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.typing import EventDict, Processor

from engine.explain.printing import visible
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import LogSettings, load

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure() -> None:
    """Sets level and form as the settings `log.level` and `log.format` say; times are ISO 8601, UTC."""
    settings = _settings()
    last: list[Processor] = [_visible, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    if settings.format == "json":
        last = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    logging.getLogger("elastic_transport").setLevel(logging.ERROR)  # an absent server is told of by who watches it
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
    """Whether what is logged is JSON."""
    return isinstance(structlog.get_config()["processors"][-1], structlog.processors.JSONRenderer)


def _visible(_logger: object, _name: str, event: EventDict) -> EventDict:
    """Texts of others as they are: they neither begin lines of their own nor steer the terminal."""
    return {name: visible(value) if isinstance(value, str) else value for name, value in event.items()}


def _settings() -> LogSettings:
    """The settings; where they are wrong the defaults: the command that reads them says what is wrong."""
    try:
        return load().log
    except NewnormalError:
        return LogSettings()

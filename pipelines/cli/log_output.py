"""What the commands write to stderr while they run: lines for people, or JSON for machines, from a level on."""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.typing import Processor

from engine.errors import NewnormalError
from pipelines.settings import LogSettings, load

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure() -> None:
    """Sets level and form as the settings `log.level` and `log.format` say; times are ISO 8601, UTC."""
    settings = _settings()
    last: list[Processor] = [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    if settings.format == "json":
        last = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
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


def _settings() -> LogSettings:
    """The settings; where they are wrong the defaults: the command that reads them says what is wrong."""
    try:
        return load().log
    except NewnormalError:
        return LogSettings()

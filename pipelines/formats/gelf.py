"""The decoder of GELF 1.0 and 1.1, Graylog's JSON of log lines, as Docker's driver and many loggers send it.

Source: the GELF payload specification. A missing level is 6 (info), as in all our log formats, though the specification
says 1 (alert): Graylog leaves such a level out, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipelines.formats.instants import moment
from pipelines.formats.labels import machine_and_port
from pipelines.formats.line_decoder import Line, LineDecoder
from pipelines.formats.severities import with_level

_PROGRAMS = (
    *("_application_name", "_app", "_application", "_program", "_process_name", "_service_name", "_service"),
    *("_container_name", "_tag", "facility", "_facility", "_logger", "_logger_name", "_LoggerName"),
)


def looks_like_gelf(value: bytes) -> bool:
    """Whether a message is an object with the text that GELF demands."""
    return value[:1] == b"{" and b'"short_message"' in value


@dataclass(frozen=True)
class GelfDecoder(LineDecoder):
    """Decodes an object each; the text is ``short_message``, or ``full_message`` if that is blank.

    Args:
        machine: The machine of messages that name none.

    >>> message = {"version": "1.1", "host": "a", "short_message": "no", "timestamp": 1795220820.013, "level": 3,
    ...     "_app": "shop"}
    >>> list(GelfDecoder().lines(message, 0))
    [(1795220820013, 'a', 'shop', 3, 'no')]
    """

    machine: str = ""

    def lines(self, message: Any, arrived: int) -> Iterator[Line]:
        texts = [message.get(name) for name in ("short_message", "full_message")]
        text = next((each.strip() for each in texts if isinstance(each, str) and each.strip()), "")
        if not text:
            return
        stamp = message.get("timestamp")
        time = arrived if stamp is None else moment(stamp)
        program = next((str(message[name]) for name in _PROGRAMS if message.get(name)), "")
        level = message.get("level")
        level = int(level) if isinstance(level, str) and level.isascii() and level.isdigit() else level
        machine, _ = machine_and_port(message.get("host") or self.machine)
        severity, text = with_level(level, text)
        yield time, machine, program, severity, text

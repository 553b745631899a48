"""The decoder of rsyslog's JSON (omkafka with a JSON template): each message is one log line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from engine.formats.json_decoder import FIELD_INVALID
from pipelines.formats.line_decoder import NO_PROGRAM, Line, LineDecoder
from pipelines.formats.refusals import MACHINE_UNKNOWN, RefusedError, no_machine
from pipelines.formats.severities import with_level


@dataclass(frozen=True)
class RsyslogDecoder(LineDecoder):
    """Decodes messages with ``ts`` (RFC 3339), ``host``, ``program``, ``severity`` (0 to 7, or a name) and ``msg``.

    Args:
        default: The machine of lines without a host; empty: they are refused.

    >>> line = {"ts": "2026-11-21T00:28:54.5+00:00", "host": "a", "severity": 4, "program": "sshd", "msg": " no"}
    >>> list(RsyslogDecoder().lines(line, 0))
    [(1795220934500, 'a', 'sshd', 4, 'no')]
    """

    default: str = ""

    def lines(self, message: Any, arrived: int) -> Iterator[Line | None]:
        if not isinstance(message, dict):
            raise RefusedError(FIELD_INVALID, "an rsyslog message is an object with ts, host, program, severity, msg")
        text = message.get("msg")
        if not isinstance(text, str):
            raise RefusedError(FIELD_INVALID, f"msg: {_shown(text)} is no text")
        host, program = message.get("host") or self.default, message.get("program") or NO_PROGRAM
        for name, value in (("host", host), ("program", program)):
            if not isinstance(value, str):
                raise RefusedError(FIELD_INVALID, f"{name}: {_shown(value)} is no text")
        if not host:
            raise RefusedError(MACHINE_UNKNOWN, no_machine(message))
        if text := text.strip():
            yield (_moment(message.get("ts")), host, program, *with_level(message.get("severity"), text))
        else:
            yield None


def _moment(time: Any) -> int:
    if isinstance(time, str):
        return _of_text(time)
    raise RefusedError(FIELD_INVALID, f"ts: {_shown(time)} is no time; {_ACCEPTED}")


@lru_cache(1 << 12)
def _of_text(time: str) -> int:
    try:
        when = datetime.fromisoformat(time)
    except ValueError:
        raise RefusedError(FIELD_INVALID, f"ts: {_shown(time)} is no time; {_ACCEPTED}") from None
    if when.tzinfo is None:
        raise RefusedError(FIELD_INVALID, f"ts: {_shown(time)} has no offset from UTC; {_ACCEPTED}")
    return round(when.timestamp() * 1000)


_ACCEPTED = "accepted: RFC 3339, as 2026-11-21T00:28:54.5+01:00"


def _shown(value: Any) -> str:
    return repr(value)[:60]

"""The decoder of syslog messages as they are on the wire: RFC 5424, and RFC 3164 (BSD)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from engine.formats.dead_letters import payload_text
from pipelines.jobs.normalize.instants import moment
from pipelines.jobs.normalize.line_decoder import Line, LineDecoder
from pipelines.jobs.normalize.refusals import LINE_INVALID, RefusedError

_PRIORITY = r"<(?P<priority>[0-9]{1,3})>"
_5424 = re.compile(
    _PRIORITY + r"1 (?P<time>\S+) (?P<host>\S+) (?P<program>\S+) \S+ \S+ "
    r'(?:-|(?:\[(?:[^\]"\\]++|\\.|"(?:[^"\\]++|\\.)*+")*+\])++)(?: (?P<text>.*))?',
    re.DOTALL,
)
"""Possessive, as the repetitions of a group are otherwise all remembered, at 200 bytes each."""
_3164 = re.compile(
    _PRIORITY + r"(?P<time>[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}|[0-9]{4}-\S+) (?P<host>\S+) "
    r"(?:(?P<program>[^\s:\[]{1,100})(?:\[[^\]\s]*\])?: ?)?(?P<text>.*)",
    re.DOTALL,
)
_MARK = "\ufeff"
_HOUR = 3_600_000
_ACCEPTED = "accepted: <34>1 2026-11-21T00:27:00Z host program pid id - text, or <34>Nov 21 00:27:00 host program: text"


@dataclass(frozen=True)
class SyslogDecoder(LineDecoder):
    """Decodes a message each, such as ``<34>1 2026-11-21T00:27:00.013Z a su - - - no``.

    RFC 3164 has neither year nor zone: the time is UTC, in the year that brings it next to the message's arrival.

    >>> list(SyslogDecoder().lines("<34>Nov 21 00:27:00 a su[7]: no", 1795220900000))
    [(1795220820000, 'a', 'su', 2, 'no')]
    """

    def parsed(self, value: bytes) -> Any:
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise RefusedError(LINE_INVALID, f"no UTF-8: {payload_text(value)[:80]!r}") from None

    def lines(self, message: str, arrived: int) -> Iterator[Line]:
        found = _5424.fullmatch(message.strip("\r\n\0 ")) or _3164.fullmatch(message.strip("\r\n\0 "))
        if found is None or int(found["priority"]) > 191:
            raise RefusedError(LINE_INVALID, f"no syslog message; {_ACCEPTED}: {message[:80]!r}")
        text = (found["text"] or "").removeprefix(_MARK).strip()
        if not text:
            return
        host, program = (("" if each == "-" else each or "") for each in (found["host"], found["program"]))
        yield _time(found["time"], arrived), host, program, int(found["priority"]) % 8, text


def _time(given: str, arrived: int) -> int:
    if given == "-":
        return arrived
    return moment(given) if given[0].isdigit() else _without_year(given, arrived // _HOUR)


@lru_cache(1 << 12)
def _without_year(given: str, hour: int) -> int:
    """Epoch milliseconds of a time without a year, next to an hour since the epoch."""
    now = datetime.fromtimestamp(hour * _HOUR / 1000, UTC)
    near = []
    for year in (now.year - 1, now.year, now.year + 1):
        try:
            near.append(datetime.strptime(f"{year} {given} +0000", "%Y %b %d %H:%M:%S %z"))
        except ValueError:  # the 29th of February is not in every year
            continue
    if not near:
        raise ValueError(f"{given!r} is no time")
    return round(min(near, key=lambda when: abs(when - now)).timestamp() * 1000)

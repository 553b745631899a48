"""Durations and instants: integer milliseconds everywhere; text forms only at the edges. Reads no clock."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from engine.spec.errors import NewnormalError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
LONGEST = 3_653 * 86_400_000
"""Longest duration, milliseconds: ten years."""

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)\s*")

NEVER = -(2**63) + 1
"""An instant before all others: the watermark of a partition without messages."""

END_OF_TIME = 2**63 - 1
"""An instant after all others: the watermark of input that has ended."""


@lru_cache(maxsize=1024)
def duration_ms(text: str | int, where: str = "duration") -> int:
    """Milliseconds of a duration such as ``"10s"``, ``"1h30m"`` or an integer of milliseconds.

    Raises:
        NewnormalError: ``DURATION_INVALID`` if the text is no duration.

    >>> duration_ms("10s"), duration_ms("1h30m"), duration_ms(250)
    (10000, 5400000, 250)
    """
    if isinstance(text, int):
        return text
    total, at = 0.0, 0
    while match := _DURATION.match(text, at):
        total += float(match[1]) * _UNITS[match[2]]
        at = match.end()
    if at != len(text) or at == 0 or total > LONGEST:
        raise NewnormalError("DURATION_INVALID", f"{text!r} is no duration", where, "e.g. 250ms, 10s, 5m, 1h30m, 7d")
    return round(total)


def duration_text(ms: int) -> str:
    """A duration in the largest unit up to days that divides it, as `duration_ms` reads it.

    >>> duration_text(604_800_000), duration_text(90_000), duration_text(250), duration_text(0)
    ('7d', '90s', '250ms', '0s')
    """
    unit = next((unit for unit in ("d", "h", "m", "s") if ms % _UNITS[unit] == 0), "ms") if ms else "s"
    return f"{ms // _UNITS[unit]}{unit}"


class Duration(int):
    """A length of time: an integer of milliseconds that remembers the text it was given as.

    Args:
        value: Text such as ``"10s"`` or ``"1h30m"``, or milliseconds.
        where: The parameter, for the message of an error.
        signed: Whether the text may begin with a minus.
        empty: Whether empty text is accepted: it is 0, and stands for "never".

    Raises:
        NewnormalError: ``DURATION_INVALID``.

    >>> Duration("1m") == 60_000, Duration("1m"), f"every {Duration('1m')}", Duration("-5s", signed=True) + 0
    (True, '1m', 'every 1m', -5000)
    """

    text: str

    def __new__(cls, value: str | int, where: str = "duration", signed: bool = False, empty: bool = False) -> Duration:
        """Reads the text."""
        if isinstance(value, Duration):
            return value
        if isinstance(value, int) and (signed or value >= 0):
            duration, text = super().__new__(cls, value), f"{value}ms"
        elif not isinstance(value, str):
            raise NewnormalError(
                "DURATION_INVALID", f"{value!r} is no duration", where, "e.g. 250ms, 10s, 5m, 1h30m, 7d"
            )
        elif empty and not value:
            duration, text = super().__new__(cls, 0), value
        elif signed and value.strip().startswith("-"):
            duration, text = super().__new__(cls, -duration_ms(value.strip()[1:], where)), value
        else:
            duration, text = super().__new__(cls, duration_ms(value, where)), value
        duration.text = text
        return duration

    def __repr__(self) -> str:
        return repr(self.text)

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (int(self), self.text)


def _restored(value: int, text: str) -> Duration:
    duration = int.__new__(Duration, value)
    duration.text = text
    return duration


class DurationField:
    """A dataclass field that accepts text or milliseconds and holds a `Duration`; it is parsed when the value is built.

    Args:
        where: The parameter, for the message of an error.
        default: Value if none is given; ``None``: the field is required.
        signed: See `Duration`.
        empty: See `Duration`.
    """

    def __init__(self, where: str, default: str | None = None, signed: bool = False, empty: bool = False) -> None:
        self.where, self.signed, self.empty = where, signed, empty
        self.default = None if default is None else self._read(default)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type | None = None) -> Duration:
        if instance is not None:
            value: Duration = instance.__dict__[self.name]
            return value
        if self.default is None:  # so that a dataclass finds no default
            raise AttributeError(self.name)
        return self.default

    def __set__(self, instance: object, value: str | int) -> None:
        instance.__dict__[self.name] = self._read(value)

    def _read(self, value: str | int) -> Duration:
        return Duration(value, self.where, self.signed, self.empty)


def iso(ms: int) -> str:
    """RFC 3339 text, UTC, of an instant in epoch milliseconds.

    >>> iso(0)
    '1970-01-01T00:00:00.000Z'
    """
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def epoch_ms(text: str) -> int:
    """Epoch milliseconds of ISO 8601 text; text without an offset is UTC.

    Raises:
        NewnormalError: ``TIME_INVALID`` if the text is no time.

    >>> epoch_ms("1970-01-01 00:00:01"), epoch_ms("2014-07-01T00:00:00Z")
    (1000, 1404172800000)
    """
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise NewnormalError(
            "TIME_INVALID", f"{text!r} is no time", accepted="ISO 8601, e.g. 2026-11-21T00:00:00Z"
        ) from error
    return round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)

"""The syslog severity that a level stands for, in the words and numbers of the usual loggers."""

from __future__ import annotations

import re

INFO = 6
"""The severity of a line that says none."""
UNKNOWN = 8
"""Stands for a level that is not known; syslog's severities end at 7."""
_NAMES = {
    **dict.fromkeys(("emerg", "emergency", "panic"), 0), **dict.fromkeys(("alert", "alrt"), 1),
    **dict.fromkeys(("crit", "critical", "crt", "fatal", "ftl", "severe error", "dpanic"), 2),
    **dict.fromkeys(("err", "error", "eror", "severe", "failure", "fail"), 3),
    **dict.fromkeys(("warn", "warning", "wrn"), 4),
    **dict.fromkeys(("notice", "note", "ntc", "default notice"), 5),
    **dict.fromkeys(("info", "information", "informational", "inf", "log", "default", "config", "success"), 6),
    **dict.fromkeys(("debug", "dbg", "debu", "trace", "trc", "verbose", "vrb", "fine", "finer", "finest"), 7),
}  # fmt: skip
"""syslog, log4j, java.util.logging, Python, zap, zerolog, Serilog, Google Cloud, PostgreSQL and others."""
_TENS: dict[float, int] = {10: 7, 20: 7, 30: 6, 40: 4, 50: 3, 60: 2}
"""pino and bunyan."""
_HUNDREDS: dict[float, int] = {100: 7, 200: 6, 250: 5, 300: 4, 400: 3, 500: 2, 550: 1, 600: 0}
_HUNDREDS |= {700: 6, 800: 6, 900: 4, 1000: 3}
"""Monolog to 600; java.util.logging above that."""
_THOUSANDS: dict[float, int] = {5_000: 7, 10_000: 7, 20_000: 6, 30_000: 4, 40_000: 3}
"""Logback."""
_NUMBERS: dict[float, int] = {**dict(zip(range(8), range(8), strict=True)), **_TENS, **_HUNDREDS, **_THOUSANDS}
_BETWEEN = re.compile(r"[+-][0-9]{1,3}$")
"""Follows the names of levels of Go's slog that lie between those that have a name."""
_OF_FIELD: dict[str, dict[float, int]] = {
    "levelno": {10: 7, 20: 6, 30: 4, 40: 3, 50: 2},  # Python
    "severity": {0: 0, 100: 7, 200: 6, 300: 5, 400: 4, 500: 3, 600: 2, 700: 1, 800: 0},  # Google Cloud
    "Level": {0: 6, 1: 2, 2: 3, 3: 4, 4: 6, 5: 7},  # events of Windows
}
"""What numbers mean in fields of these names, where it is something else."""


def severity_of(level: object, field: str = "") -> int | None:
    """The syslog severity that a level stands for, a name or a number; ``None`` if it is not known.

    Args:
        level: The level; ``None`` or empty: the line says none, and counts as `INFO`.
        field: The name of the field that holds it, as some mean other numbers than most.

    >>> [severity_of(each) for each in ("WARN", 3, "SEVERE", 50, "3", None, "ERROR+2", 77)]
    [4, 3, 3, 3, 3, 6, 3, None]
    >>> severity_of(30), severity_of(30, "levelno"), severity_of(500, "severity")
    (6, 4, 3)
    """
    if isinstance(level, str):
        if level in _NAMES:
            return _NAMES[level]
        word = level.strip().lower()
        if not (word.isascii() and word.isdigit() and len(word) <= 5):
            return _NAMES.get(_BETWEEN.sub("", word)) if word else INFO
        level = int(word)
    if level is None:
        return INFO
    if isinstance(level, bool) or not isinstance(level, int | float):
        return None
    known: dict[float, int] = _NUMBERS | _OF_FIELD.get(field, {})
    return known.get(level)


def with_level(level: object, text: str, field: str = "") -> tuple[int, str]:
    """The severity and the text of a line; a level that is not known is kept in the text, before it.

    >>> with_level("err", "no"), with_level("STRANGE", "no")
    ((3, 'no'), (8, 'level=STRANGE no'))
    """
    severity = severity_of(level, field)
    return (UNKNOWN, f"level={str(level)[:40]} {text}") if severity is None else (severity, text)

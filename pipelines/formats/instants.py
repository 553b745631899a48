"""Event times as agents of log lines write them: RFC 3339 text, or epoch seconds to nanoseconds, whole or not."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from engine.formats.instants import instant
from pipelines.formats.measurement import epoch_ms

ACCEPTED = "accepted: ISO 8601 such as 2026-11-21T00:27:00Z, or an epoch in s, ms, µs or ns"
"""What `moment` takes."""

_LONGEST_EPOCH = 30
"""Python refuses to read numbers of thousands of digits, with a message of its own."""


@lru_cache(1 << 12)  # lines that come together often have the same time
def _of_text(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST_EPOCH:
        return epoch_ms(int(text))
    try:
        return instant(text)
    except ValueError:
        raise ValueError(f"{text[:60]!r} is no time; {ACCEPTED}") from None


def moment(time: Any) -> int:
    """Epoch milliseconds of a time.

    Raises:
        ValueError: If it is no time.

    >>> moment("2026-11-21T00:27:00.0139Z"), moment(1795220820.5), moment(1795220820013000000)
    (1795220820013, 1795220820500, 1795220820013)
    >>> moment("1795220820013000")  # journald writes microseconds as text
    1795220820013
    """
    if isinstance(time, str):
        return _of_text(time)
    if type(time) not in (int, float):
        raise ValueError(f"{time!r} is no time; {ACCEPTED}")
    return epoch_ms(time) if isinstance(time, int) else round(time * 1000 if abs(time) < 1e11 else time)

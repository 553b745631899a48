"""Writes numbers, instants and durations as people do."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

_PREFIXES = ((1e18, " E"), (1e15, " P"), (1e12, " T"), (1e9, " G"), (1e6, " M"))
_UNITS = {"counter": "/s", "ratio": " %"}
_BYTES = re.compile(r"(^|[._])bytes([._{]|$)")
_STORAGE = re.compile(r"^(mem|swap|disk)\.(used|free|total|available|cached|buffers)(\{|$)|^process\.rss_")
"""Names of metrics that are bytes, and of those that are bytes if they are large: some senders give such a name to a
percentage. The console's page has the same in quantity.js."""
_MOST_DIGITS = 12
_SMALLEST, _LARGEST = 1e-9, 1e24
"""Numbers beyond these are written with an exponent: their digits would fill the sentence."""
_TINY = 1e-6
"""A number smaller than this share of the difference that should be visible is written as 0."""


@dataclass(frozen=True)
class Scale:
    """Writes the numbers of one sentence with the same rounding and unit, so that readers can compare them.

    Args:
        width: Difference that should be visible to two digits, such as the width of a band; ``None`` if there is none.
        kind: Kind of the metric; it decides the unit.
        largest: Largest absolute value of the numbers; it decides their common prefix (M, G, …).
        metric: Name of the metric: that of some says that they are bytes.
    """

    width: float | None = None
    kind: str = "gauge"
    largest: float = 0.0
    metric: str = ""

    def __call__(self, value: float) -> str:
        """Writes one number, with at least three digits.

        >>> Scale(13.0)(180.3), Scale(0.04)(100.041), Scale()(1234567.0), Scale(kind="ratio")(0.931)
        ('180', '100.041', '1.235 M', '93.1 %')
        >>> Scale(metric="mem.used")(184.2e9), Scale(kind="counter", metric="net.bytes_sent")(512.0)
        ('184.2 GB', '512 B/s')
        """
        return self._with_unit(self._bare(value, 3))

    def span(self, low: float, high: float) -> str:
        """Writes a band from ``low`` to ``high``.

        >>> Scale(13.0, "counter").span(95.2, 108.4), Scale(7e5, largest=1.7e6).span(991600.0, 1713000.0)
        ('95 to 108/s', '0.992 M to 1.71 M')
        """
        low_text, high_text = self._bare(low, 2), self._bare(high, 2)
        text = low_text if low_text == high_text else f"{low_text} to {high_text}"
        return self._with_unit(text)

    def step(self, before: float, after: float) -> str:
        """Writes a change from one value to another; only the value if both are written alike.

        >>> Scale(kind="ratio").step(0.271, 0.714), Scale(5.0, largest=2e9).step(2e9, 2e9 + 0.001)
        ('27 → 71 %', '2 G')
        >>> Scale(kind="counter", largest=4.3e6).step(2.9e6, 4.3e6)
        '2.9 → 4.3 M/s'
        """
        from_text, to_text = self._bare(before, 2), self._bare(after, 2)
        figure, _, prefix = from_text.partition(" ")
        first = figure if prefix == to_text.partition(" ")[2] else from_text
        text = to_text if from_text == to_text else f"{first} → {to_text}"
        return self._with_unit(text)

    def _with_unit(self, text: str) -> str:
        large, counted = text[-1:].isalpha(), ""
        if self.kind != "ratio" and (_BYTES.search(self.metric) or (large and _STORAGE.search(self.metric))):
            counted = "B" if large else " B"
        return text + counted + _UNITS.get(self.kind, "")

    def _bare(self, value: float, digits: int) -> str:
        factor = 100.0 if self.kind == "ratio" else 1.0
        width = None if self.width is None else self.width * factor
        return number(value * factor, width, digits=digits, largest=self.largest * factor)


def number(value: float, width: float | None = None, *, digits: int = 3, largest: float = 0.0) -> str:
    """Writes a number with ``digits`` digits (one more from 1000 on), or as many as show a difference of ``width``.

    Args:
        value: The number.
        width: Difference that should be visible; ``None`` if there is none.
        digits: Least number of significant digits.
        largest: Largest number that stands beside this one; both get the same prefix (M, G, …).

    >>> number(14770000.0), number(0.0042), number(93.0), number(0.5213, 0.03), number(3.0, 5000.0), number(1e21)
    ('14.77 M', '0.0042', '93', '0.521', '3', '1,000 E')
    >>> number(4.2e300), number(-3.14159e-200)
    ('4.2e+300', '-3.14e-200')
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    if width and abs(value) < abs(width) * _TINY:
        return "0"
    if not _SMALLEST <= abs(value) < _LARGEST:
        return f"{value:.{digits}g}"
    step = _power(value) - digits + (0 if abs(value) >= 1000 else 1)
    if width and math.isfinite(width):
        step = max(min(step, _power(width) - 1), _power(value) - _MOST_DIGITS)
    rounded = round(value, -step)
    beside = max(abs(rounded), largest if abs(value) >= 0.01 * largest else 0.0)
    prefix, name = next(((size, name) for size, name in _PREFIXES if beside >= size), (1.0, ""))
    return _plain(rounded / prefix, max(0, round(math.log10(prefix)) - step)) + name


def _power(value: float) -> int:
    return math.floor(math.log10(abs(value)))


def _plain(value: float, decimals: int) -> str:
    text = f"{value:,.{decimals}f}" if abs(value) >= 1000 else f"{value:.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def duration(ms: float, *, short: bool = True) -> str:
    """Writes a duration, rounded to one or two units, or to three digits of seconds below a minute.

    Args:
        ms: The duration, milliseconds.
        short: True for "2 min", False for "2 minutes".

    >>> duration(120_000), duration(3_000_000, short=False), duration(60_000, short=False), duration(5_400_000)
    ('2 min', '50 minutes', '1 minute', '1 h 30 min')
    >>> duration(90_000), duration(10_000), duration(200_000_000), duration(300)
    ('1 min 30 s', '10 s', '2 d 8 h', '0.3 s')
    >>> duration(12_345), duration(-7_200_000), duration(1_000, short=False), duration(3_599_000)
    ('12.3 s', '-2 h', '1 second', '1 h')
    """
    names = ("d", "h", "min", "s") if short else ("days", "hours", "minutes", "seconds")
    sizes = (86_400_000, 3_600_000, 60_000, 1_000)
    if ms < 0:
        return f"-{duration(-ms, short=short)}"
    if ms < 60_000:
        return f"{ms / 1000:.3g} {'second' if not short and ms == 1_000 else names[-1]}"
    place = next(i for i, size in enumerate(sizes) if ms >= size)
    last = place + 1 if ms < 10 * sizes[place] else place
    left, parts = round(ms / sizes[last]) * sizes[last], []
    for name, size in zip(names, sizes, strict=True):
        number, left = divmod(left, size)
        parts.append((number, name))
    written = [f"{n} {name if short or n != 1 else name[:-1]}" for n, name in parts if n]
    return " ".join(written) if short else " and ".join(written)


def instant(ms: int, beside: int, zone: str) -> str:
    """Writes an instant in local time; with its date, unless that is the date of ``beside``.

    Args:
        ms: The instant, epoch milliseconds.
        beside: The instant beside which it is read, epoch milliseconds.
        zone: IANA name of the time zone.

    >>> instant(1784800800000, 1784800900000, "UTC"), instant(1784800800000, 1784987200000, "Europe/Stockholm")
    ('10:00:00 UTC', '2026-07-23 12:00:00 CEST')
    """
    when, other = (datetime.fromtimestamp(each / 1000, UTC).astimezone(ZoneInfo(zone)) for each in (ms, beside))
    return f"{when:%H:%M:%S %Z}" if when.date() == other.date() else f"{when:%Y-%m-%d %H:%M:%S %Z}"


def listed(parts: list[str]) -> str:
    """Joins words with commas and "and".

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)

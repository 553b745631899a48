"""Instants, latencies, sizes and numbers in few characters, for tables in a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.spec.duration import iso
from pipelines.contracts.quantities.words import Scale, duration


def clock_time(ms: int, now: int) -> str:
    """An instant, UTC: the time of day, with its date where it is not of the last or next twelve hours.

    >>> clock_time(0, 1_000), clock_time(0, 86_400_000)
    ('00:00:00', '1970-01-01 00:00:00')
    """
    text = iso(ms)[:19].replace("T", " ")
    return text[11:] if abs(now - ms) < 43_200_000 else text


def latency(ms: int, waits_ms: int) -> str:
    """How long it takes from the end of a window until its document is found, and which part of it is by design.

    Args:
        ms: The latency.
        waits_ms: How long a window waits for late records.

    >>> latency(13_200, 5_000), latency(1_840, 0)
    ('latency 13.2 s (5 s of it wait for late records)', 'latency 1.84 s')
    """
    waits = f" ({duration(waits_ms)} of it wait for late records)" if waits_ms else ""
    return f"latency {duration(ms)}{waits}"


def size(value: float) -> str:
    """Bytes, short.

    >>> size(48_200_000), size(999_700)
    ('48.2 MB', '1 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1_000
    return f"{value:.3g} TB"


def value(novelty: Mapping[str, Any], name: str) -> str:
    """A value of a novelty with its unit.

    Args:
        novelty: A document, by JSON names.
        name: Name of the value, ``actual`` or ``typical``.

    >>> value({"metric": "cpu", "metric_kind": "ratio", "actual": 0.1605}, "actual"), value({}, "actual")
    ('16.1 %', '–')
    >>> value({"metric": "net.bytes_sent", "metric_kind": "counter", "typical": 725_600.0}, "typical")
    '725,600 B/s'
    """
    found = novelty.get(name)
    if found is None:
        return "–"
    return Scale(None, novelty.get("metric_kind") or "gauge", abs(found), str(novelty.get("metric")))(found)

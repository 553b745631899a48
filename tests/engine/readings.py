"""What the jobs of many tests read, and when it begins."""

from __future__ import annotations

from engine import Instant, Record

T0 = 1_766_000_000_000 - 1_766_000_000_000 % 86_400_000
"""A full day, epoch milliseconds."""


class Reading(Record):
    """A number and a text of a key."""

    time: Instant
    k: str
    v: float = 0.0
    s: str = ""


class Value(Record):
    """A whole number of a key, of which both may be missing."""

    time: Instant
    k: str | None = None
    v: int | None = None

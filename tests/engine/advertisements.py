"""Views of advertisements, and the table that says of which campaign an advertisement is."""

from __future__ import annotations

from engine import Instant, Record

T0 = 1_700_000_000_000


class View(Record):
    time: Instant
    ad: str


class Ad(Record):
    time: Instant
    ad: str
    campaign: str | None = None

"""Asks why nobody was alerted: reads what is known, and walks the steps."""

from __future__ import annotations

from engine.spec.duration import duration_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.jobs.detectors.metrics.bars import bar_by_clock
from pipelines.query.control_topics import LATEST, instant
from pipelines.why_not.evidence import evidence
from pipelines.why_not.walk import Walk, walk

_LONGEST = 86_400_000


def ask(settings: Settings, machine: str, metric: str, start: int, end: int) -> Walk:
    """Says why nobody was alerted of a series within a time; arguments and errors as those of `evidence`."""
    needed = bar_by_clock(settings.detector)(float(duration_ms(settings.window.step)))
    return walk(evidence(settings, machine, metric, start, end), settings, needed)


def span(time: str, within: str, now: int) -> tuple[int, int]:
    """Begin and end of the time that is asked about, epoch milliseconds.

    Args:
        time: When it begins: ISO 8601, or a time from now.
        within: How long it is.
        now: The present, epoch milliseconds.

    Raises:
        NewnormalError: ``TIME_INVALID``; ``DURATION_INVALID``; ``USAGE_INVALID`` if it is empty, or longer than a day.

    >>> span("1970-01-01T00:01Z", "5m", 0)
    (60000, 360000)
    """
    lasting, start = duration_ms(within, "within"), instant(time, now, "time") or 0
    if not 0 < lasting <= _LONGEST:
        raise NewnormalError("USAGE_INVALID", f"within is {within[:60]}", "within", "1ms to 1d", "nothing was read")
    return start, min(start + lasting, LATEST)

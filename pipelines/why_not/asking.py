"""Asks why nobody was alerted: reads what is known, and walks the steps."""

from __future__ import annotations

from engine.spec.duration import duration_ms
from pipelines.contracts.settings import Settings
from pipelines.jobs.detectors.metrics.bars import bar_by_clock
from pipelines.why_not.evidence import evidence
from pipelines.why_not.walk import Walk, walk


def ask(settings: Settings, machine: str, metric: str, start: int, end: int) -> Walk:
    """Says why nobody was alerted of a series within a time; arguments and errors as those of `evidence`."""
    needed = bar_by_clock(settings.detector)(float(duration_ms(settings.window.step)))
    return walk(evidence(settings, machine, metric, start, end), settings, needed)

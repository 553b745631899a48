"""Severity: a score from 0 to 100 in a word. Verdicts and incidents have the same words for the same scores."""

from __future__ import annotations

from typing import Literal, get_args

Severity = Literal["warning", "minor", "major", "critical"]

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The severities, the lowest first. Words and bounds are those of Elastic's anomaly detection,
whose *low*, below 3, is a warning here."""

STEP = 25
"""Each severity is so many points of a score wide: 25 and more is `minor`, 50 `major`, 75 `critical`."""


def severity_of(score: float) -> Severity:
    """The severity of a score.

    Args:
        score: From 0 to 100.

    >>> [severity_of(score) for score in (0, 24.9, 25, 50, 75, 100)]
    ['warning', 'warning', 'minor', 'major', 'critical', 'critical']
    """
    return SEVERITIES[min(int(score / STEP), len(SEVERITIES) - 1)]

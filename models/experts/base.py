"""What experts get of a step. Each predicts the next value of a series by another idea of what is usual."""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """What is known of a series before its value is judged, and the value.

    Args:
        value: The value, finite (where it is missing: the level's mean).
        seen: Values learned so far.
        resolution: Differences below this mean nothing, above 0.
        gap: Milliseconds since the value before, at least 0.
        local: Milliseconds on the wall clock at the end of the window, as if they were an epoch.
        weekend: Whether the day counts as one of a weekend.
        known: Values that what is known rests on: those seen, or for a replica its own and what it inherited.
    """

    value: float
    seen: float
    resolution: float
    gap: float
    local: int
    weekend: bool
    known: float


class Lesson(NamedTuple):
    """What is to be learned from a value: the value made harmless, and what it counts.

    Args:
        value: The value, brought near what was plausible.
        weight: What it counts, in [0, 1].
    """

    value: float
    weight: float

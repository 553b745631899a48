"""The colour of each severity: a score has the same colour on every dashboard, and changes it where its word changes.

The darker, the worse: the colours can be told apart without their hue.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.contracts.records.severity import SEVERITIES, STEP, Severity

_COLOURS = ("#f2c94c", "#f2994a", "#e5533d", "#9b1c1c")


@dataclass(frozen=True)
class Band:
    """The scores of one severity.

    Args:
        severity: The severity.
        start: The lowest score that has it.
        colour: Its colour, as ``#rrggbb``.
    """

    severity: Severity
    start: int
    colour: str


BANDS: tuple[Band, ...] = tuple(
    Band(severity, place * STEP, colour)
    for place, (severity, colour) in enumerate(zip(SEVERITIES, _COLOURS, strict=True))
)
"""All severities, the lowest first."""

SCALE = ", ".join(f"{band.severity} from {band.start}" for band in BANDS[1:])
"""The bounds in words, for the help of a panel."""

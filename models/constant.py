"""What is known of a constant of the models beside its value and its meaning."""

from __future__ import annotations

from dataclasses import dataclass

UNRECORDED = "not recorded"
"""It is not written down why it has this value."""


@dataclass(frozen=True)
class Constant:
    """Stands beside the type of a field of a configuration: ``Annotated[float, Constant("nats", 1, 100)]``.

    Args:
        unit: Of the value; ``1``: a number without one.
        least: Smallest value with which the formula does what it is for, as judged from it, not measured.
        most: The largest one, likewise.
        source: Where the value is from: a publication, or what was measured, if that is known.
    """

    unit: str
    least: float
    most: float
    source: str = UNRECORDED

"""What is known of a constant of the models beside its value and its meaning."""

from __future__ import annotations

from dataclasses import dataclass

UNMEASURED = "not measured"
"""No data set of ours says what it is worth."""


@dataclass(frozen=True)
class Constant:
    """Stands beside the type of a field of a configuration: ``Annotated[float, Constant("nats", 1, 9, "Page 1954")]``.

    Args:
        unit: Of the value; ``1``: a number without one.
        least: Smallest value with which the formula does what it is for, as judged from it, not measured.
        most: The largest one, likewise.
        source: Where the value is from: a publication, what was measured, or that it was chosen by hand.
        off: Value with which its mechanism does nothing, for measuring what that is worth; it may lie outside of the
            range. ``None``: no value takes the mechanism away.
        worth: What changes without the mechanism, or with half or twice the value, as `newnormal bench ablation` says.
    """

    unit: str
    least: float
    most: float
    source: str
    off: float | None = None
    worth: str = UNMEASURED

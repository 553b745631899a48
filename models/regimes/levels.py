"""The level of a series in each of the regimes that it is known in."""

from __future__ import annotations

import math

from models.kernels import kernel
from models.records import Record
from models.regimes.axis import value


@kernel
def level_in(regime: Record, unit: float, slot: int) -> float:
    """The level in a known regime: in the present one, the mean of the latest values outside of incidents.

    Regimes differ by a shift on the axis of `models.regimes.axis`, so the level of one gives those of the others.

    Args:
        regime: The columns of the series' regimes.
        unit: That of the axis.
        slot: The slot of the regime.

    Returns:
        The level; NaN of an empty slot.
    """
    return value(regime.shift[slot] + float(regime.level), unit) if regime.used[slot] >= 0 else math.nan

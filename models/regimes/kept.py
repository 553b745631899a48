"""The regimes a series is known in: how far each lies from the first, and whether one of them is back."""

from __future__ import annotations

import math

import numpy as np

from models.kernels import kernel, within
from models.numbers.arrays import Columns
from models.records import Record
from models.regimes.axis import value
from models.regimes.challenger import heavy
from models.regimes.config import RegimesConfig

SLOTS = 4
"""Regimes kept per series; a further one takes the place of the one not seen for longest."""


def new_state(n: int) -> Columns:
    """The columns for n series that are in their first regime.

    ``shift``: place of each on the axis, from the first; ``used``: values seen when the series was last in it, below 0:
    an empty slot; ``back``: logarithm of the Bayes factor of each against the present one; ``active``: its slot.
    """
    used = np.full((n, SLOTS), -1.0, np.float32)
    used[:, 0] = 0.0
    empty: Columns = {name: np.zeros((n, SLOTS), np.float32) for name in ("shift", "back")}
    return empty | {"used": used, "active": np.zeros(n, np.int8)}


@kernel
def recall_gain(config: RegimesConfig, regime: Record, slot: int, off: float, scale: float) -> float:
    """What a value adds to the Bayes factor of a kept regime; 0 of an empty slot and of the present regime.

    Args:
        config: The constants.
        regime: The columns.
        slot: The slot of the kept regime.
        off: Where the value lies from what the present regime expects.
        scale: Of the values about what is expected.
    """
    if regime.used[slot] < 0 or slot == regime.active:
        return 0.0
    away = float(regime.shift[slot]) - float(regime.shift[regime.active])
    wide = math.sqrt(scale * scale + (config.tolerance * away) ** 2)
    gain = heavy((off - away) / wide) - math.log(wide / scale) - heavy(off / scale)
    return within(gain, -config.recall_most, config.recall_most)


@kernel
def place_for_new(regime: Record) -> int:
    """The slot for a further regime: the first empty one, else the one not seen for longest."""
    slot = -1
    for other in range(SLOTS):
        if other != regime.active and (slot < 0 or regime.used[other] < regime.used[slot]):
            slot = other
    return slot


@kernel
def switch_to(regime: Record, slot: int, shift: float, seen: float) -> None:
    """Makes ``slot`` the present regime, at this shift."""
    regime.used[regime.active] = seen
    regime.used[slot] = seen
    regime.shift[slot] = shift
    regime.active = slot
    regime.now = shift


@kernel
def left_ago(regime: Record, slot: int, seen: float) -> float:
    """How many values ago the series was last in the regime of a slot."""
    return seen - float(regime.used[slot])


@kernel
def is_young(config: RegimesConfig, regime: Record, seen: float) -> bool:
    """Whether the present regime is not the first, and holds for no longer than an incident may."""
    used = float(regime.used[regime.active])
    return used > 0 and seen - used < config.patience


@kernel
def slot_left(config: RegimesConfig, regime: Record, seen: float, ago: float) -> int:
    """The slot of the kept regime that the series left nearest to so many values ago; -1: none, or ``ago`` is below 0.

    Args:
        config: The constants: two metrics leave a regime within ``patience`` windows of one another.
        regime: The columns.
        seen: Values seen.
        ago: How many values ago.
    """
    best, least = -1, float(config.patience)
    if ago < 0:
        return best
    for slot in range(SLOTS):
        miss = abs(left_ago(regime, slot, seen) - ago)
        if slot != regime.active and regime.used[slot] >= 0 and miss < least:
            best, least = slot, miss
    return best


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

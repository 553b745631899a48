"""The regimes a series is known in: how far each lies from the first, and whether one of them is back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.arrays import Array, Columns, Flags, Ints, Rows, clamp
from models.regimes.challenger import heavy

SLOTS = 4
"""Regimes kept a series; a further one takes the place of the one not seen for longest."""


class Known(NamedTuple):
    """The kept regimes of n series.

    Args:
        shift: Place of each on the axis, from the first, shape (n, SLOTS).
        used: Values seen when the series was last in it; below 0: an empty slot; shape (n, SLOTS).
        back: Logarithm of the Bayes factor of each against the present one, shape (n, SLOTS).
        active: Slot of the present one, shape (n,).
    """

    shift: Array
    used: Array
    back: Array
    active: Ints


@dataclass(frozen=True)
class Kept:
    """Compares the present regime with the other kept ones.

    Args:
        most: What one window adds to the logarithm of a Bayes factor at most, or takes away.
        tolerance: A regime's distance from the present one is known to this share.
    """

    most: float
    tolerance: float

    def new_state(self, n: int) -> Columns:
        """The columns for n series that are in their first regime."""
        used = np.full((n, SLOTS), -1.0, np.float32)
        used[:, 0] = 0.0
        empty = {name: np.zeros((n, SLOTS), np.float32) for name in ("shift", "back")}
        return empty | {"used": used, "active": np.zeros(n, np.int8)}

    def read(self, state: Rows) -> Known:
        """What is known."""
        shift, used, back = (state[name].astype(np.float64) for name in ("shift", "used", "back"))
        return Known(shift, used, back, state["active"].astype(np.int64))

    def gain(self, known: Known, off: Array, scale: Array, present: Array) -> Array:
        """What one value adds to the Bayes factors, shape (n, SLOTS); 0 of empty slots and of the present regime.

        Args:
            known: See `read`.
            off: Where the value lies from what the present regime expects, shape (n,).
            scale: Of the values about what is expected, shape (n,).
            present: Log density of the value in the present regime, shape (n,).
        """
        away = known.shift - np.take_along_axis(known.shift, known.active[:, None], axis=1)
        wide = np.sqrt(scale[:, None] ** 2 + (self.tolerance * away) ** 2)
        gain = heavy((off[:, None] - away) / wide) - np.log(wide / scale[:, None]) - present[:, None]
        others = (known.used >= 0) & (np.arange(SLOTS) != known.active[:, None])
        return np.where(others, clamp(gain, -self.most, self.most), 0.0)

    def place_for_new(self, known: Known) -> Ints:
        """The slot for a further regime of each series: the first empty one, else the one not seen for longest."""
        used = known.used.copy()
        np.put_along_axis(used, known.active[:, None], np.inf, axis=1)
        slot: Ints = used.argmin(axis=1)
        return slot

    def switch(self, state: Rows, known: Known, slot: Ints, shift: Array, seen: Array, which: Flags) -> None:
        """Makes ``slot`` the present regime of the series in ``which``, at this shift."""
        before, to = known.active[which, None], slot[which, None]
        shifts, used = known.shift, known.used
        part = used[which]
        np.put_along_axis(part, before, seen[which, None], axis=1)
        np.put_along_axis(part, to, seen[which, None], axis=1)
        used[which] = part
        part = shifts[which]
        np.put_along_axis(part, to, shift[which, None], axis=1)
        shifts[which] = part
        state["shift"], state["used"] = shifts, used
        state["active"] = np.where(which, slot, known.active)

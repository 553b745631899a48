"""On how many days an hour was visited: of two or more one can say what is usual at that hour on such days."""

from __future__ import annotations

import numpy as np

from models.arrays import Columns, Flags, Ints, Rows
from models.evidence.repeats import NEVER
from models.experts.wall_clock import is_weekend, local_ms

_QUARTER, _HOUR, _DAY = 900_000, 3_600_000, 86_400_000
_BINS = 48


class Days:
    """A bit for each hour of working days and of Saturdays and Sundays: visited today, on a day before, on two.

    Args:
        zone: IANA name of the time zone in which hours are counted.

    >>> days, row = Days("UTC"), np.array([0])
    >>> state, told = days.new_state(1), []
    >>> for day in (4, 5, 6):  # Monday to Wednesday
    ...     view, noon = Rows(state, row, ""), np.array([day * 86_400_000 + 43_200_000])
    ...     told.append(bool(days.several(view, noon, None)[0]))
    ...     days.learn(view, noon, None)
    >>> told
    [False, False, True]
    """

    def __init__(self, zone: str) -> None:
        self.zone = zone

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        columns: Columns = {name: np.zeros(n, np.int64) for name in ("today", "once", "twice")}
        return columns | {name: np.full(n, NEVER, np.int64) for name in ("quarter", "visit")}

    def several(self, state: Rows, time: Ints, day_off: Flags | None) -> Flags:
        """Whether the hour of each instant was visited on two such days before that day at least, shape (n,).

        Args:
            state: The columns.
            time: Epoch milliseconds, shape (n,).
            day_off: Whether the day counts as one of a weekend although it is none; ``None``: nowhere, shape (n,).
        """
        visit = self._visit(time, day_off)
        _, twice = self._before(state, visit)
        known: Flags = (twice >> (visit % _BINS)) & 1 > 0
        return known

    def learn(self, state: Rows, time: Ints, day_off: Flags | None) -> None:
        """Remembers the hour of each instant; arguments as of `several`. Of each quarter of an hour one will do."""
        quarter = time // _QUARTER
        moved = np.flatnonzero(quarter != state["quarter"])
        if not len(moved):
            return
        state = Rows(state.state, state.rows[moved], state.prefix)
        visit = self._visit(time[moved], None if day_off is None else day_off[moved])
        last = state["visit"].astype(np.int64)
        once, twice = self._before(state, visit)
        today = np.where(visit // _BINS == last // _BINS, state["today"], 0).astype(np.int64)
        state["today"], state["once"], state["twice"] = today | (1 << visit % _BINS), once, twice
        state["visit"], state["quarter"] = visit, quarter[moved]

    def _visit(self, time: Ints, day_off: Flags | None) -> Ints:
        """A number for each hour: that of the day, and in it the place of the bit."""
        local = local_ms(time, self.zone)
        off = is_weekend(local) if day_off is None else is_weekend(local) | day_off
        place: Ints = local // _DAY * _BINS + local % _DAY // _HOUR + 24 * off
        return place

    def _before(self, state: Rows, visit: Ints) -> tuple[Ints, Ints]:
        """The hours visited on one day at least, and on two, before the day of ``visit``."""
        today, once, twice = (state[name].astype(np.int64) for name in ("today", "once", "twice"))
        over = visit // _BINS != state["visit"].astype(np.int64) // _BINS
        return np.where(over, once | today, once), np.where(over, twice | (once & today), twice)

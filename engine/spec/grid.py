"""Instants at even distances, at which the event times of a job's results may lie."""

from __future__ import annotations

from dataclasses import dataclass

from engine.spec.duration import END_OF_TIME, NEVER


@dataclass(frozen=True)
class Grid:
    """The instants ``offset + n * every`` for all integers n.

    Args:
        every: Distance of two instants, milliseconds, above 0.
        offset: One of the instants, epoch milliseconds.
    """

    every: int
    offset: int = 0

    def last(self, instant: int) -> int:
        """The newest instant of the grid that is not after ``instant``; `NEVER` and `END_OF_TIME` stay; milliseconds.

        >>> Grid(10_000).last(9_999), Grid(10_000, offset=8_000).last(18_000)
        (0, 18000)
        """
        if instant in (NEVER, END_OF_TIME):
            return instant
        return instant - (instant - self.offset) % self.every


ANYWHERE = Grid(1)
"""Every instant."""

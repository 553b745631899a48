"""Instants at even distances, at which the event times of a job's results may lie."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Grid:
    """The instants ``offset + n * every`` for all integers n.

    Args:
        every: Distance of two instants, milliseconds, above 0.
        offset: One of the instants, epoch milliseconds.
    """

    every: int
    offset: int = 0

    def crossed(self, before: int, after: int) -> bool:
        """Whether an instant of the grid is after ``before`` and not after ``after``; epoch milliseconds.

        >>> Grid(10_000).crossed(9_999, 10_000), Grid(10_000).crossed(10_000, 19_999)
        (True, False)
        """
        return (after - self.offset) // self.every > (before - self.offset) // self.every

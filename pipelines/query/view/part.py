"""The part of the partitions that a process of the view has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """The part of the partitions that a process owns.

    Args:
        number: From 1.
        of: Number of parts.

    >>> Part(2, 3).owns(4), Part(2, 3).owns(5)
    (True, False)
    """

    number: int = 1
    of: int = 1

    def owns(self, partition: int) -> bool:
        """Whether the process owns a partition."""
        return partition % self.of == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

"""Disjoint groups of numbers that grow together: a union-find structure."""

from __future__ import annotations

from collections import defaultdict


class Groups:
    """Disjoint groups of numbers, which `unite` makes larger.

    >>> groups = Groups(4)
    >>> groups.unite(0, 2)
    >>> groups.members()
    [[0, 2], [1], [3]]
    """

    def __init__(self, n: int) -> None:
        self._parent = list(range(n))

    def find(self, i: int) -> int:
        """The least number of the group of ``i``."""
        while self._parent[i] != i:
            self._parent[i] = self._parent[self._parent[i]]
            i = self._parent[i]
        return i

    def unite(self, i: int, j: int) -> None:
        """Makes one group of the groups of two numbers."""
        i, j = self.find(i), self.find(j)
        self._parent[max(i, j)] = min(i, j)

    def members(self) -> list[list[int]]:
        """The groups, ordered by their first members."""
        groups: dict[int, list[int]] = defaultdict(list)
        for i in range(len(self._parent)):
            groups[self.find(i)].append(i)
        return list(groups.values())

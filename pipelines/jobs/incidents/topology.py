"""What each machine depends on at an instant of event time, and which machines moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipelines.contracts.records import Placement

_WALKED = 1_000
"""The most machines that are looked at for what stands on top of one."""


@dataclass(frozen=True)
class Topology:
    """The last placement of each machine. Before it, a machine that moved was on what it moved from.

    So a replay, which finds only the last placement of each machine in the compacted topic, groups what was before a
    move as it was grouped then. Where nothing is known of before, a placement holds for all times.

    Args:
        placements: By machine.

    >>> vm = Placement(entity="vm", parent="b", moved_from="a", time=1_767_571_200_000)
    >>> topology = Topology({"vm": vm, "a": Placement(entity="a", parent="rack", time=1_767_571_200_000)})
    >>> [topology.parent("vm", vm.time - 1), topology.parent("vm", vm.time), *topology.roots("vm", vm.time - 1)]
    ['a', 'b', 'rack']
    """

    placements: Mapping[str, Placement]

    def parent(self, entity: str, at: int) -> str | None:
        """What a machine runs on at an instant, epoch milliseconds; ``None`` if that is not known."""
        placed = self.placements.get(entity)
        if placed is None:
            return None
        return placed.moved_from if placed.moved_from and at < placed.time else placed.parent

    def above(self, entity: str, at: int) -> tuple[str, ...]:
        """All that a machine depends on at an instant, epoch milliseconds, without what that depends on."""
        placed = self.placements.get(entity)
        if placed is None:
            return ()
        if placed.moved_from and at < placed.time:
            return tuple(dict.fromkeys((placed.moved_from, *placed.depends_on)))
        return placed.above

    def roots(self, entity: str, at: int) -> frozenset[str]:
        """The topmost machines above a machine, or the machine itself; all machines of a circle, if that is on top.

        At most `_WALKED` machines are looked at.
        """
        reached, left, tops = {entity}, [entity], set()
        while left and len(reached) < _WALKED:
            name = left.pop()
            higher = self.above(name, at)
            if not higher:
                tops.add(name)
            fresh = [each for each in higher if each not in reached]
            reached.update(fresh)
            left += fresh
        return frozenset(tops or reached)

    def around(self, onsets: Iterable[tuple[str, int]]) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
        """What some machines depend on, and what that depends on, and so on.

        Args:
            onsets: Machines, and when they began to be novel, epoch milliseconds; of a machine the first one counts.

        Returns:
            For each machine what it depends on, without what that depends on; and what it runs on.
        """
        above: dict[str, tuple[str, ...]] = {}
        runs: dict[str, str] = {}
        for entity, at in onsets:
            left = [entity]
            while left:
                name = left.pop()
                if name not in above and (higher := self.above(name, at)):
                    above[name] = higher
                    left += higher
                    if (on := self.parent(name, at)) is not None:
                        runs[name] = on
        return above, runs

    def names(self) -> set[str]:
        """All machines that have a place, or have others below them."""
        places = self.placements.values()
        return {name for each in places for name in (each.entity, each.moved_from, *each.above) if name}

    def moves(self, since: int) -> dict[str, list[Placement]]:
        """The moves after an instant (epoch milliseconds), by each machine that moved, was left, or was gone to."""
        found: dict[str, list[Placement]] = defaultdict(list)
        for each in self.placements.values():
            if each.parent and each.moved_from and each.time >= since:
                for name in {each.entity: 0, each.moved_from: 0, each.parent: 0}:
                    found[name].append(each)
        return found

"""What each machine depends on at an instant of event time, and which machines moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipelines.contracts.records import Placement


@dataclass(frozen=True)
class Topology:
    """The last placement of each machine. Before it, a machine that moved was on what it moved from.

    So a replay, which finds only the last placement of each machine in the compacted topic, groups what was before a
    move as it was grouped then. Where nothing is known of before, a placement holds for all times.

    Args:
        placements: By machine.

    >>> vm = Placement(entity="vm", parent="b", moved_from="a", time=1_767_571_200_000)
    >>> topology = Topology({"vm": vm, "a": Placement(entity="a", parent="rack", time=1_767_571_200_000)})
    >>> [topology.parent("vm", vm.time - 1), topology.parent("vm", vm.time), topology.root("vm", vm.time - 1)]
    ['a', 'b', 'rack']
    """

    placements: Mapping[str, Placement]

    def parent(self, entity: str, at: int) -> str | None:
        """What a machine depends on at an instant, epoch milliseconds; ``None`` if it has no place."""
        placed = self.placements.get(entity)
        if placed is None:
            return None
        return placed.moved_from if placed.moved_from and at < placed.time else placed.parent

    def root(self, entity: str, at: int) -> str:
        """The topmost machine above a machine, or the machine itself; a circle ends where it began."""
        seen = {entity}
        while (parent := self.parent(entity, at)) is not None and parent not in seen:
            seen.add(parent)
            entity = parent
        return entity

    def parents(self, onsets: Iterable[tuple[str, int]]) -> dict[str, str]:
        """What some machines depend on, and what that depends on, and so on.

        Args:
            onsets: Machines, and when they began to be novel, epoch milliseconds; of a machine the first one counts.
        """
        found: dict[str, str] = {}
        for entity, at in onsets:
            name = entity
            while name not in found and (parent := self.parent(name, at)) is not None:
                found[name], name = parent, parent
        return found

    def names(self) -> set[str]:
        """All machines that have a place, or have others below them."""
        places = self.placements.values()
        return {name for each in places for name in (each.entity, each.parent, each.moved_from) if name}

    def moves(self, since: int) -> dict[str, list[Placement]]:
        """The moves after an instant (epoch milliseconds), by each machine that moved, was left, or was gone to."""
        found: dict[str, list[Placement]] = defaultdict(list)
        for each in self.placements.values():
            if each.parent and each.moved_from and each.time >= since:
                for name in {each.entity: 0, each.moved_from: 0, each.parent: 0}:
                    found[name].append(each)
        return found

"""What each machine depends on at an instant of event time, and which machines moved."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest

from engine.columns.replicas import replicas_of
from pipelines.contracts.records import Placement
from pipelines.jobs.incidents.components import components

_MOST_REPLICAS = 500
"""The most replicas for which the name of their workload stands, the first by name."""

_TOPS = 100
"""The most machines that are kept of those on top of one, the first by name."""


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
        return placed.moved_from if placed.moved_from and at < placed.moved_at else placed.parent

    def workload(self, entity: str) -> str | None:
        """What a machine is a replica of, as its placement says, or else its name; ``None``: of nothing."""
        placed = self.placements.get(entity)
        return replicas_of(entity) if placed is None else placed.replica_of

    def above(self, entity: str, at: int) -> tuple[str, ...]:
        """All that a machine depends on at an instant, epoch milliseconds, without what that depends on.

        What its workload depends on is a part of it; and where one depends on a workload, on the replicas of that.
        """
        placed, on = self.placements.get(entity), self.parent(entity, at)
        common = self.placements.get(self.workload(entity) or "")
        needs = dict.fromkeys(name for each in (placed, common) if each for name in each.depends_on)
        whole = (each for name in needs for each in self._replicas.get(name, (name,)))
        return tuple(dict.fromkeys(each for each in (on, *whole) if each and each != entity))

    @cached_property
    def _replicas(self) -> dict[str, tuple[str, ...]]:
        """The replicas of each workload."""
        found: dict[str, list[str]] = defaultdict(list)
        for name in sorted(self.placements):
            if (workload := self.workload(name)) and workload != name:
                found[workload].append(name)
        return {name: tuple(replicas[:_MOST_REPLICAS]) for name, replicas in found.items()}

    def roots(self, entity: str, at: int) -> frozenset[str]:
        """The topmost machines above a machine, or the machine itself; of a cycle on top, the first by name.

        At most `_TOPS` are named. Between two moves nothing changes, so each machine is looked at once.
        """
        roots = self._roots.setdefault(bisect_right(self._moved, at), {})
        if entity not in roots:
            for component in components([entity], lambda name: self.above(name, at), roots):
                higher = {each for name in component for each in self.above(name, at)}.difference(component)
                tops = frozenset(nsmallest(_TOPS, {top for name in higher for top in roots[name]}))
                roots.update(dict.fromkeys(component, tops or frozenset({min(component)})))
        return roots[entity]

    @cached_property
    def _moved(self) -> list[int]:
        """When machines moved, epoch milliseconds, in order."""
        return sorted(each.moved_at for each in self.placements.values() if each.moved_from)

    @cached_property
    def _roots(self) -> dict[int, dict[str, frozenset[str]]]:
        """What `roots` has found, by the number of moves until then."""
        return {}

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
        places = [each for each in self.placements.values() if each.moved_from or each.above]
        names = {name for each in places for name in (each.entity, each.moved_from, *each.above) if name}
        return names.union(*(self._replicas[name] for name in names & self._replicas.keys()))

    def moves(self, since: int) -> dict[str, list[Placement]]:
        """The moves after an instant (epoch milliseconds), by each machine that moved, was left, or was gone to."""
        moves_of: dict[str, list[Placement]] = defaultdict(list)
        for each in self.placements.values():
            if each.parent and each.moved_from and each.moved_at >= since:
                for name in {each.entity: 0, each.moved_from: 0, each.parent: 0}:
                    moves_of[name].append(each)
        return moves_of

"""Which bursts belong together: the links between the bursts of one machine, of related machines, and of others.

1. *One machine.* A later burst is linked to the one before it if it begins before that has been over for
   `Rules.quiet` and `Rules.reopen`; not if it began when that was over, and is an effect of a machine below (2).
2. *A machine and those that run on it*, if they begin within `Rules.related`. A burst of a machine that begins first
   may be the cause of all bursts below it; and `MANY` machines below that are novel at one time are no coincidence.
   Otherwise it is an effect of the burst below that is nearest in time, and is linked to this one and to those that
   show the same: two VMs of a host that change in different ways at one time are two incidents.
3. *A machine that moved*, the machine that it left and the one that it went to, if they begin within `Rules.related`
   of the move.
4. *Other machines*, if they begin within `Rules.together` and show the same. Two of them are linked if they have two
   metrics or more in common, and if no topology sets them apart (at most one of them has a place in it, or both have
   the same root). `MANY` or more with different roots are always linked, if the rules above make as many groups of
   them.

Two bursts show the same if they have at least half of all metrics that either shows in common. Everything here is a
pure function of the episodes: neither their order nor when they arrived matters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pipelines.contracts.records import Placement
from pipelines.jobs.incidents.bursts import Burst, Rules, bursts
from pipelines.jobs.incidents.episode import Episode

MANY = 3
"""So many machines that show the same at one time are no coincidence, whatever else is known of them."""


class Groups:
    """Disjoint groups of numbers, which `unite` makes larger; a union-find structure.

    >>> groups = Groups(4)
    >>> groups.unite(0, 2)
    >>> groups.members()
    [[0, 2], [1], [3]]
    """

    def __init__(self, n: int) -> None:
        self._parent = list(range(n))

    def find(self, i: int) -> int:
        """The number that stands for the group of ``i``."""
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
        found: dict[int, list[int]] = defaultdict(list)
        for i in range(len(self._parent)):
            found[self.find(i)].append(i)
        return list(found.values())


def grouped(
    episodes: Iterable[Episode], parents: Mapping[str, str], moves: Sequence[Placement], rules: Rules, now: int
) -> list[tuple[Burst, ...]]:
    """The groups of bursts that belong together.

    Args:
        episodes: The episodes, in any order.
        parents: For machines with a place in the topology: what each runs on.
        moves: The placements of machines that ran on another machine before.
        rules: The settings.
        now: The watermark, epoch milliseconds.
    """
    found = bursts(episodes, rules, now)
    groups, of = Groups(len(found)), _by_name(found)
    effects = _by_topology(found, of, groups, parents, rules)
    _by_machine(found, of, groups, effects, rules)
    _by_move(found, of, groups, moves, rules)
    placed = {*parents, *parents.values(), *(move.moved_from or "" for move in moves)}
    places = [root(burst.entity, parents) if burst.entity in placed else "" for burst in found]
    _by_likeness(found, groups, places, rules)
    return [tuple(found[i] for i in members) for members in groups.members()]


def _by_name(found: Sequence[Burst]) -> dict[str, list[int]]:
    """The bursts of each machine, in the order of their onsets."""
    machines: dict[str, list[int]] = defaultdict(list)
    for i, burst in enumerate(found):
        machines[burst.entity].append(i)
    return machines


def _by_topology(
    found: Sequence[Burst], of: Mapping[str, list[int]], groups: Groups, parents: Mapping[str, str], rules: Rules
) -> set[int]:
    """Links bursts to those of the machines below; returns those that are effects of these."""
    below: dict[str, list[int]] = defaultdict(list)
    for entity, own in of.items():
        if entity in parents:
            below[parents[entity]] += own
    effects = set()
    for entity in sorted(below.keys() & of.keys()):
        for i in of[entity]:
            onset = found[i].onset
            near = [j for j in below[entity] if abs(found[j].onset - onset) <= rules.related]
            if not near:
                continue
            cause = min(near, key=lambda j: (abs(found[j].onset - onset), j))
            if onset >= min(found[j].onset for j in near) and len({found[j].entity for j in near}) < MANY:
                effects.add(i)
                near = [j for j in near if alike(found[cause], found[j])]
            for j in near:
                groups.unite(i, j)
    return effects


def _by_machine(
    found: Sequence[Burst], of: Mapping[str, list[int]], groups: Groups, effects: set[int], rules: Rules
) -> None:
    for own in of.values():
        before, over = own[0], found[own[0]].end
        for i in own[1:]:
            end = found[i].end
            if over is None or found[i].onset <= over + rules.quiet + rules.reopen:
                if i not in effects or over is None or found[i].onset <= over:
                    groups.unite(before, i)
                end = None if over is None or end is None else max(over, end)
            before, over = i, end


def _by_move(
    found: Sequence[Burst], of: Mapping[str, list[int]], groups: Groups, moves: Iterable[Placement], rules: Rules
) -> None:
    for move in moves:
        places = (move.entity, move.moved_from or "", move.parent or "")
        near = [i for name in places for i in of.get(name, ()) if with_move(found[i], move, rules)]
        for i in near[1:]:
            groups.unite(near[0], i)


def _by_likeness(found: Sequence[Burst], groups: Groups, places: Sequence[str], rules: Rules) -> None:
    like = Groups(len(found))
    latest: dict[tuple[frozenset[str], str], int] = {}
    for i, burst in enumerate(found):
        if not burst.shows:
            continue
        for (shows, place), j in list(latest.items()):
            if burst.onset - found[j].onset > rules.together:
                del latest[shows, place]
            elif alike(found[j], burst):
                like.unite(i, j)
                if len(shows & burst.shows) > 1 and (not place or not places[i] or place == places[i]):
                    groups.unite(i, j)
        latest[burst.shows, places[i]] = i
    many = [
        members
        for members in like.members()
        if len({places[i] or found[i].entity for i in members}) >= MANY
        and len({groups.find(i) for i in members}) >= MANY
    ]
    for members in many:
        for i in members[1:]:
            groups.unite(members[0], i)


def with_move(burst: Burst, move: Placement, rules: Rules) -> bool:
    """Whether a burst of a machine that moved, or of a machine that it left or went to, is linked to the move."""
    near = abs(burst.onset - move.time) <= rules.related
    return near and burst.entity in (move.entity, move.moved_from, move.parent)


def alike(one: Burst, other: Burst) -> bool:
    """Whether two bursts show the same: at least half of all metrics that either shows."""
    return 2 * len(one.shows & other.shows) >= len(one.shows | other.shows)


def root(entity: str, parents: Mapping[str, str]) -> str:
    """The topmost machine above a machine, or the machine itself; a circle ends where it began.

    >>> root("vm", {"vm": "host", "host": "rack"}), root("a", {"a": "b", "b": "a"})
    ('rack', 'b')
    """
    seen = {entity}
    while (parent := parents.get(entity)) is not None and parent not in seen:
        seen.add(parent)
        entity = parent
    return entity

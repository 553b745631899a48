"""Which bursts belong together: the links between the bursts of one machine, of related machines, and of others.

1. *One machine*, `pipelines.jobs.incidents.sequences`: a later burst that shows the same, or that begins soon after.
2. *A machine and those that run on it*, if they begin within `Rules.related`. A burst of a machine that begins first
   may be the cause of all bursts below it; and `MANY` machines below that are novel at one time are no coincidence.
   Otherwise it is an effect of the burst below that is nearest in time, and is linked to this one and to those that
   show the same: two VMs of a host that change in different ways at one time are two incidents.
3. *A machine that moved*, the machine that it left and the one that it went to, if they begin within `Rules.related`
   of the move.
4. *Replicas of a workload*, if they show the same and begin within `Rules.related` one after another.
5. *Other machines*, `pipelines.jobs.incidents.likeness`: if they show the same at one time, those of one role also one
   after another.
6. *Weak bursts*, all of whose novelties have scores below `STRONG`, link nothing: each joins the nearest of the strong
   ones of its own machine or of those beside it in the topology, or is alone.

Everything here is a pure function of the episodes: neither their order nor when they arrived matters.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pipelines.contracts.records import Placement
from pipelines.jobs.incidents.bursts import Burst, Rules, bursts
from pipelines.jobs.incidents.episode import Episode
from pipelines.jobs.incidents.groups import Groups
from pipelines.jobs.incidents.likeness import MANY, alike, by_likeness
from pipelines.jobs.incidents.sequences import by_machine
from pipelines.jobs.incidents.topology import Topology


class Linked(NamedTuple):
    """Bursts that belong together.

    Attributes:
        bursts: The bursts, in the order of their onsets.
        like: The machines that show the same at one time have a number; those of the bursts.
    """

    bursts: tuple[Burst, ...]
    like: frozenset[int]


def linked(episodes: Iterable[Episode], topology: Topology, rules: Rules, now: int) -> list[Linked]:
    """The groups of bursts that belong together.

    What begins later than `Rules.longest` after the first of a group is the beginning of another one: no group goes on
    for ever.

    Args:
        episodes: The episodes, in any order.
        topology: What each machine depends on.
        rules: The settings.
        now: The watermark, epoch milliseconds.
    """
    ordered = bursts(episodes, rules, now)
    if not ordered:
        return []
    groups, of = Groups(len(ordered)), _strong_by_name(ordered)
    effects = _by_topology(ordered, of, groups, topology, rules)
    again = by_machine(ordered, of, groups, effects, rules)
    moves = topology.moves(ordered[0].onset - rules.related)
    _by_move(ordered, of, groups, moves, rules)
    _by_workload(ordered, of, groups, topology, rules)
    placed = topology.names()
    places = [topology.roots(b.entity, b.onset) if b.entity in placed else frozenset[str]() for b in ordered]
    like = by_likeness(ordered, groups, places, again, rules)
    _weak(ordered, of, groups, topology, rules)
    parts = [part for members in groups.members() for part in _bounded(ordered, members, rules.longest)]
    return [Linked(tuple(ordered[i] for i in part), frozenset(map(like.find, part))) for part in parts]


def _bounded(bursts: Sequence[Burst], group: Sequence[int], longest: int) -> Iterator[Sequence[int]]:
    """Parts of a group, in order, each of which begins within so many milliseconds after its first burst."""
    first = 0
    for i in range(1, len(group) + 1):
        if i == len(group) or bursts[group[i]].onset > bursts[group[first]].onset + longest:
            yield group[first:i]
            first = i


def _strong_by_name(bursts: Sequence[Burst]) -> dict[str, list[int]]:
    """The bursts of each machine with strong evidence, in the order of their onsets."""
    machines: dict[str, list[int]] = defaultdict(list)
    for i, burst in enumerate(bursts):
        if burst.strong:
            machines[burst.entity].append(i)
    return machines


def _by_topology(
    bursts: Sequence[Burst], of: Mapping[str, list[int]], groups: Groups, topology: Topology, rules: Rules
) -> set[int]:
    """Links bursts to those of the machines below; returns those that are effects of these."""
    below: dict[str, list[int]] = defaultdict(list)
    for entity, own in of.items():
        for i in own:
            for above in topology.above(entity, bursts[i].onset):
                below[above].append(i)
    effects = set()
    for entity in sorted(below.keys() & of.keys()):
        bursts_below = sorted(below[entity])
        onsets = [bursts[j].onset for j in bursts_below]
        for i in of[entity]:
            onset = bursts[i].onset
            first, end = bisect_left(onsets, onset - rules.related), bisect_right(onsets, onset + rules.related)
            near = bursts_below[first:end]
            if not near:
                continue
            cause = min(near, key=lambda j: (abs(bursts[j].onset - onset), j))
            if onset >= min(bursts[j].onset for j in near) and len({bursts[j].entity for j in near}) < MANY:
                # a host shows what its machines do; a service that is called is no effect of those that call it
                if topology.parent(bursts[cause].entity, bursts[cause].onset) == entity != bursts[cause].entity:
                    effects.add(i)
                near = [j for j in near if alike(bursts[cause].shows, bursts[j].shows)]
            for j in near:
                groups.unite(i, j)
    return effects


def _by_move(
    bursts: Sequence[Burst],
    of: Mapping[str, list[int]],
    groups: Groups,
    moves: Mapping[str, Sequence[Placement]],
    rules: Rules,
) -> None:
    for name, own in moves.items():
        for move in own:
            if move.entity == name:
                places = (name, move.moved_from or "", move.parent or "")
                near = [i for place in places for i in of.get(place, ()) if with_move(bursts[i], move, rules)]
                for i in near[1:]:
                    groups.unite(near[0], i)


def _by_workload(
    bursts: Sequence[Burst], of: Mapping[str, list[int]], groups: Groups, topology: Topology, rules: Rules
) -> None:
    """Links bursts of replicas that show the same: they do the same work, so minutes apart are one cause."""
    workloads: dict[str, list[int]] = defaultdict(list)
    for entity, own in of.items():
        if workload := topology.workload(entity):
            workloads[workload] += [i for i in own if bursts[i].shows]
    for replicas in workloads.values():
        latest: dict[frozenset[str], int] = {}
        for i in sorted(replicas):
            for shows, j in list(latest.items()):
                if bursts[i].onset - bursts[j].onset > rules.related:
                    del latest[shows]
                elif alike(shows, bursts[i].shows) and bursts[i].entity != bursts[j].entity:
                    groups.unite(i, j)
            latest[bursts[i].shows] = i


def _weak(
    bursts: Sequence[Burst], of: Mapping[str, list[int]], groups: Groups, topology: Topology, rules: Rules
) -> None:
    """Adds each weak burst to the strong one that it probably belongs to; no two strong ones are linked by it."""
    below: dict[str, list[str]] = defaultdict(list)
    for entity in sorted(of):
        for name in {name: 0 for i in of[entity] for name in topology.above(entity, bursts[i].onset)}:
            below[name].append(entity)
    for i, burst in enumerate(bursts):
        if burst.strong:
            continue
        beside = list(topology.above(burst.entity, burst.onset))
        beside += [e for e in below.get(burst.entity, ()) if burst.entity in topology.above(e, burst.onset)]
        near = [j for j in of.get(burst.entity, ()) if _around(burst, bursts[j], rules)]
        near = near or [
            j for name in beside for j in of.get(name, ()) if abs(burst.onset - bursts[j].onset) <= rules.together
        ]
        if near:
            groups.unite(i, min(near, key=lambda j: (abs(bursts[j].onset - burst.onset), j)))


def _around(weak: Burst, strong: Burst, rules: Rules) -> bool:
    """Whether a weak burst begins together with a strong one of its machine, or while that lasts, soon after it."""
    if abs(weak.onset - strong.onset) <= rules.together:
        return True
    lasts = strong.end is None or weak.onset <= strong.end + rules.quiet
    return strong.onset < weak.onset <= strong.onset + rules.quiet + rules.reopen and lasts


def with_move(burst: Burst, move: Placement, rules: Rules) -> bool:
    """Whether a burst of a machine that moved, or of a machine that it left or went to, is linked to the move."""
    near = abs(burst.onset - move.moved_at) <= rules.related
    return near and burst.entity in (move.entity, move.moved_from, move.parent)

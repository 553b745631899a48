"""Which episodes belong together: bursts of a machine, and the links between bursts.

A *burst* is the episodes of one machine that begin within `Rules.together` of the first of them. Two bursts are linked

1. of one machine: if the later one begins before the earlier one has been over for `Rules.quiet` and `Rules.reopen`;
2. of a machine and the machine that it runs on: if they begin within `Rules.related`;
3. of other machines: if they begin within `Rules.together` and show the same: at least half of all metrics that either
   shows. Two of them are linked if that is two metrics or more, and if no topology sets them apart (at most one of
   them has a place in it, or both have the same root). `MANY` or more with different roots are always linked.

Everything here is a pure function of the episodes: neither their order nor when they arrived matters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipelines.jobs.incidents.episode import Episode

MANY = 3
"""So many machines that show the same at one time are no coincidence, whatever else is known of them."""


@dataclass(frozen=True)
class Rules:
    """The settings `incidents.*`; times are in milliseconds."""

    score: float = 70.0
    series: int = 5
    together: int = 60_000
    related: int = 180_000
    quiet: int = 300_000
    reopen: int = 300_000
    longest: int = 86_400_000


@dataclass(frozen=True)
class Burst:
    """Episodes of one machine that begin together, in the order of their onsets.

    Attributes:
        entity: The machine.
        onset: When the first of them begins, epoch milliseconds.
        end: When the last of them ended; ``None`` if one lasts.
        episodes: The episodes.
        shows: The metrics that are compared with other machines.
    """

    entity: str
    onset: int
    end: int | None
    episodes: tuple[Episode, ...]
    shows: frozenset[str]


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


def grouped(episodes: Iterable[Episode], parents: Mapping[str, str], rules: Rules, now: int) -> list[tuple[Burst, ...]]:
    """The groups of bursts that belong together.

    Args:
        episodes: The episodes, in any order.
        parents: For machines with a place in the topology: what each runs on.
        rules: The settings.
        now: The watermark, epoch milliseconds.
    """
    found = bursts(episodes, rules, now)
    groups = Groups(len(found))
    _by_machine(found, groups, rules)
    _by_topology(found, groups, parents, rules)
    _by_likeness(found, groups, parents, rules)
    return [tuple(found[i] for i in members) for members in groups.members()]


def bursts(episodes: Iterable[Episode], rules: Rules, now: int) -> list[Burst]:
    """The bursts of all machines, in the order of their onsets."""
    made = []
    machines: dict[str, list[Episode]] = defaultdict(list)
    for episode in episodes:
        machines[episode.entity].append(episode)
    for entity, own in machines.items():
        own.sort(key=lambda e: (e.since, e.metric, e.reported))
        first = 0
        for i in range(1, len(own) + 1):
            if i == len(own) or own[i].since > own[first].since + rules.together:
                made.append(_burst(entity, tuple(own[first:i]), rules, now))
                first = i
    return sorted(made, key=lambda b: (b.onset, b.entity))


def _burst(entity: str, episodes: tuple[Episode, ...], rules: Rules, now: int) -> Burst:
    ends = [episode.end(now, rules.longest) for episode in episodes]
    end = None if None in ends else max(end for end in ends if end is not None)
    shows = frozenset(shown for episode in episodes if (shown := episode.shows))
    return Burst(entity, episodes[0].since, end, episodes, shows)


def _by_machine(found: Sequence[Burst], groups: Groups, rules: Rules) -> None:
    last: dict[str, tuple[int, int | None]] = {}
    for i, burst in enumerate(found):
        before = last.get(burst.entity)
        end = burst.end
        if before is not None:
            at, over = before
            if over is None or burst.onset <= over + rules.quiet + rules.reopen:
                groups.unite(at, i)
                end = None if over is None or end is None else max(over, end)
        last[burst.entity] = (i, end)


def _by_topology(found: Sequence[Burst], groups: Groups, parents: Mapping[str, str], rules: Rules) -> None:
    if not parents:
        return
    machines: dict[str, list[int]] = defaultdict(list)
    for i, burst in enumerate(found):
        machines[burst.entity].append(i)
    for i, burst in enumerate(found):
        for j in machines.get(parents.get(burst.entity, ""), ()):
            if abs(found[j].onset - burst.onset) <= rules.related:
                groups.unite(i, j)


def _by_likeness(found: Sequence[Burst], groups: Groups, parents: Mapping[str, str], rules: Rules) -> None:
    placed = {*parents, *parents.values()}
    places = [root(burst.entity, parents) if burst.entity in placed else "" for burst in found]
    like = Groups(len(found))
    latest: dict[tuple[frozenset[str], str], int] = {}
    for i, burst in enumerate(found):
        if not burst.shows:
            continue
        for (shows, place), j in list(latest.items()):
            if burst.onset - found[j].onset > rules.together:
                del latest[shows, place]
            elif 2 * len(common := shows & burst.shows) >= len(shows | burst.shows):
                like.unite(i, j)
                if len(common) > 1 and (not place or not places[i] or place == places[i]):
                    groups.unite(i, j)
        latest[burst.shows, places[i]] = i
    for members in like.members():
        if len({places[i] or found[i].entity for i in members}) >= MANY:
            for i in members[1:]:
                groups.unite(members[0], i)


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

"""Drains: what is planned while nothing may be placed on a node, and a while after.

A node that is cordoned is emptied, restarted or removed. What it does then, and that it and what runs on it fall
silent, is no incident by itself. What is still silent some minutes after the node may be used again is one, and so is
what the node began to do in these minutes and still does after them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence

from engine.spec.duration import END_OF_TIME, NEVER
from pipelines.contracts.records import Change
from pipelines.contracts.records.change import LONGEST, OF_DRAINS
from pipelines.jobs.incidents.episode import Episode
from pipelines.jobs.incidents.topology import Topology

GRACE = 600_000
"""How long after the end of a drain something may be silent, or do what it does after a restart, milliseconds."""

_BEFORE = 60_000
"""A silence begins with the first window that does not come, which may begin so long before a cordon, milliseconds.
What else a node does begins with a window that had not ended when the node was cordoned."""

_DEEP = 8
"""Of how many machines, one on top of the other, what runs on them is looked at."""


class Drains:
    """The drains of a site.

    Args:
        changes: Its changes.
        topology: What runs on what: a node may be another machine than that of its exporter.
    """

    def __init__(self, changes: Iterable[Change], topology: Topology) -> None:
        self._topology = topology
        self._spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._ids: list[tuple[str, int]] = []
        began: dict[str, Change] = {}
        for change in sorted(changes, key=lambda each: (each.time, each.id)):
            for name in change.machines if change.kind in OF_DRAINS else ():
                since = began.get(name)
                if change.kind == "uncordon":
                    self._add(name, began.pop(name, None), change.time)
                elif since is None or change.time > since.time + LONGEST:
                    self._add(name, since, change.time)
                    began[name] = change
        for name, change in began.items():
            self._add(name, change, change.time + LONGEST)
        self._aliases = self._by_exporter()

    def _by_exporter(self) -> dict[str, str]:
        """The drained nodes by what alone they run on: the machine that their exporter's metrics name.

        A host with several machines on it is none.
        """
        below: dict[str, list[str]] = defaultdict(list)
        for name, placed in self._topology.placements.items() if self._spans else ():
            if placed.parent:
                below[placed.parent].append(name)
        return {on: names[0] for on, names in below.items() if len(names) == 1 and names[0] in self._spans}

    def _add(self, name: str, cordon: Change | None, end: int) -> None:
        if cordon is not None:
            end = min(end, cordon.time + LONGEST)
            self._spans[name].append((cordon.time, end))
            self._ids.append((cordon.id, end))

    def needed(self, since: int) -> set[str]:
        """The ids of the cordons of drains that were not over at an event time, epoch milliseconds."""
        return {name for name, end in self._ids if end >= since}

    def news_from(self, episode: Episode, end: int | None) -> int:
        """From which watermark on an episode is news: `NEVER`, thus always; `END_OF_TIME`, thus never; or between.

        Args:
            episode: The episode.
            end: When it ended, epoch milliseconds; ``None`` if it lasts.
        """
        if not self._spans:
            return NEVER
        stopped, begun = episode.absent, episode.since + _BEFORE
        if not stopped:
            begun = min(begun, episode.reported - 1)
        names = self._nodes(episode.entity, episode.since) if stopped else self._known_as([episode.entity])
        for name in names:
            spans = self._spans.get(name, [])
            place = bisect_right(spans, (begun, END_OF_TIME)) - 1
            if place >= 0 and episode.since < spans[place][1] + GRACE:
                until = spans[place][1] + GRACE
                may_last = not stopped and episode.since < spans[place][1]
                return END_OF_TIME if may_last or (end is not None and end <= until) else until
        return NEVER

    def _nodes(self, entity: str, at: int) -> Sequence[str]:
        """A machine, what it runs on, and so on, and by what other names these are known."""
        names = [entity]
        while (on := self._topology.parent(names[-1], at)) and on not in names and len(names) < _DEEP:
            names.append(on)
        return self._known_as(names)

    def _known_as(self, names: Sequence[str]) -> list[str]:
        return [*names, *(self._aliases[name] for name in names if name in self._aliases)]

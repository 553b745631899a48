"""A burst: the episodes of one machine that begin within `Rules.together` of the first of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pipelines.jobs.incidents.episode import Episode


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

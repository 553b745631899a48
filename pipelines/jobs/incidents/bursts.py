"""A burst: the episodes of one machine that begin within `Rules.together` of the first of them."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pipelines.jobs.incidents.episode import SILENCE, STRONG, Episode

_PATIENCE = 6
"""What comes and goes is over after six times as long as what came once, an hour at the default settings, or sooner."""


@dataclass(frozen=True)
class Rules:
    """The settings `incidents.*`; times are in milliseconds, `false_pages` per week."""

    score: float = 50.0
    false_pages: float = 2.0
    series: int = 5
    together: int = 60_000
    related: int = 180_000
    quiet: int = 300_000
    reopen: int = 300_000
    longest: int = 86_400_000

    @staticmethod
    def patience(times: int) -> int:
        """How many times as long it takes until something is over that has come and gone so many times.

        >>> [Rules.patience(times) for times in (1, 2, 3, 20)]
        [1, 2, 3, 6]
        """
        return min(times, _PATIENCE)


@dataclass(frozen=True)
class Burst:
    """Episodes of one machine that begin together, in the order of their onsets.

    Attributes:
        entity: The machine.
        onset: When the first of them begins, epoch milliseconds.
        end: When the last of them ended; ``None`` if one lasts.
        episodes: The episodes.
        shows: The metrics that are compared with other machines; only `SILENCE` if the machine has sent nothing.
    """

    entity: str
    onset: int
    end: int | None
    episodes: tuple[Episode, ...]
    shows: frozenset[str]

    @property
    def silent(self) -> bool:
        """True if the machine has sent nothing."""
        return SILENCE in self.shows

    @property
    def strong(self) -> bool:
        """True if one of its novelties has a score of `STRONG`, or the machine has sent nothing."""
        return self.silent or any(episode.score >= STRONG for episode in self.episodes)

    @property
    def began(self) -> int:
        """When half of its series had begun, epoch milliseconds: one series that was dated back too far moves it not.

        >>> early, late = (Episode("a", name, at, at, at, None, 60.0) for name, at in (("cpu", 0), ("mem", 50)))
        >>> Burst("a", 0, None, (early, late, late), frozenset()).began
        50
        """
        return sorted(episode.since for episode in self.episodes)[len(self.episodes) // 2]


def bursts(episodes: Iterable[Episode], rules: Rules, now: int) -> list[Burst]:
    """The bursts of all machines, in the order of their onsets.

    The silence of a machine is a burst of its own, with its series that stop at the same time.
    """
    all_bursts = []
    machines: dict[str, list[Episode]] = defaultdict(list)
    for episode in episodes:
        machines[episode.entity].append(episode)
    for own in machines.values():
        silences = sorted(e.since for e in own if e.silent)
        parts: tuple[list[Episode], list[Episode]] = ([], [])
        for e in own:
            parts[e.absent and _has_near(silences, e.since, rules.together)].append(e)
        all_bursts += [_burst(together, rules, now) for part in parts for together in _together(part, rules)]
    return sorted(all_bursts, key=lambda b: (b.onset, b.entity, not b.silent))


def _has_near(ascending: Sequence[int], instant: int, within: int) -> bool:
    place = bisect_left(ascending, instant - within)
    return place < len(ascending) and ascending[place] <= instant + within


def _together(episodes: list[Episode], rules: Rules) -> Iterator[tuple[Episode, ...]]:
    """Parts of a machine's episodes, each of which begins within `Rules.together` of its first one."""
    own = sorted(episodes, key=lambda e: (e.since, e.metric, e.reported))
    first = 0
    for i in range(1, len(own) + 1):
        if i == len(own) or own[i].since > own[first].since + rules.together:
            yield tuple(own[first:i])
            first = i


def _burst(episodes: tuple[Episode, ...], rules: Rules, now: int) -> Burst:
    ends = [episode.end(now, rules.longest) for episode in episodes]
    end = None if None in ends else max(end for end in ends if end is not None)
    shows = frozenset(shown for episode in episodes if (shown := episode.shows))
    shows = frozenset({SILENCE}) if SILENCE in shows else shows
    return Burst(episodes[0].entity, episodes[0].since, end, episodes, shows)

"""The machines, metrics and series of an incident, with what changed in each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar, cast

from pipelines.contracts.explanations.change import changed
from pipelines.contracts.explanations.quantities import duration, instant
from pipelines.contracts.records.incident import AffectedMachine, AffectedMetric, AffectedSeries
from pipelines.contracts.records.novelty import JOINED, NoveltyKind
from pipelines.contracts.records.telemetry import MetricKind
from pipelines.jobs.incidents.bursts import Rules
from pipelines.jobs.incidents.episode import LOGS, Episode

ZONE = "UTC"
"""Time zone of the instants in texts: they are sent to others, and the same for all readers."""

_Key = TypeVar("_Key")


def affected_machines(episodes: Iterable[Episode]) -> list[AffectedMachine]:
    """The machines, in the order of their onsets."""
    made = [
        AffectedMachine(
            entity=entity,
            since=min(e.since for e in own),
            series=len({e.metric for e in own} - {JOINED}) or 1,
            record_score=round(max(e.score for e in own)),
        )
        for entity, own in _by(episodes, lambda e: e.entity).items()
    ]
    return sorted(made, key=lambda m: (m.since, m.entity))


def affected_metrics(episodes: Iterable[Episode]) -> list[AffectedMetric]:
    """The metrics, those on most machines first."""
    made = [
        AffectedMetric(
            metric=metric, machines=len({e.entity for e in own}), record_score=round(max(e.score for e in own))
        )
        for metric, own in _by(episodes, lambda e: e.metric).items()
    ]
    return sorted(made, key=lambda m: (-m.machines, -m.record_score, m.metric))


def affected_series(episodes: Iterable[Episode], rules: Rules, now: int) -> list[AffectedSeries]:
    """The series: what has sent nothing first, then those with the highest scores.

    Args:
        episodes: The episodes of an incident, in any order. A series with several is told of once: by the one in which
            it sent nothing, or else by the one with the highest score.
        rules: The settings.
        now: The watermark, epoch milliseconds.
    """
    found = []
    for own in _by(episodes, lambda e: (e.entity, e.metric)).values():
        one = min(own, key=strength)
        ends = [e.end(now, rules.longest) for e in own]
        known = [end for end in ends if end is not None]
        end = None if len(known) < len(ends) else one.resumed if one.absent and len(own) == 1 else max(known)
        found.append((one, min(e.since for e in own), end))
    found.sort(key=lambda each: strength(each[0]))
    return [
        AffectedSeries(
            entity=e.entity,
            metric=e.metric,
            metric_kind=_metric_kind(e),
            kind=_kind(e),
            since=e.since if e.absent else since,
            reported=e.reported,
            end=end,
            record_score=round(e.score),
            actual=e.actual,
            typical=e.typical,
            lower=e.lower,
            upper=e.upper,
            change=change(e, rules, now),
        )
        for e, since, end in found
    ]


def strength(episode: Episode) -> tuple[bool, bool, int, int, str, str]:
    """Order of an incident's series: silence first, of it whole machines; then by score, onset and name."""
    e = episode
    return not e.absent, e.absent and e.metric != JOINED, -round(e.score), e.since, e.entity, e.metric


def change(episode: Episode, rules: Rules, now: int) -> str:
    """What changed in a series, in a few words, such as "27 → 71 %" or "has sent nothing since 19:05:00 UTC"."""
    if episode.absent:
        return silence(episode, rules, now)
    if episode.metric == JOINED:
        return "unusual as a whole"
    if episode.metric == LOGS:
        return "unusual lines"
    return changed(episode.actual, episode.typical, _metric_kind(episode))


def silence(episode: Episode, rules: Rules, now: int) -> str:
    """Since when a series has sent nothing, or for how long it sent nothing."""
    since, resumed = episode.since, episode.resumed
    if episode.end(now, rules.longest) is None or resumed is None or resumed <= since:
        return f"has sent nothing since {instant(since, episode.reported, ZONE)}"
    return f"sent nothing for {duration(resumed - since)}"


def _metric_kind(episode: Episode) -> MetricKind:
    return cast(MetricKind, episode.metric_kind or "gauge")


def _kind(episode: Episode) -> NoveltyKind:
    return "absence" if episode.absent else cast(NoveltyKind, episode.kind or "anomaly")


def _by(episodes: Iterable[Episode], key: Callable[[Episode], _Key]) -> dict[_Key, list[Episode]]:
    by: dict[_Key, list[Episode]] = defaultdict(list)
    for episode in episodes:
        by[key(episode)].append(episode)
    return by

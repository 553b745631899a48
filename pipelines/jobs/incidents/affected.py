"""The machines, metrics and series of an incident, with what changed in each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar, cast

from engine.columns.replicas import replicas_of
from pipelines.contracts.explanations.change import beside_peers, changed
from pipelines.contracts.explanations.full import will_be_full
from pipelines.contracts.quantities.words import duration, instant
from pipelines.contracts.records.incident import AffectedMachine, AffectedMetric, AffectedSeries
from pipelines.contracts.records.novelty import JOINED, PEERS, NoveltyKind, judged_metric
from pipelines.contracts.records.telemetry import MetricKind
from pipelines.jobs.incidents.bursts import Rules
from pipelines.jobs.incidents.episode import LOGS, Episode, times
from pipelines.jobs.incidents.severity import points, weighed

ZONE = "UTC"
"""Time zone of the instants in texts: they are sent to others, and the same for all readers."""

_LONGEST = 160
"""The most characters of a template in a text."""


_Key = TypeVar("_Key")


def affected_machines(
    episodes: Iterable[Episode], workload: Callable[[str], str | None] = replicas_of
) -> list[AffectedMachine]:
    """The machines, in the order of their onsets.

    Args:
        episodes: The episodes of an incident, in any order.
        workload: What a machine is a replica of.
    """
    machines = [
        AffectedMachine(
            entity=entity,
            workload=workload(entity),
            since=min(e.since for e in own),
            series=len({judged_metric(e.metric) for e in own} - {JOINED}) or 1,
            record_score=round(max(e.score for e in own)),
        )
        for entity, own in _by(episodes, lambda e: e.entity).items()
    ]
    return sorted(machines, key=lambda m: (m.since, m.entity))


def affected_metrics(episodes: Iterable[Episode]) -> list[AffectedMetric]:
    """The metrics, those on most machines first."""
    metrics = [
        AffectedMetric(
            metric=metric, machines=len({e.entity for e in own}), record_score=round(max(e.score for e in own))
        )
        for metric, own in _by(episodes, lambda e: judged_metric(e.metric)).items()
    ]
    return sorted(metrics, key=lambda m: (-m.machines, -m.record_score, m.metric))


def affected_series(episodes: Iterable[Episode], rules: Rules, now: int) -> list[AffectedSeries]:
    """The series: what has sent nothing first, then those that weigh most.

    Args:
        episodes: The episodes of an incident, in any order. A series with several is listed once: by the one in which
            it sends nothing now, or else did, or else by the one that weighs most.
        rules: The settings.
        now: The watermark, epoch milliseconds.
    """
    series = []
    for own in _by(episodes, lambda e: (e.entity, judged_metric(e.metric))).values():
        one = min(own, key=lambda e: (not e.absent, e.absent and e.end(now, rules.longest) is not None, strength(e)))
        ends = [e.end(now, rules.longest) for e in own]
        known_ends = [end for end in ends if end is not None]
        if one.absent:
            known_ends = [one.resumed or one.until] if one.closed is not None else []  # else it is over as it is gone
        end = max(known_ends) if len(known_ends) == len(ends) or (known_ends and one.absent) else None
        series.append((one, min(e.since for e in own), end, times(own)))
    series.sort(key=lambda each: strength(each[0]))
    return [
        AffectedSeries(
            entity=e.entity,
            metric=judged_metric(e.metric),
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
            change=change(e, end),
            times=came,
        )
        for e, since, end, came in series
    ]


def strength(episode: Episode) -> tuple[bool, bool, int, int, str, str]:
    """Order of an incident's series: silence first, of it whole machines; then by weight, onset and name."""
    e = episode
    return not e.absent, e.absent and e.metric != JOINED, -round(points(weighed(e))), e.since, e.entity, e.metric


def change(episode: Episode, end: int | None) -> str:
    """What changed in a series, in a few words, such as "27 → 71 %" or "has sent nothing since 19:05:00 UTC".

    Args:
        episode: The episode that stands for the series.
        end: When it was over, epoch milliseconds; ``None`` while it lasts.
    """
    if episode.absent:
        return silence(episode.since, episode.reported, end)
    if episode.kind == "exhaustion":
        return will_be_full(episode.foretold or episode.until, episode.full_earliest, episode.full_latest, end, ZONE)
    if episode.metric == JOINED:
        return "unusual as a whole"
    if episode.metric == LOGS:
        return f"unusual lines, such as {quoted(episode.template)}" if episode.template else "unusual lines"
    words = beside_peers if episode.metric.startswith(PEERS) else changed
    return words(episode.actual, episode.typical, _metric_kind(episode), judged_metric(episode.metric))


def silence(since: int, reported: int, end: int | None, verb: str = "has") -> str:
    """Since when something has sent nothing, or for how long it sent nothing.

    >>> silence(1767571200000, 1767571210000, None), silence(1767571200000, 1767571210000, 1767571290000)
    ('has sent nothing since 00:00:00 UTC', 'sent nothing for 1 min 30 s')
    """
    if end is None:
        return f"{verb} sent nothing since {instant(since, reported, ZONE)}"
    return f"sent nothing for {duration(end - since)}" if end > since else "sent nothing for a moment"


def _metric_kind(episode: Episode) -> MetricKind:
    return cast(MetricKind, episode.metric_kind or "gauge")


def _kind(episode: Episode) -> NoveltyKind:
    return "absence" if episode.absent else cast(NoveltyKind, episode.kind or "anomaly")


def _by(episodes: Iterable[Episode], key: Callable[[Episode], _Key]) -> dict[_Key, list[Episode]]:
    by: dict[_Key, list[Episode]] = defaultdict(list)
    for episode in episodes:
        by[key(episode)].append(episode)
    return by


def quoted(template: str) -> str:
    """A log template in one line, in quotation marks, shortened if it is long."""
    text = " ".join(template.split())
    return f'"{text if len(text) <= _LONGEST else text[:_LONGEST] + "..."}"'

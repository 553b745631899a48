"""The incidents of a site: a pure function of its episodes, of what operators said, and of the watermark.

Neither the order of the episodes nor micro-batches matter. `pipelines.jobs.incidents.operator` keeps the episodes and
decides what is written again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

from engine.spec.duration import END_OF_TIME
from pipelines.contracts.records import Acknowledgement, Change, Incident, Placement
from pipelines.contracts.records.incident import IncidentStatus
from pipelines.contracts.records.novelty import JOINED, judged_metric
from pipelines.contracts.records.severity import severity_of
from pipelines.jobs.incidents.affected import affected_machines, affected_metrics, affected_series
from pipelines.jobs.incidents.bursts import Rules
from pipelines.jobs.incidents.causes import causes
from pipelines.jobs.incidents.changes import after, earlier_changes
from pipelines.jobs.incidents.drains import Drains
from pipelines.jobs.incidents.episode import Comings, Episode, times
from pipelines.jobs.incidents.false_pages import NOTHING_YET, Lately, least_severity
from pipelines.jobs.incidents.fleet import NOT_COUNTED, Living
from pipelines.jobs.incidents.links import Linked, linked, with_move
from pipelines.jobs.incidents.log_changes import log_changes
from pipelines.jobs.incidents.severity import is_notable, severity_score
from pipelines.jobs.incidents.title import in_the_log, moved, title
from pipelines.jobs.incidents.topology import Topology

MACHINES, METRICS, SERIES = 100, 50, 50
"""The most machines, metrics and series that an incident names; it counts all of them."""


@dataclass(frozen=True)
class Site:
    """What is known of a site besides its novelties.

    Attributes:
        name: Its name.
        topology: What each machine depends on.
        acknowledgements: The last acknowledgement of each incident, by its id.
        new_lines: For each machine the windows in which its log had lines that are new to it, though no novelty.
        lately: The incidents of the last weeks that are no longer among its novelties.
        changes: What was done at the site.
        living: How many machines it has.
    """

    name: str
    topology: Topology
    acknowledgements: Mapping[str, Acknowledgement]
    new_lines: Mapping[str, Sequence[Episode]]
    lately: Lately = NOTHING_YET
    changes: Sequence[Change] = ()
    living: Living = NOT_COUNTED

    @cached_property
    def drains(self) -> Drains:
        """When nodes were drained."""
        return Drains(self.changes, self.topology)


@dataclass(frozen=True)
class GroupedIncident:
    """An incident, the ids that its episodes would give, and when it is over for good.

    Attributes:
        incident: The incident, revision 0.
        ids: The id of each of its episodes; incidents with these ids are parts of this one.
        episodes: Its episodes.
        notable: True if it is enough to be written: by score, by number of series, or as a series has stopped.
        level: The severity that was needed for that.
        calm: Event time at which it is resolved, epoch milliseconds; ``None`` while it lasts.
        over: Event time from which on no novelty can reopen it, epoch milliseconds; ``None`` while it lasts.
        acknowledged_at: When an operator last acknowledged it or took that back, epoch milliseconds; 0: never.
        like: See `Linked`: incidents with a number in common may still turn out to be one, until both are over.
        heard: When the last message on a silence was sent, epoch milliseconds; 0: it is no incident of a silence.
        planned: Those of its episodes that are no news by themselves, see `Drains`.
        later: The watermark at which one of them becomes news, epoch milliseconds; `END_OF_TIME`: at none.
    """

    incident: Incident
    ids: frozenset[str]
    episodes: tuple[Episode, ...]
    notable: bool
    level: float
    calm: int | None
    over: int | None
    acknowledged_at: int
    like: frozenset[int] = frozenset()
    heard: int = 0
    planned: frozenset[Episode] = frozenset()
    later: int = END_OF_TIME

    @property
    def told(self) -> tuple[Episode, ...]:
        """The episodes that are news."""
        return tuple(each for each in self.episodes if each not in self.planned) if self.planned else self.episodes


def incidents(episodes: Iterable[Episode], site: Site, rules: Rules, now: int) -> list[GroupedIncident]:
    """The incidents at a watermark, in the order in which they were reported.

    Args:
        episodes: The episodes that were reported at or before the watermark.
        site: What else is known of the site.
        rules: The settings.
        now: The watermark, epoch milliseconds.
    """
    groups = linked(episodes, site.topology, rules, now)
    moves = site.topology.moves(min((group.bursts[0].onset for group in groups), default=now) - rules.related)
    grouped = [_incident(group, site, moves, rules, now) for group in groups]
    return sorted(as_promised(grouped, site, rules), key=lambda f: (f.incident.opened, f.incident.id))


def as_promised(incidents: Sequence[GroupedIncident], site: Site, rules: Rules) -> list[GroupedIncident]:
    """The incidents, each notable or not by the severity from which few enough are false when it is reported.

    Args:
        incidents: All incidents, notable or not.
        site: What else is known of the site.
        rules: The settings; of `incidents`, ``false_pages``, ``score`` and ``series`` count for nothing else.
    """
    lately = site.lately.with_those_over((each.over, each.told) for each in incidents)
    levels = least_severity(lately, [each.incident.opened for each in incidents], rules.false_pages, rules.score)
    return [
        replace(each, notable=bool(each.told) and is_notable(each.told, rules, level), level=level)
        for each, level in zip(incidents, levels, strict=True)
    ]


def episode_id(site: str, episode: Episode) -> str:
    """The id of an incident that is reported first by an episode: 16 hexadecimal digits.

    It follows from the series and the end of the first novel window. So novelties that join later do not change it, and
    a replay gives the same id.

    >>> episode_id("default", Episode("web-1", "cpu", 0, 10_000, 10_000, None, 90.0))
    '75dcacc220caf8bf'
    """
    text = "\0".join((site, episode.entity, episode.metric, str(episode.reported)))
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _incident(
    linked: Linked, site: Site, moves: Mapping[str, Sequence[Placement]], rules: Rules, now: int
) -> GroupedIncident:
    group = linked.bursts
    episodes = sorted((e for burst in group for e in burst.episodes), key=lambda e: e.order)
    first = episodes[0]
    ids = frozenset(episode_id(site.name, episode) for episode in episodes)
    spans = _spans(episodes, rules, now)
    reopened, end = spans[-1]
    came = times(episodes)
    calm = end + rules.patience(came) * rules.quiet if end is not None else None
    over = calm is not None and calm <= now
    acknowledgement = _acknowledgement(ids, site, reopened if len(spans) > 1 else first.reported)
    acknowledged = acknowledgement if acknowledgement and acknowledgement.active else None
    status: IncidentStatus = "reopened" if len(spans) > 1 else "open"
    if over:
        status = "resolved"
    elif acknowledged:
        status = "acknowledged"
    pairs = {(e.entity, judged_metric(e.metric)) for e in episodes}
    single = {pair for pair in pairs if pair[1] != JOINED} or pairs
    score = max(e.score for e in episodes)
    severity = severity_score(episodes)
    updates = [episodes[-1].reported]
    updates += [acknowledgement.time] if acknowledgement else []
    updates += [calm] if over and calm is not None else []
    series = affected_series(episodes, rules, now)
    onsets = {burst.entity: burst.onset for burst in reversed(group)}
    above, runs = site.topology.around(onsets.items())
    machines, cause = affected_machines(episodes, site.topology.workload), causes(group, above, runs, rules)
    changed = log_changes(episodes, site.new_lines, rules)
    start = min(e.since for e in episodes)
    done = earlier_changes([each.entity for each in machines], above, site.changes, start, first.reported)
    near = ((burst, move) for burst in group for move in moves.get(burst.entity, ()))
    went = {move.entity: move for burst, move in near if with_move(burst, move, rules)}
    sentence = title(machines, series, cause.candidates[0].entity, above, runs, changed, site.living)
    lasting = {(e.entity, judged_metric(e.metric)) for e in episodes if e.end(now, rules.longest) is None} & single
    incident = Incident(
        id=episode_id(site.name, first),
        opened=first.reported,
        site=site.name,
        status=status,
        severity=severity_of(severity),
        severity_score=severity,
        record_score=round(score),
        start=start,
        end=end if over else None,
        updated=max(updates),
        message=moved(went.values()) + sentence + in_the_log(changed) + after(done, start),
        machine_count=len(machines),
        series_count=len(single),
        open_series=0 if over else len(lasting),
        machines=machines[:MACHINES],
        metrics=affected_metrics(episodes)[:METRICS],
        series=series[:SERIES],
        candidates=cause.candidates,
        unknown_share=cause.unknown,
        log_changes=changed,
        changes=done,
        reopenings=len(spans) - 1,
        acknowledged_by=(acknowledged.by or None) if acknowledged else None,
        note=(acknowledged.note or None) if acknowledged else None,
    )
    most = max(came, *Counter(burst.entity for burst in group).values())
    last = end + rules.patience(most) * (rules.quiet + rules.reopen) if end is not None else None
    spoken = acknowledgement.time if acknowledgement else 0
    news = {e: site.drains.news_from(e, e.end(now, rules.longest)) for e in episodes}
    planned = frozenset(each for each, at in news.items() if at > now)
    later = min((news[each] for each in planned), default=END_OF_TIME)
    return GroupedIncident(
        incident, ids, tuple(episodes), False, rules.score, calm, last, spoken, linked.like,
        planned=planned, later=later,
    )  # fmt: skip


def _spans(episodes: Iterable[Episode], rules: Rules, now: int) -> list[tuple[int, int | None]]:
    """The times in which something was novel, each until a quiet time: (first report, end; ``None``: it lasts).

    What was reported after the quiet time does not belong to the time before, even if it is dated back to it: the
    incident had been resolved by then. The more often a series has come and gone, the longer is the quiet time.
    """
    spans: list[tuple[int, int | None]] = []
    comings = Comings()
    for episode in sorted(episodes, key=lambda e: e.order):
        end = episode.end(now, rules.longest)
        quiet = rules.patience(comings.most) * rules.quiet
        comings.add(episode)
        if spans and (spans[-1][1] is None or episode.reported <= spans[-1][1] + quiet):
            began, before = spans[-1]
            spans[-1] = began, None if before is None or end is None else max(before, end)
        else:
            spans.append((episode.reported, end))
    return spans


def _acknowledgement(ids: frozenset[str], site: Site, since: int) -> Acknowledgement | None:
    """The last acknowledgement of an incident or of a part of it since an event time, or that it was taken back."""
    own = [site.acknowledgements[name] for name in site.acknowledgements.keys() & ids]
    return max((a for a in own if a.time >= since), key=lambda a: (a.time, a.incident), default=None)

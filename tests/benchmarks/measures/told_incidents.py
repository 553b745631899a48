"""The incidents of recorded machines as the incidents job would make them, and when each of them is told.

Every machine is a site of its own, as it was judged. Nothing of Spark or Kafka is needed: the job's groups are a pure
function of the verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from models.numbers.arrays import Flags
from pipelines.contracts.records.novelty import ALARM_KINDS, JOINED
from pipelines.jobs.incidents.bursts import Rules
from pipelines.jobs.incidents.false_pages import Lately
from pipelines.jobs.incidents.grouping import GroupedIncident, Site, incidents
from pipelines.jobs.incidents.severity import is_notable
from pipelines.jobs.incidents.topology import Topology
from pipelines.jobs.incidents.verdicts import ROWS, episodes, parts
from tests.benchmarks.measures.news import NEWS, episodes_of, news_of
from tests.benchmarks.measures.told import Labelled, Told, told

_NOWHERE = Topology({})


@dataclass(frozen=True)
class ToldIncident:
    """An incident that people are told of.

    Attributes:
        entity: The machine.
        told: Event time at which it was enough to be written, epoch milliseconds.
        severity: In a word, at the end.
        score: Its `severity_score` at the end.
        news: Ends of its windows with news from then on, epoch milliseconds, in order.
    """

    entity: str
    told: int
    severity: str
    score: int
    news: tuple[int, ...]


def grouped_to_the_end(rows: pl.DataFrame, site: Site, rules: Rules) -> list[GroupedIncident]:
    """The incidents at the end of all time, told or not.

    Args:
        rows: As from `news_of`.
        site: What is known of the site.
        rules: The settings.
    """
    if rows.is_empty():
        return []
    now = int(rows["window_end"].to_numpy().max()) + 2 * rules.longest
    found = episodes_of(rows)
    began = Lately(min((each.since for each in found), default=None))
    return incidents(found, replace(site, lately=began), rules, now)


def told_incidents(verdicts: pl.DataFrame, rules: Rules) -> list[ToldIncident]:
    """The incidents of recorded machines, each a site of its own, in order of machine and time.

    Args:
        verdicts: As from `pipelines.evaluation.recorded.judge`.
        rules: The settings.
    """
    sites = verdicts.group_by("entity", maintain_order=True)
    made = [told for (entity,), own in sites for told in of_site(own, str(entity), rules)]
    return sorted(made, key=lambda each: (each.entity, each.told))


def as_one_site(verdicts: pl.DataFrame, rules: Rules) -> list[ToldIncident]:
    """The incidents of recorded machines that are watched side by side, as if all had begun at one time.

    No two machines show the same, as each metric has the name of its machine before its own: what is recorded of
    different services at different times has nothing in common.

    Args:
        verdicts: As for `told_incidents`.
        rules: The settings.

    Returns:
        The incidents, with the times of their machines.
    """
    first = dict(verdicts.group_by("entity").agg(pl.col("window_end").min()).iter_rows())
    shift = pl.col("entity").replace_strict(first, return_dtype=pl.Int64)
    times = [pl.col(name) - shift for name in ("window_start", "window_end", "since", "decided")]
    metric = pl.when(metric=JOINED).then("metric").otherwise(pl.concat_str("entity", "metric", separator="/"))
    made = of_site(verdicts.with_columns(*times, metric=metric), "", rules)
    back = (
        replace(each, told=each.told + first[each.entity], news=tuple(at + first[each.entity] for at in each.news))
        for each in made
    )
    return sorted(back, key=lambda each: (each.entity, each.told))


def of_site(verdicts: pl.DataFrame, name: str, rules: Rules) -> list[ToldIncident]:
    """The incidents of a site that people are told of, each with its first machine.

    Args:
        verdicts: Those on its machines.
        name: Its name.
        rules: The settings.
    """
    known = pl.max_horizontal("window_end", "decided").alias("known")
    rows = news_of(verdicts, name).with_columns(verdicts.filter(NEWS).select(known))
    found = grouped_to_the_end(rows, Site(name, _NOWHERE, {}, {}), rules)
    return [_told(each, rows, rules) for each in found if each.notable]


def _told(found: GroupedIncident, rows: pl.DataFrame, rules: Rules) -> ToldIncident:
    """When an incident was enough to be written: the first time at which its news until then are."""
    alarms = pl.col("kind").is_in(ALARM_KINDS)
    names = ("entity", "metric", "since")
    keys = pl.DataFrame(
        [(e.entity, e.metric, e.since) for e in found.episodes], {n: ROWS[n] for n in names}, orient="row"
    )
    own = rows.with_columns(since=pl.coalesce("since", "window_start")).join(keys, on=names, how="semi")
    times = np.unique(own.filter(alarms)["known"].to_numpy())
    low, high = 0, len(times) - 1
    while low < high:
        middle = (low + high) // 2
        before = own.filter(pl.col("known") <= int(times[middle]))
        enough = is_notable(episodes(parts(before.drop("known"))), rules, found.level)
        low, high = (low, middle) if enough else (middle + 1, high)
    said = np.unique(own.filter(alarms & (pl.col("known") >= int(times[low])))["window_end"].to_numpy())
    incident = found.incident
    at = int(times[low])
    later = tuple(int(end) for end in said if end >= at) or (at,)
    return ToldIncident(incident.machines[0].entity, at, incident.severity, incident.severity_score, later)


def flagged(series: Sequence[Labelled], some: Iterable[ToldIncident]) -> list[Flags]:
    """Of each series or machine, the rows at which an incident that is told has news."""
    by: dict[str, list[int]] = {each.name: [] for each in series}
    for each in some:
        by[each.entity] += each.news
    return [np.isin(each.time, by[each.name]) for each in series]


def measured(series: Sequence[Labelled], some: Sequence[ToldIncident]) -> Told:
    """What incidents tell of labelled spans.

    A span is found as by an alarm: if an incident has news in it and is told by then. One is false if it is told
    further than `tests.benchmarks.measures.told.NEAR` rows from every span; each one counts.

    Args:
        series: The series or machines.
        some: Their incidents.
    """
    found = told(series, flagged(series, some))
    near = {each.name: each for each in series}
    false = sum(not is_near(near[each.entity], each.told) for each in some if each.entity in near)
    months = sum(each.months for each in series)
    return Told(found.found, found.spans, false / months, found.delay)


def is_near(series: Labelled, at: int) -> bool:
    """Whether an instant lies in a span or near one; instants before the labels begin count as near."""
    row = int(np.searchsorted(series.time, at))
    return at < series.time[0] or bool(series.near[min(row, len(series.near) - 1)])

"""What another budget of false alarms would have told: which alarms and incidents go, and which come.

The detector's budget (`detector.false_alarms`) moves the bar of scores; that of the site (`incidents.false_pages`)
moves the severity from which novelties are an incident. Incidents are grouped anew from the stored verdicts, by the
function of the incidents job, with both budgets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import polars as pl

from engine.spec.duration import iso
from pipelines.contracts.records import Incident, Placement
from pipelines.contracts.settings import Settings
from pipelines.evaluation.rescoring import bars, clocks, rescored
from pipelines.evaluation.route_trial.trial import incident_labels
from pipelines.evaluation.rule_trial.changes import EXAMPLES, Changes, by_severity
from pipelines.evaluation.rule_trial.stored import Stored
from pipelines.evaluation.truth import Span
from pipelines.jobs.incidents.bursts import Rules
from pipelines.jobs.incidents.false_pages import KEPT, Lately
from pipelines.jobs.incidents.grouping import GroupedIncident, Site, as_promised, incidents
from pipelines.jobs.incidents.job import DEFAULT_SITE, rules
from pipelines.jobs.incidents.topology import Topology
from pipelines.jobs.incidents.verdicts import PARTS, ROWS, SITE, episodes, joined, newest, parts

BEFORE = KEPT
"""For so long before the time that is asked for, verdicts say how many incidents come by chance, milliseconds."""

_CALM = 6
"""Quiet windows after which an alarm that is added is over, as for the detector (`models.config`, ``calm`` and one)."""


class Budget(NamedTuple):
    """How many false alarms there may be.

    Attributes:
        false_alarms: `detector.false_alarms`, per series and month.
        false_pages: `incidents.false_pages`, per week for the site.
        score: `incidents.score`, the least severity.
    """

    false_alarms: float
    false_pages: float
    score: float

    @classmethod
    def of(cls, settings: Settings) -> Budget:
        """That of some settings."""
        return cls(settings.detector.false_alarms, settings.incidents.false_pages, settings.incidents.score)


@dataclass(frozen=True)
class BudgetTrial:
    """What another budget would have told in a time.

    Attributes:
        budgets: Today's and the one that is tried.
        start: First instant, epoch milliseconds.
        end: Last instant, exclusive.
        alarms: What becomes of the alarms of single metrics; ``None``: `false_alarms` is the same.
        stored: What was stored.
        grouped: The incidents of that time by today's budget, and by the other one.
        labels: What labels and the ground truth say of incidents, by id.
    """

    budgets: tuple[Budget, Budget]
    start: int
    end: int
    alarms: Changes | None
    stored: Stored
    grouped: tuple[Sequence[Incident], Sequence[Incident]]
    labels: Mapping[str, str]

    @property
    def removed(self) -> list[Incident]:
        """The incidents that would not have been written."""
        return _without(*self.grouped)

    @property
    def added(self) -> list[Incident]:
        """The incidents that would have been written beside those of today."""
        return _without(*reversed(self.grouped))

    @property
    def again(self) -> tuple[int, int]:
        """How many incidents were written in that time, and how many of them are found again from verdicts."""
        written = {it.id for it in self.stored.incidents if self.start <= it.opened < self.end}
        return len(written), len(written & {it.id for it in self.grouped[0]})

    def labelled(self, some: Sequence[Incident], label: str) -> int:
        """How many of some incidents have a label."""
        return sum(self.labels.get(it.id) == label for it in some)

    @property
    def examples(self) -> list[tuple[str, Incident]]:
        """Up to ten incidents that go or come: true ones first, then the most severe."""
        changed = [*(("removed", it) for it in self.removed), *(("added", it) for it in self.added)]
        changed.sort(key=lambda each: (self.labels.get(each[1].id) != "true", -each[1].severity_score))
        return changed[:EXAMPLES]

    def figures(self) -> dict[str, Any]:
        """All figures as JSON."""
        today, tried = (each._asdict() for each in self.budgets)
        written, again = self.again
        return {
            "today": today,
            "tried": tried,
            "from": iso(self.start),
            "until": iso(self.end),
            "stored": {
                "verdicts_from": iso(self.stored.verdicts_from),
                "incidents": written,
                "incidents_found_again": again,
            },
            "alarms": None if self.alarms is None else self.alarms.figures(),
            "incidents": len(self.grouped[0]),
            "removed": self._counted(self.removed),
            "added": self._counted(self.added),
            "examples": [self._example(*each) for each in self.examples],
        }

    def _counted(self, some: Sequence[Incident]) -> dict[str, Any]:
        labels = {"true_incidents": self.labelled(some, "true"), "false_incidents": self.labelled(some, "false_alarm")}
        return {"incidents": len(some), "severities": by_severity(some), **labels}

    def _example(self, outcome: str, it: Incident) -> dict[str, Any]:
        return {
            "outcome": outcome, "id": it.id, "opened": iso(it.opened), "severity": it.severity,
            "severity_score": it.severity_score, "message": it.message, "label": self.labels.get(it.id),
        }  # fmt: skip


def budget_trial(
    tried: Budget,
    start: int,
    end: int,
    stored: Stored,
    settings: Settings,
    placements: Mapping[str, Placement],
    spans: Sequence[Span],
) -> BudgetTrial:
    """Tries a budget.

    Args:
        tried: The budget.
        start: First instant, epoch milliseconds.
        end: Last instant, exclusive.
        stored: The verdicts of that time and of `BEFORE`, as from `stored_news`.
        settings: The settings that are in force.
        placements: The last placement of each machine.
        spans: What labels and the ground truth say.
    """
    today, detector, usual = Budget.of(settings), settings.detector, settings.window.size_ms
    before, alarms = stored.verdicts, None
    after = before
    if tried.false_alarms != today.false_alarms:
        pace = clocks(before, usual)
        after = rescored(before, bars(before, pace, detector), bars(before, pace, detector, tried.false_alarms))
        asked = (before["window_end"] > start) & (before["window_start"] < end)
        both = before.filter(asked), after.filter(asked)
        alarms = Changes.between(both, start, end, stored, spans)
    own = rules(settings.incidents)
    other = replace(own, false_pages=tried.false_pages, score=tried.score)
    name = settings.namespace.rstrip(".") or DEFAULT_SITE
    groups = _grouped(before, name, own, placements, end)
    again = groups if after is before else _grouped(_closed(before, after, usual), name, own, placements, end)
    found = [
        [it.incident for it in as_promised(some, site, rule) if it.notable and start <= it.incident.opened < end]
        for (some, site), rule in ((groups, own), (again, other))
    ]
    labels = incident_labels([*found[0], *found[1]], spans)
    return BudgetTrial((today, tried), start, end, alarms, stored, (found[0], found[1]), labels)


def _grouped(
    verdicts: pl.DataFrame, name: str, own: Rules, placements: Mapping[str, Placement], end: int
) -> tuple[list[GroupedIncident], Site]:
    """The incidents of verdicts at an instant, notable or not; and what is known of their site."""
    known = verdicts.with_columns(
        pl.lit(name).alias(SITE), level=pl.lit(None, pl.Int64),
        clock=pl.when(pl.col("values") > 0).then(pl.col("watched") / pl.col("values")),
        values=pl.col("values") + pl.col("inherited").fill_null(0.0),
        full_earliest=pl.lit(None, pl.Int64), full_latest=pl.lit(None, pl.Int64),
    )  # fmt: skip
    rows = newest(pl.DataFrame(schema=ROWS), known.select(pl.col(name).cast(kind) for name, kind in ROWS.items()))
    seen = joined(pl.DataFrame(schema=PARTS), parts(rows))
    every = episodes(seen)
    lately = Lately(min((each.since for each in every), default=None))
    site = Site(name, Topology(placements), {}, {}, lately)
    return incidents(every, site, own, end) if every else [], site


def _closed(before: pl.DataFrame, after: pl.DataFrame, usual: int) -> pl.DataFrame:
    """Verdicts, and an end for each alarm that was added where no incident was open."""
    added = after.filter(
        (before["kind"] == "normal") & (after["kind"] == "anomaly"), before["incident_state"].is_null()
    )
    at = [pl.col(name) + _CALM * usual for name in ("window_start", "window_end")]
    ends = added.with_columns(*at, kind=pl.lit("recovered"), incident_state=pl.lit("closed"), record_score=0.0)
    return pl.concat([after, ends])


def _without(some: Sequence[Incident], others: Sequence[Incident]) -> list[Incident]:
    """The incidents that are not among others: none of theirs has such a series that began at that time."""
    begins = {(each.entity, each.metric, each.since) for it in others for each in it.series}
    return [it for it in some if not any((e.entity, e.metric, e.since) in begins for e in it.series)]

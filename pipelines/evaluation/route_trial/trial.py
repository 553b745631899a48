"""Whom the stored incidents would have paged by other settings, against whom they page by those of today."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from engine.spec.duration import iso
from pipelines.contracts.records import Incident
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.evaluation.route_trial.stored import StoredIncidents
from pipelines.evaluation.rule_trial.changes import EXAMPLES, by_severity, labelled
from pipelines.evaluation.truth import Span
from pipelines.notify.paging import Page, pages

OUTCOMES = ("removed", "added", "others", "later", "same")
"""What becomes of an incident: it pages nobody any more; somebody, as it did not before; other channels; the same ones
at another time; the same ones then."""

_OVER = "resolved"


@dataclass(frozen=True)
class Paged:
    """What becomes of one incident.

    Attributes:
        incident: Its last revision.
        outcome: One of `OUTCOMES`.
        label: ``true`` or ``false_alarm`` if a label or the ground truth says so.
        channels: When each channel is first told of it, epoch milliseconds, by today's settings and by the others.
    """

    incident: Incident
    outcome: str
    label: str | None
    channels: tuple[Mapping[str, int], Mapping[str, int]]


@dataclass(frozen=True)
class RouteTrial:
    """Whom the incidents of a time page by two settings.

    Attributes:
        start: First instant, epoch milliseconds.
        end: Last instant, exclusive.
        stored: What is stored of that time.
        paged: What becomes of each incident, in the order in which they opened.
        messages: For each channel how many messages it gets by today's settings and by the others.
    """

    start: int
    end: int
    stored: StoredIncidents
    paged: Sequence[Paged]
    messages: Mapping[str, tuple[int, int]]

    def of(self, outcome: str, label: str | None = None) -> list[Incident]:
        """The incidents with an outcome, and perhaps with a label."""
        return [each.incident for each in self.paged if each.outcome == outcome and label in (None, each.label)]

    def nobody(self, which: int) -> list[Incident]:
        """The incidents of which nobody is told by today's settings (0), or by the others (1)."""
        return [each.incident for each in self.paged if not each.channels[which]]

    @property
    def examples(self) -> list[Paged]:
        """Up to ten incidents that page others: true ones first, then those that page nobody, then the most severe."""
        changed = [each for each in self.paged if each.outcome != "same"]
        changed.sort(key=lambda it: (it.label != "true", OUTCOMES.index(it.outcome), -it.incident.severity_score))
        return changed[:EXAMPLES]

    def figures(self) -> dict[str, Any]:
        """All figures as JSON."""
        known = self.stored.known_from
        return {
            "from": iso(self.start),
            "until": iso(self.end),
            "stored": {"revisions_from": None if known is None else iso(known), "last_only": self.stored.bare},
            "incidents": len(self.paged),
            **{outcome: self._counted(outcome) for outcome in OUTCOMES[:-1]},
            "nobody": {word: _by_severity(self.nobody(at)) for at, word in enumerate(("today", "tried"))},
            "channels": {
                name: {"today": self._told(name, 0), "tried": self._told(name, 1)} for name in sorted(self.messages)
            },
            "examples": [_example(each) for each in self.examples],
        }

    def _counted(self, outcome: str) -> dict[str, Any]:
        found = self.of(outcome)
        labels = {f"{word}_incidents": len(self.of(outcome, label)) for word, label in _LABELS.items()}
        return {"incidents": len(found), "severities": by_severity(found), **labels}

    def _told(self, channel: str, which: int) -> dict[str, int]:
        told = sum(channel in each.channels[which] for each in self.paged)
        return {"incidents": told, "messages": self.messages[channel][which]}


_LABELS = {"true": "true", "false": "false_alarm"}


def route_trial(
    today: NotifySettings, tried: NotifySettings, start: int, end: int, stored: StoredIncidents, spans: Sequence[Span]
) -> RouteTrial:
    """Tries settings of notifications on the incidents of a time.

    Args:
        today: The settings that are in force.
        tried: The others.
        start: First instant, epoch milliseconds.
        end: Last instant, exclusive.
        stored: The incidents.
        spans: What labels and the ground truth say.
    """
    both = [pages(stored.revisions, settings, end) for settings in (today, tried)]
    firsts = [_first_told(each) for each in both]
    incidents = sorted(stored.last.values(), key=lambda it: (it.opened, it.id))
    labels = incident_labels(incidents, spans)
    found = []
    for incident in incidents:
        one, other = (each.get(incident.id, {}) for each in firsts)
        found.append(Paged(incident, _outcome(one, other), labels.get(incident.id), (one, other)))
    names = sorted({*today.channels, *tried.channels})
    counts = [{name: sum(page.channel == name for page in each) for name in names} for each in both]
    return RouteTrial(start, end, stored, found, {name: (counts[0][name], counts[1][name]) for name in names})


def incident_labels(incidents: Sequence[Incident], spans: Sequence[Span]) -> dict[str, str]:
    """What is known of incidents: ``true`` if one of its series was right, else ``false_alarm`` if one was not."""
    rows = [
        (incident.id, each.entity, each.metric, each.since, each.end or incident.updated)
        for incident in incidents
        for each in incident.series
    ]
    kinds = {"id": pl.String, "entity": pl.String, "metric": pl.String, "low": pl.Int64, "high": pl.Int64}
    times = pl.DataFrame(rows, kinds, orient="row")
    said = times.with_columns(label=labelled(times, spans)).drop_nulls("label")
    return dict(said.group_by("id").agg(pl.col("label").max()).rows())


def _first_told(told: Iterable[Page]) -> dict[str, dict[str, int]]:
    """For each incident when each channel was first told of it, other than that it is over."""
    found: dict[str, dict[str, int]] = {}
    for page in told:
        for news in page.news:
            if news.state != _OVER or news.before is None:
                found.setdefault(news.incident.id, {}).setdefault(page.channel, page.at)
    return found


def _outcome(today: Mapping[str, int], tried: Mapping[str, int]) -> str:
    if today == tried:
        return "same"
    if today.keys() == tried.keys():
        return "later"
    return "removed" if not tried else "added" if not today else "others"


def _by_severity(incidents: Sequence[Incident]) -> dict[str, Any]:
    return {"incidents": len(incidents), "severities": by_severity(incidents)}


def _example(each: Paged) -> dict[str, Any]:
    today, tried = ({name: iso(at) for name, at in sorted(one.items())} for one in each.channels)
    it = each.incident
    return {
        "outcome": each.outcome, "id": it.id, "opened": iso(it.opened), "severity": it.severity,
        "message": it.message, "label": each.label, "today": today, "tried": tried,
    }  # fmt: skip

"""Compares verdicts with a ground truth of incidents: what was found, how soon, under which kind; and false alarms.

An *alert* is a run of verdicts of one series that are news; `CALM` windows without news end it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from datagen.groundtruth import GroundTruth
from pipelines.contracts.records.novelty import ALARM_KINDS, JOINED
from pipelines.evaluation.truth import CALM, CHANGED

SETTLE = 60
"""The number of windows within which the detector should accept a new normal."""

MONTH = 30 * 86_400_000


@dataclass(frozen=True)
class IncidentOutcome:
    """How the detector reported one incident on one machine.

    Args:
        truth: The incident.
        found: True if a metric that shows it, or the joined verdict, was news during the incident; for a change of
            state, within `SETTLE` windows of its start.
        delay: Number of windows from its start to the first news; -1 if there is none.
        called_change: True if it was called a change of state by `SETTLE` windows after its start (change) or end.
        alerts: Number of alerts, until a day after the incident, of the metric that has most.
        accepted: Number of windows from its start to the last news in that time; for changes of state.
    """

    truth: GroundTruth
    found: bool
    delay: int
    called_change: bool
    alerts: int
    accepted: int


def outcomes(verdicts: pl.DataFrame, truths: Sequence[GroundTruth], step: int) -> list[IncidentOutcome]:
    """How the detector reported each incident.

    Args:
        verdicts: Columns ``entity``, ``metric``, ``window_end``, ``kind``; verdicts that are no news may be missing.
        truths: The incidents; those of log lines are left out.
        step: Time between two windows, milliseconds.
    """
    news = verdicts.filter(pl.col("kind").is_in(ALARM_KINDS))
    by_entity = {str(entity): part for (entity,), part in news.group_by("entity")}
    empty = news.clear()
    return [_outcome(by_entity.get(t.entity, empty), t, step) for t in truths if t.metrics != ["logs"]]


def _outcome(news: pl.DataFrame, truth: GroundTruth, step: int) -> IncidentOutcome:
    change = truth.cls == "state_change"
    until = truth.start + SETTLE * step if change else truth.end + CALM * step
    own = news.filter(pl.col("metric").is_in([*truth.metrics, JOINED]), pl.col("window_end") > truth.start)
    during = own.filter(pl.col("window_end") <= until)
    called = own.filter(pl.col("window_end") <= max(until, truth.end + SETTLE * step), pl.col("kind").is_in(CHANGED))
    day = own.filter(pl.col("window_end") <= max(until, truth.end) + 86_400_000, pl.col("metric") != JOINED)
    first = during["window_end"].sort().to_list()[:1]
    last = day["window_end"].sort().to_list()[-1:]
    return IncidentOutcome(
        truth=truth,
        found=during.height > 0,
        delay=-(-(first[0] - truth.start) // step) if first else -1,
        called_change=called.height > 0,
        alerts=max((_runs(part["window_end"].to_numpy(), step) for _, part in day.group_by("metric")), default=0),
        accepted=-(-(last[0] - truth.start) // step) if last else 0,
    )


def _runs(times: np.ndarray, step: int) -> int:
    return 1 + int((np.diff(np.sort(times)) > CALM * step).sum())


def false_alarms(verdicts: pl.DataFrame, truths: Sequence[GroundTruth], step: int, series: int, span: int) -> float:
    """The rate of alerts that no incident of their machine explains, per series and month of 30 days.

    Args:
        verdicts: As in `outcomes`; joined verdicts are left out.
        truths: All incidents. An anomaly explains news until `SETTLE` windows after its end, a change of state until a
            day after it.
        step: Time between two windows, milliseconds.
        series: Number of judged series.
        span: Judged time, milliseconds.
    """
    news = verdicts.filter(pl.col("kind").is_in(ALARM_KINDS), pl.col("metric") != JOINED)
    after = {truth.id: 86_400_000 if truth.cls == "state_change" else SETTLE * step for truth in truths}
    spans: dict[str, list[tuple[int, int]]] = {}
    for truth in truths:
        spans.setdefault(truth.entity, []).append((truth.start, truth.end + after[truth.id]))
    alarms = 0
    for (entity, _metric), part in news.group_by("entity", "metric"):
        times = np.sort(part["window_end"].to_numpy())
        begins = times[np.append(True, np.diff(times) > CALM * step)]
        explained = np.zeros(len(begins), dtype=bool)
        for first, last in spans.get(str(entity), []):
            explained |= (begins > first) & (begins <= last)
        alarms += int((~explained).sum())
    return alarms / (series * span / MONTH)


def balanced_accuracy(outcomes: Sequence[IncidentOutcome]) -> float:
    """The mean of two shares among found incidents: anomalies called so, and changes of state called so."""
    found = [outcome for outcome in outcomes if outcome.found]
    shares = []
    for change in (False, True):
        own = [outcome.called_change == change for outcome in found if (outcome.truth.cls == "state_change") == change]
        shares.append(float(np.mean(own)) if own else float("nan"))
    return float(np.mean(shares))

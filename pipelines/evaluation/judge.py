"""Compares verdicts with labelled spans: what was found and how soon, false alarms, and how well scores rank.

An *alert* is a run of verdicts of one series that are news, or reach a score; `CALM` windows without any end it. A span
is *found* if a verdict of a metric that shows it overlaps it. A span *explains* all alerts of its machine
that overlap it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from pipelines.contracts.records.novelty import ALARM_KINDS, PEERS
from pipelines.evaluation.truth import CALM, CHANGED, EVERY, Span
from pipelines.evaluation.vus import auc_pr, period, vus_pr

THRESHOLDS = (*range(5, 100, 5), 98)
DAY = 86_400_000


@dataclass(frozen=True)
class AlertLevel:
    """The result for one definition of an alert, such as "news" or "score from 50".

    Args:
        delays: For each span the number of windows from its start to the first verdict in it; ``None`` if not found.
        alerts: Number of alerts of all series, without joined verdicts.
        false_alarms: Number of alerts that no span explains.
        refuted: Number of alerts that an operator called a false alarm.
        series_days: Number of judged days, summed over all series.
    """

    delays: list[int | None]
    alerts: int
    false_alarms: int
    refuted: int
    series_days: float

    def figures(self) -> dict[str, float | None]:
        """The figures as JSON: shares, median delay in windows, false alarms per series and day."""
        delays = [delay for delay in self.delays if delay is not None]
        return {
            "found": len(delays) / len(self.delays) if self.delays else None,
            "median_delay_windows": float(median(delays)) if delays else None,
            "alerts": self.alerts,
            "alerts_explained": 1 - self.false_alarms / self.alerts if self.alerts else None,
            "false_alarms_per_series_day": self.false_alarms / self.series_days if self.series_days else None,
            "alerts_called_false_by_operators": self.refuted,
        }


@dataclass(frozen=True)
class JudgedVerdicts:
    """The results of an evaluation.

    Args:
        spans: The spans within the judged time in which something was wrong.
        news: The result if the kinds of verdict that call an operator are alerts.
        levels: The results if scores from a threshold on are alerts, for each of `THRESHOLDS`.
        ranking: VUS-PR and AUC-PR of each series with a span, by ``entity metric``.
        called: For each found span: (it is a change of state, the verdicts call it a change of state).
    """

    spans: list[Span]
    news: AlertLevel
    levels: dict[int, AlertLevel]
    ranking: dict[str, dict[str, float]] = field(default_factory=dict)
    called: list[tuple[bool, bool]] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """All results as JSON."""
        each = list(self.ranking.values())
        means = {name: float(np.mean([series[name] for series in each])) for name in ("vus_pr", "auc_pr") if each}
        return {
            "spans": len(self.spans),
            "news": self.news.figures(),
            "levels": {str(score): level.figures() for score, level in self.levels.items()},
            "ranking": {"mean": means, "series": self.ranking},
            "called": {
                "anomalies called anomalies": _share(not called for change, called in self.called if not change),
                "changes called changes": _share(called for change, called in self.called if change),
            },
        }


@dataclass(frozen=True)
class JudgedTimes:
    """The time in which series were judged, where the stored verdicts do not tell it.

    Args:
        series: Columns ``entity``, ``metric``, and ``first`` and ``last``, the bounds of the time, epoch milliseconds.
        elsewhere: The same of machines without any stored verdict; ``None``: they were not judged.
    """

    series: pl.DataFrame
    elsewhere: tuple[int, int] | None = None

    @classmethod
    def of(cls, verdicts: pl.DataFrame, *, sparse: bool = False) -> JudgedTimes:
        """From verdicts: of each series the time of its own; if quiet windows are missing, that of all together."""
        times = {"first": pl.col("window_start").min(), "last": pl.col("window_end").max()}
        if not sparse:
            return cls(verdicts.group_by("entity", "metric").agg(**times))
        first, last = verdicts.select(**times).row(0)
        series = verdicts.select("entity", "metric").unique().with_columns(first=pl.lit(first), last=pl.lit(last))
        return cls(series, None if first is None else (first, last))


def judge(verdicts: pl.DataFrame, spans: Sequence[Span], times: JudgedTimes | None = None) -> JudgedVerdicts:
    """Compares verdicts with labelled spans.

    Args:
        verdicts: Columns ``entity``, ``metric``, ``window_start``, ``window_end``, ``actual``, ``record_score`` and
            ``kind``; one row per series and window.
        spans: The labelled spans; those that do not overlap the judged time of their machine are left out.
        times: The judged time, if the verdicts do not tell it.
    """
    case = _Case.of(verdicts, spans, times)
    return JudgedVerdicts(
        spans=case.wrong,
        news=case.level(_NEWS),
        levels={score: case.level(pl.col("record_score") >= score) for score in THRESHOLDS},
        ranking=_ranking(case.single, case.wrong),
        called=_called(case.verdicts, case.wrong, case.step),
    )


def judge_news(verdicts: pl.DataFrame, spans: Sequence[Span], times: JudgedTimes | None = None) -> AlertLevel:
    """The part `JudgedVerdicts.news` of what `judge` returns, which takes a small part of its time."""
    return _Case.of(verdicts, spans, times).level(_NEWS)


_NEWS = pl.col("kind").is_in(ALARM_KINDS)


@dataclass(frozen=True)
class _Case:
    """Verdicts with the spans that concern them.

    Args:
        verdicts: The verdicts, in order of series and time.
        spans: The spans that overlap the judged time of their machine.
        step: Time between two windows, milliseconds.
        days: Number of judged days, summed over all series.
    """

    verdicts: pl.DataFrame
    spans: list[Span]
    step: int
    days: float

    @classmethod
    def of(cls, verdicts: pl.DataFrame, spans: Sequence[Span], times: JudgedTimes | None = None) -> _Case:
        times = times or JudgedTimes.of(verdicts)
        verdicts = verdicts.sort("entity", "metric", "window_end", maintain_order=True)
        reach = times.series.group_by("entity").agg(pl.col("first").min(), pl.col("last").max())
        known = {str(entity): (first, last) for entity, first, last in reach.rows()}
        never = times.elsewhere or (0, -1)
        within = [
            s for s in spans if s.start <= known.get(s.entity, never)[1] and s.end >= known.get(s.entity, never)[0]
        ]
        single = times.series.filter(pl.col("metric") != EVERY)
        gaps = verdicts.filter(pl.col("metric") != EVERY).group_by("entity", "metric")
        steps = gaps.agg(step=pl.col("window_end").diff().median())["step"].drop_nulls()
        step = max(1, int(steps.median() or 1))  # type: ignore[arg-type]
        return cls(verdicts, within, step, float((single["last"] - single["first"]).sum()) / DAY)

    @property
    def single(self) -> pl.DataFrame:
        """The verdicts on single series, without joined verdicts."""
        return self.verdicts.filter(pl.col("metric") != EVERY)

    @property
    def wrong(self) -> list[Span]:
        """The spans in which something was wrong."""
        return [span for span in self.spans if span.wrong]

    def level(self, chosen: pl.Expr) -> AlertLevel:
        """The result if the chosen verdicts are alerts."""
        wrong, alerting = self.wrong, self.verdicts.filter(chosen)
        found = [_delay(alerting, span, self.step) for span in wrong]
        alerts = _alerts(alerting.filter(pl.col("metric") != EVERY), self.step)
        explained = [_explained(alert, wrong) for alert in alerts]
        refuted = [_explained(alert, [s for s in self.spans if not s.wrong]) for alert in alerts]
        return AlertLevel(found, len(alerts), explained.count(False), refuted.count(True), self.days)


def _within(span: Span, after: int = 0) -> pl.Expr:
    """An expression: verdicts of metrics that show a span, on windows that overlap it or the time after it.

    A window excludes its end. One that ends where it begins is an instant, as of a file of values.

    Args:
        span: The span.
        after: Length of the time after it, milliseconds.
    """
    begun = (pl.col("window_end") > span.start) | (pl.col("window_start") >= span.start)
    touches = begun & (pl.col("window_start") <= span.end + after)
    return (pl.col("entity") == span.entity) & touches & _shows(span)


def _shows(span: Span) -> pl.Expr:
    return (
        pl.lit(True)
        if EVERY in span.metrics
        else pl.col("metric").is_in([*span.metrics, *(PEERS + name for name in span.metrics), EVERY])
    )


def _delay(alerting: pl.DataFrame, span: Span, step: int) -> int | None:
    first = alerting.filter(_within(span))["window_end"].min()
    return None if first is None else max(0, -(-(int(first) - span.start) // step))  # type: ignore[arg-type]


def _alerts(alerting: pl.DataFrame, step: int) -> list[tuple[str, int, int]]:
    """(machine, start, end) of each alert, in epoch milliseconds."""
    begins = (pl.col("window_end").diff() > CALM * step).fill_null(True).over("entity", "metric")
    runs = alerting.with_columns(run=begins.cum_sum().over("entity", "metric"))
    spans = runs.group_by("entity", "metric", "run", maintain_order=True).agg(
        first=pl.col("window_start").min(), last=pl.col("window_end").max()
    )
    return spans.select("entity", "first", "last").rows()


def _explained(alert: tuple[str, int, int], spans: Sequence[Span]) -> bool:
    entity, first, last = alert
    return any(s.entity == entity and first <= s.end and (last > s.start or first >= s.start) for s in spans)


def _ranking(single: pl.DataFrame, spans: Sequence[Span]) -> dict[str, dict[str, float]]:
    ranking = {}
    for (entity, metric), part in single.group_by("entity", "metric", maintain_order=True):
        start, end = part["window_start"].to_numpy(), part["window_end"].to_numpy()
        labels = np.zeros(part.height)
        for span in spans:
            if span.entity == entity and span.shows_in(str(metric)):
                labels[((end > span.start) | (start >= span.start)) & (start <= span.end)] = 1.0
        if 0 < labels.sum() < len(labels):
            scores = part["record_score"].to_numpy()
            values = part["actual"].fill_null(strategy="forward").fill_null(0.0).to_numpy()
            areas = {"vus_pr": vus_pr(labels, scores, period(values)), "auc_pr": auc_pr(labels, scores)}
            ranking[f"{entity} {metric}"] = areas
    return ranking


def _called(verdicts: pl.DataFrame, spans: Sequence[Span], step: int) -> list[tuple[bool, bool]]:
    """For each span that was news: (it is a change of state, the verdicts call it a change of state)."""
    news, called = verdicts.filter(pl.col("kind").is_in(ALARM_KINDS)), []
    for span in spans:
        own = news.filter(_within(span, CALM * step))
        if own.height:
            called.append((span.change, own["kind"].is_in(CHANGED).any()))
    return called


def _share(flags: Any) -> float | None:
    values = list(flags)
    return float(np.mean(values)) if values else None

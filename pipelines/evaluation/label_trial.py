"""What labels would have removed and added: evidence that counts less or more, or incidents that are accepted.

`false_alarm` and `true` change what the evidence of a series counts, as `models.series.feedback` says, with the labels
that were given and with one more. Scores are weighed by it, and compared with the bar of the series. `expected_change`
and `new_normal` end the incident that is open then; what the series is compared with afterwards is in no verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from engine.spec.duration import iso
from models.model_config import ModelConfig
from models.numbers.arrays import Array, Columns, Flags, Rows
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.globs import matches
from pipelines.contracts.records import Label
from pipelines.contracts.records.label import WEIGHED, LabelVerdict
from pipelines.contracts.records.novelty import JOINED, PEERS, UNTIL_FULL, is_derived
from pipelines.contracts.settings import DetectorSettings, Settings
from pipelines.evaluation.comparison.verdicts import SERIES
from pipelines.evaluation.rescoring import bars, clocks, rescored
from pipelines.evaluation.rule_trial.changes import Changes, alarms_between
from pipelines.evaluation.rule_trial.news import stored_news
from pipelines.evaluation.rule_trial.stored import LABEL, Stored, incidents_of
from pipelines.evaluation.truth import Span
from pipelines.query.incidents import named

_LEAST = 20.0
"""Windows of a lower score are no alarm however often their evidence counts: a label doubles it at the most."""


@dataclass(frozen=True)
class LabelTried:
    """A label that is tried on some series.

    Attributes:
        verdict: What the novelty was.
        entity: The machines, as a glob.
        metric: The metrics, as a glob; `_machine`: of `WEIGHED`, the joined verdict; of others, all metrics.
        at: When it takes effect, epoch milliseconds: after the windows that had ended by then.
    """

    verdict: LabelVerdict
    entity: str
    metric: str
    at: int

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics whose verdicts it changes, as globs: those of a metric also beside its peers."""
        return ("*",) if self.metric == JOINED and self.verdict not in WEIGHED else _concerned(self.metric)

    def of(self, verdicts: pl.DataFrame) -> Flags:
        """Flags the verdicts that it changes, shape (n,)."""
        names = verdicts["metric"].cast(pl.String)
        own = np.any([matches(glob, names) for glob in self.metrics], axis=0)
        if not self.metric.endswith(UNTIL_FULL):  # that something will be full is no matter of its level
            own &= ~names.str.ends_with(UNTIL_FULL).to_numpy()
        return np.asarray(matches(self.entity, verdicts["entity"]) & own)


@dataclass(frozen=True)
class LabelTrial(Changes):
    """What labels would have done in a time.

    Attributes:
        labels: The labels.
        shortened: The number of alarms that would have ended earlier.
        undecided: The number of alarms of these series that only a replay can judge: those after a level was accepted.
    """

    labels: Sequence[LabelTried]
    shortened: int
    undecided: int

    def figures(self) -> dict[str, Any]:
        """All figures as JSON."""
        labels = [
            {"verdict": it.verdict, "host.name": it.entity, "metric": it.metric, "in_effect": iso(it.at)}
            for it in self.labels
        ]
        found = super().figures()
        found["removed"]["alarms_shortened"] = self.shortened
        return {"labels": labels, **found, "undecided_alarms": self.undecided}


def tried(
    label: Label, incident: str, start: int, end: int, at: int | None, settings: Settings
) -> tuple[list[LabelTried], Stored]:
    """What a label is tried on, and the stored verdicts on it.

    Args:
        label: The label, with globs.
        incident: Id of an incident, whose series are meant instead; empty: those of the globs.
        start: First instant, epoch milliseconds.
        end: Last instant, exclusive.
        at: When it takes effect, epoch milliseconds; ``None``: at the start, or when the incident was first reported.
        settings: The settings, with the servers' addresses filled in.

    Raises:
        NewnormalError: ``INCIDENT_UNKNOWN``; those of `stored_news`.
        elasticsearch.ApiError: Elasticsearch refuses; a `TransportError` if it does not answer.
    """
    if incident:
        with elasticsearch_client(settings.elasticsearch.url or "", request_timeout=60) as client:
            known = named(incidents_of(client, start, end, settings, LABEL), incident)
        when, series = known.opened if at is None else at, {(each.entity, each.metric) for each in known.series}
    else:
        when, series = start if at is None else at, {(label.entity, label.metric)}
    asked = [LabelTried(label.verdict, entity, metric, when) for entity, metric in sorted(series)]
    names = [(each.entity, metric) for each in asked for metric in each.metrics]
    score = _LEAST if label.verdict == "true" else None
    return asked, stored_news(settings, start, end, LABEL, names, score)


def label_trial(
    labels: Sequence[LabelTried],
    start: int,
    end: int,
    stored: Stored,
    given: Iterable[Label],
    spans: Sequence[Span],
    settings: DetectorSettings,
    usual: int,
) -> LabelTrial:
    """Tries labels, all of one verdict.

    Args:
        labels: The labels; a series that several match has each.
        start: First instant, epoch milliseconds.
        end: Last instant, exclusive.
        stored: The verdicts on their series, as from `stored_news`.
        given: The labels that were given.
        spans: What labels and the ground truth say.
        settings: The settings of the detector.
        usual: Usual milliseconds between two values of a series of which that is not stored.
    """
    before = stored.verdicts
    if labels[0].verdict in WEIGHED:
        pace = clocks(before, usual)
        own = bars(before, pace, settings)
        factor = _factor(before, np.where(pace > 0, pace, usual), labels, [*given])
        forecasts = before["metric"].cast(pl.String).str.ends_with(UNTIL_FULL)  # these have no score of evidence
        after = rescored(before, own, own, np.where(forecasts, 1.0, factor))
        later = np.any([each.of(before) & (before["window_end"] > each.at).to_numpy() for each in labels], axis=0)
        left = before.filter(forecasts & pl.Series(later))
        undecided = alarms_between(left, left).height if left.height else 0
    else:
        after, undecided = _accepted(before, labels)
    found = Changes.between((before, after), start, end, stored, spans)
    kept = (found.alarms["outcome"] == "moved") | (found.alarms["outcome"] == "changed")
    shortened = found.alarms.filter(kept, pl.col("windows1") < pl.col("windows0")).height
    return LabelTrial(**vars(found), labels=labels, shortened=shortened, undecided=undecided)


def _concerned(metric: str) -> tuple[str, ...]:
    """The metrics of the verdicts that a label on one concerns: itself, also beside its peers."""
    return (metric,) if metric == JOINED or is_derived(metric) else (metric, PEERS + metric)


def _factor(verdicts: pl.DataFrame, pace: Array, labels: Sequence[LabelTried], given: Sequence[Label]) -> Array:
    """What the evidence of each verdict counts with the labels, in proportion to without them, shape (n,)."""
    ends = verdicts["window_end"].to_numpy()
    said: list[tuple[bool, bool, Flags, int]] = []
    for each in given:
        if each.verdict in WEIGHED:
            own = (verdicts["entity"] == each.entity) & verdicts["metric"].is_in(_concerned(each.metric))
            said.append((False, each.verdict == "true", own.to_numpy(), each.effective_from))
    said += [(True, label.verdict == "true", label.of(verdicts), label.at) for label in labels]
    counts: dict[bool, dict[str, Array]] = {
        is_tried: {name: np.zeros(len(ends)) for name in ("true", "false")} for is_tried in (False, True)
    }
    feedback = ModelConfig().feedback
    for is_tried, true, concerned, at in said:
        kept = concerned & (ends > at)
        left = np.where(kept, (1 - feedback.forget) ** (np.maximum(ends - at, 0) / pace), 0.0)
        for which in {True, is_tried}:
            counts[which]["true" if true else "false"] += left
    both: list[Columns] = [{**counts[which]} for which in (True, False)]
    with_them, without = (feedback.worth(Rows(columns, np.arange(len(ends)), "")) for columns in both)
    return with_them / without


def _accepted(verdicts: pl.DataFrame, labels: Sequence[LabelTried]) -> tuple[pl.DataFrame, int]:
    """The verdicts without the rest of the incidents that are open when a label accepts them; and later alarms.

    The first window after the label says that the level is accepted, as the detector has it.
    """
    rows = verdicts.with_row_index("row")
    over, accepted = np.zeros((2, verdicts.height), np.bool_)
    later = pl.Series(np.zeros(verdicts.height, np.bool_))
    for label in labels:
        own = rows.filter(pl.Series(label.of(verdicts)), pl.col("since").is_not_null() | (pl.col("kind") != "normal"))
        until = own.filter(pl.col("window_end") <= label.at).sort("window_end").group_by(SERIES).last()
        lasting = until.filter(incident_state="open").select(*SERIES, onset="since")
        after = own.filter(pl.col("window_end") > label.at).join(lasting, on=SERIES, how="left")
        rest = after.filter(pl.col("since") == pl.col("onset"))
        over[rest["row"].to_numpy()] = True
        accepted[rest.sort("window_end").group_by(SERIES).first()["row"].to_numpy()] = True
        known = after.filter(pl.col("onset").is_not_null(), (pl.col("since") != pl.col("onset")).fill_null(value=True))
        later |= rows["row"].is_in(known["row"].implode())
    first, quiet = pl.Series(accepted), pl.Series(over & ~accepted)
    result = verdicts.with_columns(
        kind=pl.when(first).then(pl.lit("new_normal")).when(quiet).then(pl.lit("normal")).otherwise("kind"),
        since=pl.when(quiet).then(None).otherwise("since"),
        incident_state=pl.when(first).then(pl.lit("closed")).when(quiet).then(None).otherwise("incident_state"),
    )
    left = result.filter(later)
    return result, alarms_between(left, left).height

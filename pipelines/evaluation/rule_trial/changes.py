"""What goes and what comes of stored alarms if verdicts are others: counts, labels, incidents, examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from engine.spec.duration import iso
from pipelines.contracts.records import Incident
from pipelines.contracts.records.novelty import ALARM_KINDS, PEERS
from pipelines.contracts.records.severity import SEVERITIES
from pipelines.evaluation.comparison.alarms import matched
from pipelines.evaluation.comparison.common import step_of
from pipelines.evaluation.comparison.verdicts import SERIES, WINDOW
from pipelines.evaluation.rule_trial.stored import Stored
from pipelines.evaluation.truth import EVERY, Span
from pipelines.jobs.detectors.severity import graded

EXAMPLES = 10
_DAY = 86_400_000
_UNKNOWN = "unknown"
"""The severity of an added alarm of which only the value is stored, not the score."""


@dataclass(frozen=True)
class Changes:
    """What something would have changed in a time.

    Attributes:
        start: First instant, epoch milliseconds.
        end: Last instant, exclusive.
        stored: What was stored of that time.
        windows: The number of windows that are alarms without it but not with it, and the other way round.
        alarms: The alarms, as `matched` returns them (``gone``: it removes it, ``new``: it adds it), with the column
            ``label``: ``true`` or ``false_alarm`` if a label or the ground truth says so.
        incidents: The incidents of which it removes every series, and those of which it removes some.
        examples: Up to ten alarms that are removed or added, each with its strongest window.
        changed: Each window that is an alarm without it or with it, but not both: the columns `WINDOW` and
            ``outcome``, ``removed`` or ``added``.
    """

    start: int
    end: int
    stored: Stored
    windows: tuple[int, int]
    alarms: pl.DataFrame
    incidents: tuple[Sequence[Incident], Sequence[Incident]]
    examples: Sequence[dict[str, Any]]
    changed: pl.DataFrame

    @staticmethod
    def between(
        verdicts: tuple[pl.DataFrame, pl.DataFrame],
        start: int,
        end: int,
        stored: Stored,
        spans: Sequence[Span],
    ) -> Changes:
        """What differs between the same verdicts without something and with it.

        Args:
            verdicts: Both, in the same order, with the columns `SCHEMA`.
            start: First instant, epoch milliseconds.
            end: Last instant, exclusive.
            stored: What was stored of that time.
            spans: What labels and the ground truth say.
        """
        first, second = verdicts
        was, is_ = (each["kind"].is_in(ALARM_KINDS) for each in verdicts)
        alarms = alarms_between(first, second)
        low, high = pl.coalesce("from0", "from1"), pl.coalesce("to0", "to1")
        alarms = alarms.with_columns(label=labelled(alarms.with_columns(low=low, high=high), spans))
        outcome = pl.when(was & ~is_).then(pl.lit("removed")).when(is_ & ~was).then(pl.lit("added"))
        changed = first.select(*WINDOW, outcome=outcome).drop_nulls("outcome")
        return Changes(
            start, end, stored, (int((was & ~is_).sum()), int((is_ & ~was).sum())), alarms,
            _incidents(stored.incidents, first, was, is_), examples(alarms, first, stored.incidents), changed,
        )  # fmt: skip

    def count(self, outcome: str, label: str | None = None) -> int:
        """The number of alarms with an outcome, and perhaps with a label."""
        known = pl.col("label") == label if label else pl.lit(value=True)
        return self.alarms.filter(pl.col("outcome") == outcome, known).height

    def severities(self, outcome: str) -> dict[str, int]:
        """The number of removed (``gone``) or added (``new``) alarms by severity, the highest first."""
        score = "score0" if outcome == "gone" else "score1"
        own = self.alarms.filter(pl.col("outcome") == outcome).select(record_score=score)
        words = graded(own.drop_nulls())["severity"].to_list() + [_UNKNOWN] * own["record_score"].null_count()
        return {each: words.count(each) for each in (*reversed(SEVERITIES), _UNKNOWN) if each in words}

    def days(self) -> list[dict[str, Any]]:
        """The number of alarms that stay, go and come on each day (UTC) that has any, in order."""
        kept = pl.when(pl.col("outcome").is_in(["gone", "new"])).then("outcome").otherwise(pl.lit("kept"))
        days = self.alarms.select(day=pl.coalesce("from0", "from1") // _DAY * _DAY, what=kept)
        counted = days.group_by("day").agg(
            (pl.col("what") == what).sum().alias(name)
            for name, what in (("kept", "kept"), ("removed", "gone"), ("added", "new"))
        )
        return counted.sort("day").to_dicts()

    def figures(self) -> dict[str, Any]:
        """All figures as JSON."""
        gone, smaller = self.incidents
        before = self.alarms.filter(pl.col("outcome") != "new").height
        return {
            "from": iso(self.start),
            "until": iso(self.end),
            "stored": {
                "verdicts_from": iso(self.stored.verdicts_from),
                "values_from": None if self.stored.values_from is None else iso(self.stored.values_from),
                "values_needed": self.stored.values_needed,
            },
            "alarms": before,
            "removed": {
                "windows": self.windows[0],
                "alarms": self.count("gone"),
                "severities": self.severities("gone"),
                "true_alarms": self.count("gone", "true"),
                "false_alarms": self.count("gone", "false_alarm"),
                "incidents": len(gone),
                "incident_severities": by_severity(gone),
                "incidents_smaller": len(smaller),
            },
            "added": {"windows": self.windows[1], "alarms": self.count("new"), "severities": self.severities("new")},
            "days": self.days(),
            "examples": [{**each, "from": iso(each["from"]), "to": iso(each["to"])} for each in self.examples],
        }


def alarms_between(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """The alarms of two versions of the same verdicts, as `matched` returns them."""
    length = int((first["window_end"] - first["window_start"]).min() or 1)  # type: ignore[arg-type]
    return matched(first, second, min(step_of(first, sparse=True), length))  # far apart: only news may be stored


def by_severity(incidents: Sequence[Incident]) -> dict[str, int]:
    """The number of incidents by severity, the highest first."""
    words = [each.severity for each in incidents]
    return {each: words.count(each) for each in reversed(SEVERITIES) if each in words}


def labelled(times: pl.DataFrame, spans: Sequence[Span]) -> pl.Series:
    """For each time of a series ``true`` or ``false_alarm``, as a span of it or of its whole machine says, or null.

    Args:
        times: The columns ``entity``, ``metric``, and ``low`` and ``high``, epoch milliseconds.
        spans: What labels and the ground truth say.
    """
    rows = [(span.entity, metric, span.start, span.end, span.wrong) for span in spans for metric in span.metrics]
    kinds = {"entity": pl.String, "of": pl.String, "start": pl.Int64, "end": pl.Int64, "wrong": pl.Boolean}
    said = pl.DataFrame(rows, kinds, orient="row")
    numbered = times.select("entity", "metric", "low", "high").with_row_index("row")
    both = numbered.join(said, on="entity").filter(
        (pl.col("metric") == pl.col("of"))
        | (pl.col("metric").str.strip_prefix(PEERS) == pl.col("of"))
        | (pl.col("of") == EVERY)
        | (pl.col("metric") == EVERY),
        pl.col("low") <= pl.col("end"),
        (pl.col("high") > pl.col("start")) | (pl.col("low") >= pl.col("start")),
    )
    wrong = both.group_by("row").agg(pl.col("wrong").any())
    known = numbered.join(wrong, on="row", how="left", maintain_order="left")
    word = pl.when("wrong").then(pl.lit("true")).when(~pl.col("wrong")).then(pl.lit("false_alarm"))
    return known.select(word.alias("label")).to_series()


def _incidents(
    incidents: Sequence[Incident], verdicts: pl.DataFrame, was: pl.Series, is_: pl.Series
) -> tuple[list[Incident], list[Incident]]:
    """The incidents of which every alarm is removed, and those of which some are.

    An incident lists up to 50 of its series. Of a larger one it cannot be said that all are removed.
    """
    rows = [
        (number, each.entity, each.metric, each.since, each.end or incident.updated)
        for number, incident in enumerate(incidents)
        for each in incident.series
    ]
    series = pl.DataFrame(
        rows, ["number", *SERIES, "since", "until"], orient="row", schema_overrides={"number": pl.Int64}
    )
    if not rows:
        return [], []
    news = verdicts.select(*SERIES, "window_start", "window_end", was=was, stays=is_).filter("was")
    own = series.join(news, on=SERIES).filter(
        pl.col("window_end") > pl.col("since"), pl.col("window_start") <= pl.col("until")
    )
    by_series = own.group_by("number", *SERIES).agg(stays=pl.col("stays").any(), less=(~pl.col("stays")).any())
    found = by_series.group_by("number").agg(
        removed=(~pl.col("stays")).sum(), less=pl.col("less").any(), series=pl.len()
    )
    gone, smaller = [], []
    for number, removed, less, _ in found.sort("number").iter_rows():
        incident = incidents[number]
        if removed >= incident.series_count == len(incident.series):
            gone.append(incident)
        elif less:
            smaller.append(incident)
    return gone, smaller


def examples(alarms: pl.DataFrame, verdicts: pl.DataFrame, incidents: Sequence[Incident]) -> list[dict[str, Any]]:
    """Up to ten alarms that are removed or added: true ones first, then those with the highest scores."""
    true, score = (pl.col("label") == "true").fill_null(value=False), pl.coalesce("score0", "score1")
    changed = alarms.filter(pl.col("outcome").is_in(["gone", "new"]))
    chosen = changed.sort(true, score, descending=True, nulls_last=True, maintain_order=True).head(EXAMPLES)
    found = []
    for alarm in chosen.iter_rows(named=True):
        at = 0 if alarm["outcome"] == "gone" else 1
        own = verdicts.filter(
            entity=alarm["entity"], metric=alarm["metric"],
        ).filter(pl.col("window_start") >= alarm[f"from{at}"], pl.col("window_end") <= alarm[f"to{at}"])  # fmt: skip
        strongest = own.sort("record_score", descending=True, nulls_last=True).row(0, named=True)
        found.append(
            {
                "outcome": "removed" if at == 0 else "added",
                "entity": alarm["entity"],
                "metric": alarm["metric"],
                "kind": alarm[f"kind{at}"],
                "from": alarm[f"from{at}"],
                "to": alarm[f"to{at}"],
                "label": alarm["label"],
                "score": strongest["record_score"],
                "actual": strongest["actual"],
                "typical": strongest["typical"],
                "message": strongest["message"],
                "incident": _incident_of(alarm["entity"], alarm["metric"], strongest["window_end"], incidents),
            }
        )
    return found


def _incident_of(entity: str, metric: str, at: int, incidents: Sequence[Incident]) -> str | None:
    """The id of an incident in which a series was novel at an instant; ``None`` if there is none."""
    for incident in incidents:
        for each in incident.series:
            if (each.entity, each.metric) == (entity, metric) and each.since <= at <= (each.end or incident.updated):
                return incident.id
    return None

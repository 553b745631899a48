"""What a rule would have removed and added: the detector's own rule function on stored verdicts, with and without it.

The alarms of both are matched as those of two versions are (`pipelines.evaluation.comparison.alarms`). What rules do to
a verdict follows from the verdict, so this is what a replay gives. It is not where models would have learned something
else (``skip_learning``, ``weekend``), nor for the joined verdict on a machine one metric of which the rule removes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from engine.spec.duration import iso
from pipelines.contracts.globs import matches
from pipelines.contracts.records import Incident, Rule
from pipelines.contracts.records.novelty import ALARM_KINDS, JOINED
from pipelines.contracts.records.severity import SEVERITIES
from pipelines.evaluation.comparison.alarms import matched
from pipelines.evaluation.comparison.common import step_of
from pipelines.evaluation.comparison.verdicts import SERIES
from pipelines.evaluation.rule_trial.stored import Stored
from pipelines.evaluation.truth import EVERY, Span
from pipelines.jobs.detectors.rules import applied
from pipelines.jobs.detectors.rules_in_force import RuleInForce
from pipelines.jobs.detectors.severity import graded

EXAMPLES = 10
_DAY = 86_400_000
_UNKNOWN = "unknown"
"""The severity of an added alarm of which only the value is stored, not the score."""


@dataclass(frozen=True)
class Trial:
    """What a rule would have done in a time.

    Attributes:
        rule: The rule.
        start: First instant, epoch milliseconds.
        end: Last instant, exclusive.
        stored: What was stored of that time.
        windows: The number of windows that are alarms without the rule but not with it, and the other way round.
        alarms: The alarms, as `matched` returns them (``gone``: the rule removes it, ``new``: it adds it), with the
            column ``label``: ``true`` or ``false_alarm`` if a label or the ground truth says so.
        incidents: The incidents of which the rule removes every series, and those of which it removes some.
        examples: Up to ten alarms that are removed or added, each with its strongest window.
        undecided: The number of joined alarms that a replay may judge otherwise.
    """

    rule: Rule
    start: int
    end: int
    stored: Stored
    windows: tuple[int, int]
    alarms: pl.DataFrame
    incidents: tuple[Sequence[Incident], Sequence[Incident]]
    examples: Sequence[dict[str, Any]]
    undecided: int

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
        """The number of alarms that the rule keeps, removes and adds on each day (UTC) that has any, in order."""
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
            "rule": self.rule.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"time", "note"}),
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
            "undecided_joined_alarms": self.undecided,
            "days": self.days(),
            "examples": [{**each, "from": iso(each["from"]), "to": iso(each["to"])} for each in self.examples],
        }


def by_severity(incidents: Sequence[Incident]) -> dict[str, int]:
    """The number of incidents by severity, the highest first."""
    words = [each.severity for each in incidents]
    return {each: words.count(each) for each in reversed(SEVERITIES) if each in words}


def trial(
    rule: Rule, start: int, end: int, stored: Stored, others: Sequence[RuleInForce], spans: Sequence[Span]
) -> Trial:
    """Tries a rule as if it had been in force for all of a time.

    Args:
        rule: The rule.
        start: First instant, epoch milliseconds.
        end: Last instant, exclusive.
        stored: What is stored of that time.
        others: All other rules, with the times in which they are in force: a rule that removes wins over one that
            reports, whichever is newer.
        spans: What labels and the ground truth say.
    """
    others = [each for each in others if each.rule.id != rule.id]
    verdicts = stored.verdicts.with_columns(
        probability=pl.lit(None, pl.Float64), decided=pl.lit(None, pl.Int64), number=pl.int_range(pl.len())
    )
    first, second = applied(others, verdicts), applied([*others, RuleInForce(rule, start, end)], verdicts)
    was, is_ = (each["kind"].is_in(ALARM_KINDS) for each in (first, second))
    length = int((verdicts["window_end"] - verdicts["window_start"]).min() or 1)  # type: ignore[arg-type]
    alarms = matched(first, second, min(step_of(verdicts, sparse=True), length))  # far apart: only news may be stored
    withholds = rule.only is not None or bool(rule.min_change) or bool(rule.min_change_share)
    removes = rule.skip_result or (withholds and not rule.report)
    kept = alarms.filter(pl.col("metric") == JOINED, pl.col("outcome") != "gone").height
    alarms = alarms.filter(pl.Series(matches(rule.metric, alarms["metric"])))
    alarms = alarms.with_columns(label=_labels(alarms, spans))
    return Trial(
        rule, start, end, stored, (int((was & ~is_).sum()), int((is_ & ~was).sum())), alarms,
        _incidents(stored.incidents, verdicts, was, is_), _examples(alarms, verdicts, stored.incidents),
        kept if removes else 0,
    )  # fmt: skip


def _labels(alarms: pl.DataFrame, spans: Sequence[Span]) -> pl.Series:
    """For each alarm ``true`` or ``false_alarm``, as a span of its series or its whole machine says, or null."""
    rows = [(span.entity, metric, span.start, span.end, span.wrong) for span in spans for metric in span.metrics]
    kinds = {"entity": pl.String, "of": pl.String, "start": pl.Int64, "end": pl.Int64, "wrong": pl.Boolean}
    said = pl.DataFrame(rows, kinds, orient="row")
    times = alarms.with_row_index("row").select(
        "row", "entity", "metric", low=pl.coalesce("from0", "from1"), high=pl.coalesce("to0", "to1")
    )
    both = times.join(said, on="entity").filter(
        (pl.col("metric") == pl.col("of")) | (pl.col("of") == EVERY) | (pl.col("metric") == EVERY),
        pl.col("low") <= pl.col("end"),
        (pl.col("high") > pl.col("start")) | (pl.col("low") >= pl.col("start")),
    )
    wrong = both.group_by("row").agg(pl.col("wrong").any())
    known = times.join(wrong, on="row", how="left", maintain_order="left")
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


def _examples(alarms: pl.DataFrame, verdicts: pl.DataFrame, incidents: Sequence[Incident]) -> list[dict[str, Any]]:
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

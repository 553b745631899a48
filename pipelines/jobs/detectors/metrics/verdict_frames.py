"""Verdicts as frames: the columns of a verdict, and the frames of joined verdicts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from models.machine.joined import JoinedVerdicts, Windows
from models.numbers.arrays import Array, Flags, Ints
from pipelines.contracts.records.novelty import JOINED, QUIET_KINDS
from pipelines.jobs.detectors.beliefs import COURSES, KINDS
from pipelines.jobs.detectors.metrics.context import NAMED, absent, named

_LEAST_SHARE = 0.01
"""The least share of a joined verdict with which a metric is named as an influencer."""


class JudgedMetrics(NamedTuple):
    """For each judged row its metric, value and typical value, and whether the value lies within its band."""

    name: pl.Series
    value: Array
    typical: Array
    inside: Flags


def influencers(
    metrics: JudgedMetrics, first: Ints, rows: Ints, shares: Array, suggested: Array, news: Flags
) -> dict[str, pl.Series]:
    """The metrics that contributed to each joined verdict, the strongest first; null where none did.

    Args:
        metrics: All judged rows.
        first: The first row of each verdict, ascending; the rows of a verdict are adjacent, shape (m,).
        rows: The rows that went into a verdict, shape (n,).
        shares: The share of each of these rows in its verdict, shape (n,).
        suggested: The value that the machine's other metrics suggest, as in `JoinedVerdicts`, shape (n,).
        news: Flags of the verdicts that are news; only these get values and expected values, shape (m,).

    Returns:
        The columns `influencers`, `actuals`, `typicals` and `suggested` of m verdicts, by name.
    """
    verdict = np.searchsorted(first, rows, side="right") - 1
    strong = np.flatnonzero(shares >= _LEAST_SHARE)
    strong = strong[np.lexsort((-shares[strong], verdict[strong]))]
    columns = {"influencers": named(verdict[strong], metrics.name[rows[strong]], shares[strong], len(first))}
    strong = strong[news[verdict[strong]]]
    of, at, n = verdict[strong], rows[strong], len(first)
    by_others = np.where(metrics.inside[at], suggested[strong], np.nan)
    numbers = {"actuals": metrics.value[at], "typicals": metrics.typical[at], "suggested": by_others}
    return columns | {name: named(of, metrics.name[at], values, n) for name, values in numbers.items()}


EXPERTS = ("level", "log_level", "hour", "count", "ratio", "categorical")
"""The experts of a metric's mixture, and the model families that are used instead of a mixture."""

CHANNELS = ("point", "window", "record", "change", "frozen", "departure", "absence")
"""A metric's evidence channels. In a joined verdict `point` is the strongest metric's evidence, `window` the mean."""

NUMBERS = ("record_score", "state_score", "probability", "actual", "typical", "lower", "upper")
_EVIDENCE = pl.Struct(dict.fromkeys(CHANNELS, pl.Float64))
_EXPERTS = pl.Struct(dict.fromkeys(EXPERTS, pl.Float64))

FULL = ("full_earliest", "full_median", "full_latest")
"""Columns that only verdicts on what will be full have."""

SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    **dict.fromkeys(("entity", "metric", "metric_kind"), pl.String),
    **dict.fromkeys(("window_start", "window_end"), pl.Int64),
    "kind": pl.String,
    **dict.fromkeys(NUMBERS[:2], pl.Float64),
    "severity": pl.String,
    **dict.fromkeys(NUMBERS[2:], pl.Float64),
    **dict.fromkeys(FULL, pl.Int64),
    "since": pl.Int64,
    "incident_state": pl.String,
    "decided": pl.Int64,
    "evidence": _EVIDENCE,
    "experts": _EXPERTS,
    "expected": _EXPERTS,
    **dict.fromkeys(("context", "influencers", "actuals", "typicals", "suggested"), NAMED),
    **dict.fromkeys(("template", "example"), pl.String),
    **dict.fromkeys(("rules", "reported_by"), pl.List(pl.String)),
    **dict.fromkeys(("message", "details"), pl.String),
    **dict.fromkeys(("ingested", "revision"), pl.Int64),
}
"""The columns of verdicts: those of `Novelty`, in the same order."""

IN_BRIEF = ("actuals", "typicals", "suggested")
LATER = (*FULL, "severity", "template", "example", "rules", "reported_by", "message", "details", "ingested")
"""Columns that only verdicts on logs have, and columns that are filled in when a verdict is final."""

NO_INCIDENTS = pl.DataFrame(schema=SCHEMA | {"onset": pl.Int64})


class JoinedWindows(NamedTuple):
    """The joined verdicts of a frame, in the order in which they were judged.

    Attributes:
        windows: The windows of machines.
        first: The first row of each, shape (m,).
        rows: All rows that went in, shape (n,).
        judgement: The verdicts.
        returned: True for windows with which the machine sends again after an absence, shape (m,).
    """

    windows: Windows
    first: Ints
    rows: Ints
    judgement: JoinedVerdicts
    returned: Flags


def nulls(*names: str) -> dict[str, pl.Expr]:
    """Expressions for columns that are null in all rows, by name."""
    return {name: pl.lit(None, SCHEMA[name]) for name in names}


def completed(known: pl.DataFrame) -> pl.DataFrame:
    """Verdicts with the columns of `SCHEMA`, of which those that are not there are null."""
    missing = nulls(*(name for name in SCHEMA if name not in known.columns))
    return known.with_columns(**missing).select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


def with_nulls(verdicts: pl.DataFrame) -> pl.DataFrame:
    """The verdicts with null for unknown numbers, which the models give as NaN, infinite or -1."""
    clean = [pl.col(name).fill_nan(None) for name in ("typical", "lower", "upper")]
    since = pl.when(pl.col("since") >= 0).then("since").alias("since")
    return verdicts.with_columns(*clean, since, pl.when(pl.col("actual").is_finite()).then("actual").alias("actual"))


def joined_frame(frame: pl.DataFrame, numbers: dict[str, Array], joined: JoinedWindows) -> pl.DataFrame:
    """The joined verdicts as a frame with the columns of `SCHEMA`.

    Args:
        frame: The windows, in the order in which they were judged.
        numbers: The numbers of the verdicts on these windows, by name.
        joined: The joined verdicts.
    """
    first, judgement, verdicts = joined.first, joined.judgement, joined.judgement.verdicts
    kinds = KINDS.gather(verdicts.kind)
    news = (~kinds.is_in(QUIET_KINDS)).to_numpy() & ~joined.returned
    value = frame["value"].to_numpy()
    outside = (value < numbers["lower"]) | (value > numbers["upper"])  # where there is no band yet, none is
    inside = np.isfinite(value) & ~outside
    metrics = JudgedMetrics(frame["metric"], value, numbers["typical"], inside)
    none = pl.zeros(len(first), eager=True)
    channels = {"point": verdicts.evidence["strongest"], "window": verdicts.evidence["metrics"]}
    evidence = pl.DataFrame(dict.fromkeys(CHANNELS, none) | channels)
    names = ("record_score", "probability", "typical", "lower", "upper", "since")
    return (
        frame[first]
        .select("entity", "window_start", "window_end")
        .with_columns(
            **influencers(metrics, first, joined.rows, judgement.shares, judgement.suggested, news),
            metric=pl.lit(JOINED),
            metric_kind=pl.lit("gauge"),
            kind=kinds,
            **{name: pl.Series(getattr(verdicts, name)) for name in names},
            state_score=pl.Series(judgement.state_score),
            incident_state=COURSES.gather(judgement.incident),
            evidence=evidence.to_struct(),
            context=absent(np.flatnonzero(joined.returned), len(first)),
            **nulls("decided", "actual", "experts", "expected", *LATER),
            revision=pl.lit(0, pl.Int64),
        )
        .select(*SCHEMA)
    )

"""Chooses the differences that tell most about two versions, and says in words why each judged as it did.

Differences weigh as much as the highest scores of both versions in that time lie apart, plus `STEP_UP` if an alarm is
new, gone or of another kind. Each further difference of a machine, of a metric, or of an outcome and kind that is
already shown weighs half: so the list shows different machines, metrics and kinds, not ten times the same.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from engine.spec.duration import iso
from pipelines.contracts.records.novelty import ALARM_KINDS
from pipelines.evaluation.comparison.verdicts import SERIES

STEP_UP = 30.0
_SHOWN = 10


def instructive(alarms: pl.DataFrame, first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """The most instructive differences, the most instructive first.

    Args:
        alarms: Alarms as `pipelines.evaluation.comparison.alarms.matched` returns them.
        first: Verdicts of the first version, on the times that both have judged.
        second: Those of the second one.

    Returns:
        Rows of ``alarms``, with the columns ``highest0`` and ``highest1``: the highest score of each version in that
        time, null if it has none.
    """
    differing = alarms.filter(pl.col("outcome") != "same").with_row_index("at")
    for version, verdicts in enumerate((first, second)):
        differing = differing.join(_highest(differing, verdicts, f"highest{version}"), on="at", how="left")
    apart = (pl.col("highest0").fill_null(0) - pl.col("highest1").fill_null(0)).abs()
    left = differing.with_columns(
        weight=apart + pl.when(pl.col("outcome") == "moved").then(1.0).otherwise(STEP_UP),
        kind=pl.coalesce("kind1", "kind0"),
    )
    chosen: list[pl.DataFrame] = []
    while left.height and len(chosen) < _SHOWN:
        best = left.sort("weight", "at", descending=[True, False]).head(1)
        chosen.append(best)
        (entity, metric, outcome, kind) = best.select("entity", "metric", "outcome", "kind").row(0)
        shared = (pl.col("entity") == entity).cast(pl.Int8) + (pl.col("metric") == metric).cast(pl.Int8)
        shared += ((pl.col("outcome") == outcome) & (pl.col("kind") == kind)).cast(pl.Int8)
        left = left.filter(pl.col("at") != best["at"][0]).with_columns(pl.col("weight") * 0.5**shared)
    return (pl.concat(chosen) if chosen else left).drop("at", "weight", "kind")


def _highest(alarms: pl.DataFrame, verdicts: pl.DataFrame, name: str) -> pl.DataFrame:
    """The highest score of verdicts within each alarm; alarms of one series do not overlap."""
    spans = alarms.select(*SERIES, "at", "end", begin="start").sort("begin")
    inside = (
        verdicts.select(*SERIES, "window_start", "window_end", "record_score")
        .sort("window_start")
        .join_asof(
            spans, left_on="window_start", right_on="begin", by=SERIES, strategy="backward", check_sortedness=False
        )
        .filter(pl.col("window_end") <= pl.col("end"))
    )
    return inside.group_by("at").agg(pl.col("record_score").max().alias(name))


_CALLED = {
    "anomaly": "an anomaly",
    "state_change": "a change of state",
    "new_normal": "a new normal",
    "absence": "missing data",
    "exhaustion": "full soon",
    "outlier": "unlike its peers",
}
_DIGITS = 4


def reason(name: str, own: pl.DataFrame, threshold: float, *, sparse: bool = False) -> str:
    """Why a version judged a time as it did, in a few sentences.

    Args:
        name: Name of the version.
        own: Its verdicts on the series in that time.
        threshold: Score from which it calls a value an anomaly.
        sparse: True if it stores no verdicts on quiet windows.
    """
    if not own.height and sparse:
        return f"{name} raised no alarm: it has stored no verdict on this time, so the series was quiet for it."
    if not own.height:
        return f"{name} has no verdict on this time."
    alarms = own.filter(pl.col("kind").is_in(ALARM_KINDS))
    if alarms.height:
        return _alarmed(name, alarms)
    highest = own.sort("record_score", descending=True).row(0, named=True)
    if own["kind"].is_in(["learning"]).all():
        return f"{name} was still learning this series, so it raised no alarm."
    score = f"its highest score in this time is {highest['record_score']:.0f}, at {iso(highest['window_end'])}"
    below = f"an alarm begins at {threshold:g}"
    if highest["record_score"] >= threshold:
        below = f"the score alone would be an alarm from {threshold:g} on, but the verdict is `{highest['kind']}`"
    return f"{name} raised no alarm: {score}; {below}.{_expectation(highest)}"


def _alarmed(name: str, alarms: pl.DataFrame) -> str:
    worst = alarms.sort("record_score", descending=True).row(0, named=True)
    kinds = alarms["kind"].unique(maintain_order=True).to_list()
    called = ", then ".join(_CALLED[kind] for kind in kinds)
    windows = "one window" if alarms.height == 1 else f"{alarms.height} windows"
    highest = f"highest score {worst['record_score']:.0f} at {iso(worst['window_end'])}"
    said = f"{name} called it {called} ({windows}, {highest})."
    words = [worst["message"], worst["details"]] if worst["message"] else [_expectation(worst).strip()]
    return " ".join([said, *(text for text in words if text)])


def _expectation(verdict: dict[str, Any]) -> str:
    actual, lower, upper = verdict["actual"], verdict["lower"], verdict["upper"]
    if actual is None or lower is None or upper is None:
        return ""
    return f" The value was {_number(actual)}, and values from {_number(lower)} to {_number(upper)} were expected."


def _number(value: float) -> str:
    return f"{value:,.{_DIGITS}g}" if abs(value) < 10**_DIGITS else f"{value:,.0f}"

"""Says in words why a version judged a time as it did."""

from __future__ import annotations

from typing import Any

import polars as pl

from engine.spec.duration import iso
from pipelines.contracts.records.novelty import ALARM_KINDS

_CALLED = {
    "anomaly": "an anomaly",
    "state_change": "a change of state",
    "new_normal": "a new normal",
    "absence": "missing data",
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

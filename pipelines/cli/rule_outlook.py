"""Says what a rule would do now, in a few lines."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import polars as pl

from engine.spec.duration import iso
from pipelines.contracts.quantities.words import Scale, number
from pipelines.contracts.records import Rule
from pipelines.contracts.records.novelty import JOINED, is_derived

_NOTHING_KNOWN = "now: it could not be said what it applies to, as no series has sent a window lately"
Row = dict[str, Any]


def outlook_lines(rule: Rule, outlook: pl.DataFrame, windows: pl.DataFrame) -> list[str]:
    """What a rule would do now: a line on how many series match and, if it has limits, one for each case.

    Args:
        rule: The rule.
        outlook: What `pipelines.query.rule_outlook.outlook` says.
        windows: The windows from which it says it.
    """
    if not outlook.height:
        return []
    begin, end = iso(_int(windows["window_start"].min())), iso(_int(windows["window_end"].max()))
    series = outlook.height
    match = "1 series matches" if series == 1 else f"{series} series match"
    lines = [f"now: {match}, of {_machines(outlook)}"]
    if rule.above is None and rule.below is None:
        return lines
    lines[0] += f"; in the windows from {begin} to {end}"
    always = outlook.filter(pl.col("concerned") == pl.col("windows"))
    never = outlook.filter(pl.col("concerned") == 0)
    sometimes = outlook.filter((pl.col("concerned") > 0) & (pl.col("concerned") < pl.col("windows")))
    for word, some in (("always", always), ("at times", sometimes), ("never", never)):
        if some.height:
            lines.append(f"  {some.height} {word} {limits(rule)}: {_example(rule, some, word)}")
    return lines


def doubts(rule: Rule, outlook: pl.DataFrame) -> list[str]:
    """Warnings of what is hardly meant: a threshold that each window of a series passes."""
    if not outlook.height or not rule.report or (rule.above is None and rule.below is None):
        return []
    always = outlook.filter(pl.col("concerned") == pl.col("windows"))
    if not always.height:
        return []
    whose = "the one series that is" if always.height == 1 else f"the {always.height} series that are"
    return [f"it reports every window of {whose} always {limits(rule)}: is the limit in the unit of the metric?"]


def no_match(rule: Rule, names: list[str]) -> str:
    """What is said if no series that sends matches: with the most similar names.

    Args:
        rule: The rule.
        names: The metrics that send.
    """
    if rule.metric in (JOINED, "logs", "log*") or rule.metric.startswith("log.") or is_derived(rule.metric):
        return ""
    if not names:
        return _NOTHING_KNOWN
    plain = rule.metric.replace("*", "").replace("?", "")
    near = [name for name in names if plain and plain in name] or get_close_matches(plain, names, 3, 0.5)
    return "now: no series that sends matches" + (f"; similar metrics: {', '.join(near[:3])}" if near else "")


def limits(rule: Rule) -> str:
    """The limits of a rule in words: ``above 0.95``."""
    parts = [
        f"{side} {number(value, digits=12)}"
        for side in ("above", "below")
        if (value := getattr(rule, side)) is not None
    ]
    return " and ".join(parts)


def _example(rule: Rule, series: pl.DataFrame, word: str) -> str:
    """The series that comes nearest to the limit, with its values."""
    up = rule.above is not None
    if word == "never":
        row = series.sort("highest" if up else "lowest", descending=up).row(0, named=True)
        value = f"{'at most' if up else 'at least'} {_value(row, row['highest' if up else 'lowest'])}"
    else:
        row = series.sort("lowest" if up else "highest", descending=not up).row(0, named=True)
        value = f"{_value(row, row['lowest'])} to {_value(row, row['highest'])}"
        if word == "at times":
            value += f", in {row['concerned']} of {row['windows']} windows"
    named = f"{row['metric']} of {row['entity']}"
    return f"{value} ({named}{' comes nearest' if series.height > 1 else ''})"


def _value(row: Row, value: float) -> str:
    scale = Scale(kind=row["kind"], metric=row["metric"])
    return scale(value) if row["kind"] != "ratio" else f"{value:.3g} ({scale(value)})"


def _machines(outlook: pl.DataFrame) -> str:
    names = outlook["entity"].unique().sort().to_list()
    return names[0] if len(names) == 1 else f"{len(names)} machines"


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value

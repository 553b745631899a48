"""What a rule would do now: to which of the last windows it applies, by the detector's own reckoning."""

from __future__ import annotations

import polars as pl

from engine.spec.duration import END_OF_TIME, NEVER
from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Rule
from pipelines.jobs.detectors.rules import effects
from pipelines.jobs.detectors.rules_in_force import RuleInForce

_RATIOS = ("ratio", "utilization")
"""Ends of the names of metrics between 0 and 1, by the conventions of Prometheus and OpenTelemetry."""


def outlook(rule: Rule, windows: pl.DataFrame) -> pl.DataFrame:
    """To how many of the given windows a rule applies, whatever its dates, times and the span in which it is in force.

    Args:
        rule: The rule.
        windows: Windows as `recent_windows` returns them, of series that match the rule's globs.

    Returns:
        A row per series, sorted: ``entity``, ``metric``, ``kind``, ``windows``, ``concerned`` (how many of these the
        rule applies to), ``lowest`` and ``highest`` (values).
    """
    if not windows.height:
        return pl.DataFrame()
    always = rule.model_copy(update={"dates": [], "times": ""})
    effect = effects([RuleInForce(always, NEVER, END_OF_TIME)], windows)
    concerned = effect.concerned[0][1] if effect else [False] * windows.height
    return (
        windows.with_columns(pl.Series("concerned", concerned))
        .group_by("entity", "metric")
        .agg(
            pl.col("kind").last(),
            pl.len().alias("windows"),
            pl.col("concerned").sum(),
            pl.col("value").min().alias("lowest"),
            pl.col("value").max().alias("highest"),
        )
        .sort("entity", "metric")
    )


def refuse_percentage_of_no_ratio(option: str, windows: pl.DataFrame) -> None:
    """Refuses a percentage for series that are no ratios: 0.95 would be compared with bytes, or with 0 to 100.

    Args:
        option: The option that is a percentage.
        windows: The last windows of the series that the rule matches.

    Raises:
        NewnormalError: ``RULE_INVALID`` with the first such series.
    """
    if not windows.height:
        return
    name = pl.col("metric").str.replace(r"\{.*", "")
    ratio = (pl.col("kind") == "ratio") | pl.any_horizontal(name.str.ends_with(end) for end in _RATIOS)
    others = windows.filter(~ratio)
    if others.height:
        entity, metric, value = others.select("entity", "metric", "value").sort("entity", "metric").row(0)
        ratios = windows.filter(ratio)["metric"].unique().sort().to_list()
        accepted = "a number in the unit of the metric" + (f", or --metric '{ratios[0]}'" if ratios else "")
        what = f"{metric} of {entity} is no ratio from 0 to 1 (it is {value:g}), so it has no percentage"
        raise NewnormalError("RULE_INVALID", what, option, accepted, "nothing was written")

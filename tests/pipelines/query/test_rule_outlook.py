"""What a rule would do now is what the detector would do with the last windows; percentages are for ratios only."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from engine.spec.errors import NewnormalError
from pipelines.cli.rule_outlook import doubts, no_match, outlook_lines
from pipelines.contracts.records import Rule
from pipelines.query.rule_outlook import outlook, refuse_percentage_of_no_ratio

T0, STEP = 1_795_806_000_000, 10_000


def windows(**series: tuple[str, list[float]]) -> pl.DataFrame:
    """Windows of series of one machine: kind and values by metric; a double underscore stands for a dot."""
    rows = [
        {"entity": "vm", "metric": name.replace("__", "."), "kind": kind, "value": value,
         "window_start": T0 + at * STEP, "window_end": T0 + (at + 1) * STEP}
        for name, (kind, values) in series.items() for at, value in enumerate(values)
    ]  # fmt: skip
    return pl.DataFrame(rows)


DISK = windows(disk__used=("gauge", [22e9, 23e9]), disk__used_ratio=("ratio", [0.22, 0.225]))


def rule(**fields: Any) -> Rule:
    return Rule(id="r", time=T0, **fields)


def said(given: Rule, seen: pl.DataFrame) -> list[str]:
    return outlook_lines(given, outlook(given, seen), seen)


def test_a_limit_in_the_wrong_unit_is_seen_at_once() -> None:
    """The finding: above 95 meant per cent, and was compared with bytes and with a share of 1."""
    given = rule(metric="disk.used*", above=95, report=True)
    first, always, never = said(given, DISK)
    assert first.startswith("now: 2 series match, of vm")
    assert always.strip().startswith("1 always above 95: 22 GB to 23 GB (disk.used of vm")
    assert never.strip().startswith("1 never above 95: at most 0.225 (22.5 %) (disk.used_ratio of vm")
    (warning,) = doubts(given, outlook(given, DISK))
    assert "every window" in warning


def test_a_limit_that_some_windows_pass_is_told_with_their_number() -> None:
    seen = windows(cpu=("ratio", [0.2, 0.97, 0.96, 0.3]))
    given = rule(metric="cpu", above=0.95, report=True)
    assert "in 2 of 4 windows" in said(given, seen)[1]
    assert doubts(given, outlook(given, seen)) == []


def test_a_rule_between_two_limits_applies_to_what_is_between_them() -> None:
    seen = windows(low=("gauge", [1.0]), middle=("gauge", [5.0]), high=("gauge", [9.0]))
    found = outlook(rule(above=2, below=8, report=True), seen)
    assert dict(found.select("metric", "concerned").iter_rows()) == {"low": 0, "middle": 1, "high": 0}


def test_a_rule_of_some_days_is_foretold_as_on_these_days() -> None:
    found = outlook(rule(metric="disk.used", above=95, report=True, dates=["2030-01-01"]), DISK)
    assert found["concerned"].to_list() == [2, 0]


def test_maintenance_is_told_with_the_series_that_it_covers_and_no_doubt() -> None:
    given = rule(skip_result=True)
    assert said(given, DISK) == ["now: 2 series match, of vm"]
    assert doubts(given, outlook(given, DISK)) == []


def test_a_percentage_is_for_ratios() -> None:
    refuse_percentage_of_no_ratio("--above", DISK.filter(pl.col("kind") == "ratio"))
    named = windows(system__memory__utilization=("gauge", [0.5]), node__cpu_ratio=("gauge", [0.5]))
    refuse_percentage_of_no_ratio("--above", named)
    refuse_percentage_of_no_ratio("--above", pl.DataFrame())
    with pytest.raises(NewnormalError) as refused:
        refuse_percentage_of_no_ratio("--above", DISK)
    assert refused.value.code == "RULE_INVALID"
    assert "disk.used of vm is no ratio" in str(refused.value) and "disk.used_ratio" in str(refused.value)
    with pytest.raises(NewnormalError, match="used_percent"):
        refuse_percentage_of_no_ratio("--above", windows(mem__used_percent=("gauge", [63.0])))


def test_similar_metrics_are_named_if_none_matches() -> None:
    names = ["disk.used_ratio{path=/}", "cpu.util"]
    assert "disk.used_ratio{path=/}" in no_match(rule(metric="disk.used_percent", report=True), names)
    assert no_match(rule(metric="logs", report=True), names) == ""


def test_a_metric_whose_name_only_begins_like_that_of_a_log_is_looked_for_among_the_metrics() -> None:
    assert "logins.rate" in no_match(rule(metric="login.rate", report=True), ["cpu", "logins.rate"])
    for of_a_log in ("logs", "log.template.7", "log.*", "log*"):
        assert no_match(rule(metric=of_a_log, report=True), ["cpu"]) == ""

"""A rule in the past takes a bad time of one machine out: its alarms go, and nothing else changes at all.

That is what docs/retrain-without-a-bad-day.md promises; `tests.integration.test_retrain_page` runs its commands.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from datagen.simulator import demo, frames
from pipelines.contracts.records import Rule
from pipelines.contracts.records.novelty import ALARM_KINDS
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.rules_in_force import RuleInForce

NOW, WINDOW, HALF_AN_HOUR = 1_800_000_000_000, 10_000, 1_800_000
MACHINE = "vm-00004"
"""On it a release goes wrong in the demo's history."""


@pytest.fixture(scope="module")
def windows() -> pl.DataFrame:
    """The demo's 45 minutes of history, as mean values of windows."""
    config = replace(demo(NOW), duration=0)
    samples = pl.concat([frame.select("time", "entity", "metric", "value", "kind") for frame in frames(config)])
    start = pl.col("time") // WINDOW * WINDOW
    means = samples.filter(pl.col("kind") != "counter").group_by("entity", "metric", window_start=start)
    return means.agg(pl.col("value").mean()).with_columns(window_end=pl.col("window_start") + WINDOW)


def verdicts(windows: pl.DataFrame, rules: list[RuleInForce]) -> pl.DataFrame:
    detection = Detection(DetectorSettings())
    found = detection.process(windows, detection.new_state(), rules, NOW)[0]
    return found.sort("entity", "metric", "window_end", "revision")


def test_a_rule_in_the_past_takes_the_alarms_of_one_machine_and_time_and_leaves_all_else_as_it_was(
    windows: pl.DataFrame,
) -> None:
    begin = NOW - HALF_AN_HOUR
    rule = Rule(id="badday", time=begin, start=begin, entity=MACHINE, skip_result=True, skip_learning=True)
    before = verdicts(windows, [])
    after = verdicts(windows, [RuleInForce(rule, begin, NOW)])
    bad = (pl.col("entity") == MACHINE) & (pl.col("window_end") > begin)
    alarms = pl.col("kind").is_in(ALARM_KINDS)
    assert before.filter(bad, alarms).height > 0
    assert after.filter(bad, alarms).height == 0
    assert before.filter(~bad, alarms).height > 0
    assert_frame_equal(before.filter(~bad), after.filter(~bad), check_exact=True)

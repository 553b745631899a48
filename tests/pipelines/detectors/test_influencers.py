"""What contributed to a joined verdict is named the strongest first, whatever the order of the metrics."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipelines.contracts.records.novelty import JOINED
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.metrics.verdict_frames import JudgedMetrics, influencers


def test_the_metrics_of_each_verdict_are_named_by_their_shares_without_the_faint_ones() -> None:
    names = pl.Series(["cpu", "mem", "net", "cpu", "mem"])
    shares = np.array([0.2, 0.7, 0.1, 0.009, 0.991])
    none = np.full(5, np.nan)
    found = influencers(
        JudgedMetrics(names, np.arange(5.0), none, np.zeros(5, np.bool_)),
        first=np.array([0, 3]),
        rows=np.arange(5),
        shares=shares,
        suggested=none,
        news=np.array([True, False]),
    )
    told = [[(row["key"], row["value"]) for row in verdict] for verdict in found["influencers"].to_list()]
    assert told == [[("mem", 0.7), ("cpu", 0.2), ("net", 0.1)], [("mem", 0.991)]]
    assert [row["key"] for row in found["actuals"].to_list()[0]] == ["mem", "cpu", "net"]
    assert found["actuals"].to_list()[1] is None, "of what is no news no more is said"


def test_of_metrics_that_deviate_by_more_and_more_the_foremost_influencer_deviates_most() -> None:
    rng, ends = np.random.default_rng(0), (np.arange(80) + 1) * 10_000
    away = {"cpu": 60.0, "mem": 600.0, "net": 20.0}
    frames = []
    for metric, by in away.items():
        value = rng.normal(50, 5, 80) + np.where(np.arange(80) >= 70, by, 0.0)
        columns = {"window_start": ends - 10_000, "window_end": ends, "value": value}
        frames.append(pl.DataFrame(columns).with_columns(entity=pl.lit("a"), metric=pl.lit(metric)))
    detection = Detection(DetectorSettings())
    verdicts, _ = detection.process(pl.concat(frames).with_columns(kind=pl.lit("gauge")), detection.new_state())
    joined = verdicts.filter(pl.col("metric") == JOINED)
    lists = [[row["value"] for row in told] for told in joined["influencers"].drop_nulls().to_list()]
    assert len(lists) > 5
    assert all(told == sorted(told, reverse=True) for told in lists)
    onset = joined.filter(pl.col("window_end") == 710_000).row(0, named=True)
    assert onset["influencers"][0]["key"] == "mem"

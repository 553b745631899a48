"""The demo, a pause, the demo again, without servers: through the extractor and the models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from datagen.simulator import SimulatorConfig, demo, simulate
from engine.testing.runners import bounded
from pipelines.contracts.records.novelty import ALARM_KINDS
from pipelines.contracts.settings import load
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.metrics.judging import rows_to_judge
from pipelines.jobs.extractor import extractor
from tests.datagen.in_memory import CollectSink, VirtualClock

FIRST, SECOND, MINUTE = 1_800_000_000_000, 1_800_000_520_000, 60_000
"""The first run goes live, and stops 100 s later; after a pause of seven minutes the second one goes live."""


def _run(config: SimulatorConfig, sink: CollectSink, since: int | None) -> int:
    """Runs the live part as far as the config says; returns the instant up to which all was sent."""
    reached = [0]
    clock = VirtualClock((config.start or 0) + config.backfill)
    simulate(config, sink, clock=clock, progress=lambda _, at: reached.append(at), since=since)
    return reached[-1]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """The verdicts on both runs."""
    path: Path = tmp_path_factory.mktemp("second-demo")
    settings, sink = load(state_dir=path), CollectSink()
    exact = {"late": 0.0, "delayed": 0.0, "skewed": 0.0}
    until = _run(replace(demo(FIRST), duration=100_000, **exact), sink, None)
    again = CollectSink()
    _run(replace(demo(SECOND, earlier=(FIRST,)), duration=150_000, **exact), again, until)
    samples = pl.concat([*sink.frames, *again.frames]).unique(["time", "entity", "metric"])
    samples = samples.with_columns(pl.col("entity", "metric", "kind").cast(pl.String)).drop("arrival")
    features, _ = bounded(extractor(settings), samples.to_dicts())
    detection = Detection(settings.detector)
    windows = rows_to_judge(pl.DataFrame(features, infer_schema_length=None))
    made, _ = detection.process(windows, detection.new_state(), now=SECOND + 150_000)
    return made.filter(pl.col("kind").is_in(ALARM_KINDS))


def test_nothing_is_news_at_the_seam_but_what_was_injected(verdicts: pl.DataFrame) -> None:
    """The first run stops while a surge and an outage go on, which end in the pause; then all is quiet."""
    injected = ["vm-00003", "host-001", "vm-00015", "host-007"]
    seam = verdicts.filter(pl.col("window_start").is_between(FIRST + 100_000, SECOND + 19_999))
    assert seam.filter(~pl.col("entity").is_in(injected)).select("entity", "metric", "kind").rows() == []
    assert seam["window_end"].max() is None or seam["window_end"].max() <= FIRST + 4 * MINUTE  # type: ignore[operator]


def test_the_surge_that_the_second_demo_promises_is_found_within_twenty_seconds(verdicts: pl.DataFrame) -> None:
    surge = verdicts.filter(pl.col("window_start") >= SECOND, entity="vm-00011")
    assert SECOND + 20_000 < surge["window_end"].min() <= SECOND + 40_000  # type: ignore[operator]
    assert {"http.requests", "cpu.util"} <= set(surge["metric"])


def test_the_outage_that_the_second_demo_promises_is_one_absence(verdicts: pl.DataFrame) -> None:
    gone = verdicts.filter(pl.col("window_start") >= SECOND, kind="absence")
    assert gone.select("entity", "metric").rows() == [("vm-00005", "_machine")]

"""What the detector says in words of what is news."""

import numpy as np
import polars as pl

from pipelines.detection import Detection
from pipelines.settings import load
from pipelines.words import told

STEP = 300_000


def test_each_novelty_says_what_was_expected_by_whom_and_what_speaks_for_it() -> None:
    random, rows = np.random.default_rng(0), []
    for i in range(600):
        for metric in ("cpu", "disk"):
            value = random.normal(50, 5) + (60 if i == 580 and metric == "cpu" else 0)
            rows.append(("vm", metric, i * STEP, (i + 1) * STEP, value))
    columns = ["entity", "metric", "window_start", "window_end", "value"]
    detection = Detection(load().detector)
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    verdicts = told(detection.process(frame, detection.new_state())[0])

    assert (verdicts["message"].is_null() == verdicts["kind"].is_in(["normal", "learning"])).all()
    at = verdicts.filter(pl.col("window_start") == 580 * STEP)
    cpu, disk, joined = (
        at.row(by_predicate=pl.col("metric") == name, named=True) for name in ("cpu", "disk", "_machine")
    )
    assert cpu["kind"] == "anomaly"
    assert disk["message"] is None
    assert disk["experts"] is None
    assert abs(sum(weight for weight in cpu["experts"].values() if weight) - 1) < 1e-9
    assert all(40 < value < 60 for value in cpu["expected"].values() if value is not None)
    for part in (
        f"cpu of vm was {cpu['actual']:.4g} where {cpu['typical']:.4g} was expected",
        "above the band of",
        "At this hour it was about",
        "a value beyond all seen before",
        "the value itself",
        "It began at 1970-01-03 00:20:00 UTC.",
    ):
        assert part in cpu["message"]
    assert "It comes mostly from cpu (9" in joined["message"]

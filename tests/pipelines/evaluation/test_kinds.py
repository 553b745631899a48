"""The measures of kinds, on known verdicts."""

import polars as pl

from datagen.groundtruth import GroundTruth
from tests.benchmarks.measures import kinds

STEP = 300_000
DAY = 86_400_000


def _truth(name: str, cls: str, start: int, windows: int) -> GroundTruth:
    return GroundTruth.model_validate(
        {
            "id": name, "incident": name, "type": "spike" if cls == "anomaly" else "release", "class": cls,
            "entity": "vm", "metrics": ["cpu"], "start": start * STEP, "end": (start + windows) * STEP,
        }
    )  # fmt: skip


def _news(*at: tuple[int, str], metric: str = "cpu") -> pl.DataFrame:
    rows = [{"entity": "vm", "metric": metric, "window_end": window * STEP, "kind": kind} for window, kind in at]
    return pl.DataFrame(rows, schema={"entity": str, "metric": str, "window_end": int, "kind": str})


def test_an_anomaly_is_found_with_its_delay_and_called_one() -> None:
    (made,) = kinds.outcomes(_news((99, "normal"), (103, "anomaly")), [_truth("a", "anomaly", 100, 5)], STEP)
    assert (made.found, made.delay, made.called_change) == (True, 3, False)


def test_news_before_the_incident_or_long_after_it_is_not_its_detection() -> None:
    (made,) = kinds.outcomes(_news((98, "anomaly"), (150, "anomaly")), [_truth("a", "anomaly", 100, 5)], STEP)
    assert (made.found, made.delay) == (False, -1)


def test_a_change_is_settled_after_its_last_alert() -> None:
    verdicts = _news((101, "anomaly"), (102, "state_change"), (140, "new_normal"))
    (made,) = kinds.outcomes(verdicts, [_truth("c", "state_change", 100, 60)], STEP)
    assert (made.called_change, made.alerts, made.accepted) == (True, 2, 40)


def test_false_alarms_are_counted_as_runs_a_series_and_month() -> None:
    verdicts = _news((500, "anomaly"), (501, "anomaly"), (800, "anomaly"), (103, "anomaly"))
    truths = [_truth("a", "anomaly", 100, 5)]
    assert kinds.false_alarms(verdicts, truths, STEP, series=2, span=30 * DAY) == 1.0


def test_calling_all_of_it_anomalies_is_no_better_than_chance() -> None:
    truths = [_truth("a", "anomaly", 100, 5), _truth("c", "state_change", 1000, 60)]
    made = kinds.outcomes(_news((101, "anomaly"), (1001, "anomaly")), truths, STEP)
    assert kinds.balanced_accuracy(made) == 0.5
    made = kinds.outcomes(_news((101, "anomaly"), (1001, "state_change")), truths, STEP)
    assert kinds.balanced_accuracy(made) == 1.0

"""The measures of single series, on known verdicts."""

import math

import polars as pl

from datagen.groundtruth import GroundTruth
from tests.benchmarks.measures import settling

STEP, DAY = 300_000, 288
TURNED = {"there": ("release", 1.0), "back": ("release", 0.0), "again": ("release", 1.0)}


def _change(name: str, start: int, *metrics: str) -> GroundTruth:
    return GroundTruth.model_validate(
        {
            "id": name, "incident": name, "type": "release", "class": "state_change", "entity": "vm",
            "metrics": metrics or ("cpu",), "start": start * STEP, "end": (start + 60) * STEP,
        }
    )  # fmt: skip


def _news(*at: tuple[int, str], metric: str = "cpu") -> pl.DataFrame:
    rows = [{"entity": "vm", "metric": metric, "window_end": window * STEP, "kind": kind} for window, kind in at]
    return pl.DataFrame(rows, schema={"entity": str, "metric": str, "window_end": int, "kind": str})


def _settled(news: pl.DataFrame, *truths: GroundTruth) -> list[settling.Settled]:
    return settling.settled(news, truths, TURNED, STEP)


def test_a_series_that_is_called_a_new_normal_is_accepted_then() -> None:
    (made,) = _settled(_news((102, "anomaly"), (140, "new_normal"), (200, "recovered")), _change("there", 100))
    assert (made.noticed, made.accepted, made.alerts, made.quiet, made.again) == (True, 40, 2, True, False)


def test_each_metric_is_judged_alone_and_what_others_say_is_not_its_news() -> None:
    news = pl.concat([_news((101, "anomaly"), (103, "new_normal")), _news((101, "anomaly"), metric="_machine")])
    cpu, disk = _settled(news, _change("there", 100, "cpu", "disk"))
    assert (cpu.noticed, cpu.accepted) == (True, 3)
    assert (disk.noticed, disk.accepted, disk.alerts) == (False, -1, 0)


def test_one_that_goes_on_to_alert_is_not_quiet_and_one_never_called_a_new_normal_is_missed() -> None:
    news = _news((101, "anomaly"), (130, "anomaly"), (160, "anomaly"), (161, "anomaly"), (100 + DAY + 1, "new_normal"))
    (made,) = _settled(news, _change("there", 100))
    assert (made.noticed, made.accepted, made.alerts, made.quiet) == (True, -1, 3, False)
    assert settling.summary([made], 0.5, STEP).accepted == 0.0


def test_a_regime_counts_as_known_once_it_and_the_one_before_were_accepted() -> None:
    changes = _change("there", 100), _change("back", 1100), _change("again", 2100)
    all_told = _news((140, "new_normal"), (1103, "new_normal"), (2105, "new_normal"))
    assert [one.again for one in _settled(all_told, *changes)] == [False, True, True]
    assert settling.summary(_settled(all_told, *changes), 0.5, STEP).recognised == 1.0
    never_there = _news((1103, "new_normal"))
    assert [one.again for one in _settled(never_there, *changes)] == [False, False, False]
    not_back = _news((140, "new_normal"), (2106, "new_normal"))
    made = _settled(not_back, *changes)
    assert [one.again for one in made] == [False, True, False]
    assert settling.summary(made, 0.5, STEP).recognised == 0.0


def test_the_shares_are_of_the_series_noticed() -> None:
    news = pl.concat([_news((140, "new_normal")), _news((150, "anomaly"), metric="disk")])
    found = settling.summary(_settled(news, _change("there", 100, "cpu", "disk", "net")), 1.0, STEP)
    assert (found.series, found.noticed, found.accepted, found.few, found.quiet) == (3, 2 / 3, 0.5, 1.0, 1.0)
    assert math.isclose(found.chance, math.exp(-(DAY - 60) / (30 * DAY)))
    assert math.isnan(found.recognised)

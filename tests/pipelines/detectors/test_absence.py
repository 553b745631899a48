"""Absence of series and machines, on frames."""

import numpy as np
import polars as pl
import pytest

from pipelines.contracts.explanations import explained
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.metrics.detection import Detection

MINUTE = 60_000
STEPS = 200


def _frame(*holes: tuple[str, str, int, int], machines: dict[str, str]) -> pl.DataFrame:
    """A value a minute of each metric; ``holes``: machine, metric, first and end of what did not come."""
    lost = {(entity, metric, step) for entity, metric, first, end in holes for step in range(first, end)}
    rows = [
        (entity, metric, step * MINUTE, (step + 1) * MINUTE, 50 + 5 * float(np.sin(7.0 * step * step)))
        for entity, metrics in machines.items()
        for metric in metrics
        for step in range(STEPS)
        if (entity, metric, step) not in lost
    ]
    return pl.DataFrame(rows, ["entity", "metric", "window_start", "window_end", "value"], orient="row")


def _judged(frame: pl.DataFrame, size: int = STEPS, end: int | None = None) -> pl.DataFrame:
    """The verdicts on absences and returns, judged in batches of so many minutes, up to an end."""
    detection = Detection(DetectorSettings(), end=end)
    state, made = detection.new_state(), []
    for first in range(0, STEPS, size):
        now = (first + size) * MINUTE
        batch = frame.filter(pl.col("window_end").is_between(first * MINUTE + 1, now))
        verdicts, state = detection.process(batch, state, now=now)
        made.append(verdicts)
    return pl.concat(made).filter(pl.col("kind").is_in(["absence", "recovered"])).sort("window_end", "entity", "metric")


def _news(frame: pl.DataFrame, size: int = STEPS) -> list[tuple[str, str, str, int, int]]:
    """Absences and returns: machine, metric, kind, minute, onset in minutes."""
    minutes = [pl.col(name) // MINUTE for name in ("window_start", "since")]
    return _judged(frame, size).select("entity", "metric", "kind", *minutes).rows()


def test_an_absence_opens_an_incident_and_the_return_closes_it() -> None:
    gone = _judged(_frame(("b", "y", 100, 130), machines={"a": "xy", "b": "xy"}))
    assert gone.select("kind", "incident_state").rows() == [("absence", "open"), ("recovered", "closed")]


def test_a_machine_that_is_gone_is_one_absence_dated_to_its_first_missing_window() -> None:
    gone = [("a", metric, 150, 170) for metric in "xyz"]
    assert _news(_frame(*gone, machines={"a": "xyz", "b": "xy"})) == [
        ("a", "_machine", "absence", 150, 150),
        ("a", "_machine", "recovered", 170, 150),
    ]


def test_a_series_that_is_gone_while_its_machine_reports_is_absent() -> None:
    assert _news(_frame(("b", "y", 100, 130), machines={"a": "xy", "b": "xy"})) == [
        ("b", "y", "absence", 100, 100),
        ("b", "y", "recovered", 130, 100),
    ]


def test_a_machine_of_one_series_is_absent_as_that_series() -> None:
    assert _news(_frame(("a", "x", 150, 170), machines={"a": "x", "b": "x"})) == [
        ("a", "x", "absence", 150, 150),
        ("a", "x", "recovered", 170, 150),
    ]


@pytest.mark.parametrize("size", [1, 50])
@pytest.mark.parametrize(("end", "told"), [(151, False), (190, True)])
def test_no_machine_is_absent_because_the_windows_that_are_judged_end(size: int, end: int, told: bool) -> None:
    """The watermark runs on past the end: a machine whose silence was not certain by then is not absent."""
    frame = _frame(*(("a", metric, 150, STEPS) for metric in "xy"), machines={"a": "xy", "b": "xy"})
    made = _judged(frame.filter(pl.col("window_end") < end * MINUTE), size, end * MINUTE)
    assert made["entity"].to_list() == ["a"] * told


def test_one_lost_window_is_no_absence() -> None:
    assert _news(_frame(("a", "x", 150, 151), ("a", "y", 160, 161), machines={"a": "xy", "b": "xy"})) == []


def test_a_silence_that_lasts_is_told_once() -> None:
    gone = [("a", metric, 150, STEPS) for metric in "xy"]
    assert _news(_frame(*gone, machines={"a": "xy", "b": "xy"}), size=1) == [("a", "_machine", "absence", 150, 150)]


@pytest.mark.parametrize("size", [1, 8, 50])
def test_batches_make_no_difference(size: int) -> None:
    holes = [("a", metric, 150, 170) for metric in "xyz"]
    frame = _frame(*holes, ("b", "y", 100, 130), ("b", "x", 140, 160), machines={"a": "xyz", "b": "xyz", "c": "x"})
    assert _news(frame, size) == _news(frame)


def test_of_the_windows_that_came_a_five_thousandth_is_forgotten_with_each() -> None:
    """The first eleven are not counted: by then it is known how far apart windows are."""
    detection = Detection(DetectorSettings())
    frame = _frame(machines={"a": "x", "b": "x"})
    _, state = detection.process(frame, detection.new_state(), now=STEPS * MINUTE)
    counted = STEPS - 11
    wanted = 5000 * (1 - (1 - 1 / 5000) ** counted)
    for row in range(2):
        assert abs(float(state.series.columns["heard.came"][row]) - wanted) < 1e-3


def _returned(frame: pl.DataFrame) -> pl.DataFrame:
    """All verdicts of the machine `a` on the window at minute 170, in which it sends again."""
    detection = Detection(DetectorSettings())
    verdicts, _ = detection.process(frame, detection.new_state(), now=STEPS * MINUTE)
    return verdicts.filter(entity="a", window_start=170 * MINUTE).sort("metric")


_GONE = [("a", metric, 150, 170) for metric in "xyz"]


def test_the_first_window_after_an_absence_is_a_return_and_no_anomaly_whatever_its_values() -> None:
    """It may be cut short: a count of half a window, a rate of the time in which the machine was down."""
    cut = pl.col("entity").eq("a") & (pl.col("window_start") == 170 * MINUTE)
    frame = _frame(*_GONE, machines={"a": "xyz", "b": "xy"})
    frame = frame.with_columns(value=pl.when(cut).then(-1e9).otherwise("value"))
    back = _returned(frame)
    assert back.select("metric", "kind").rows() == [
        ("_machine", "recovered"),
        ("x", "normal"),
        ("y", "normal"),
        ("z", "normal"),
    ]
    assert back.filter(metric="x")["actual"].item() == -1e9
    after = Detection(DetectorSettings())
    verdicts, _ = after.process(frame, after.new_state(), now=STEPS * MINUTE)
    news = verdicts.filter(pl.col("kind") == "anomaly", entity="a")
    assert news.is_empty(), "it was not learned either"


def test_a_machine_of_which_only_one_metric_is_in_the_first_window_sends_again_all_the_same() -> None:
    frame = _frame(*_GONE, ("a", "x", 170, 171), ("a", "y", 170, 171), machines={"a": "xyz", "b": "xy"})
    assert _returned(frame).select("metric", "kind").rows() == [("_machine", "recovered"), ("z", "normal")]


@pytest.mark.parametrize("size", [1, 50, STEPS])
def test_no_metric_is_absent_for_itself_because_its_machine_was_even_if_it_comes_back_later(size: int) -> None:
    """A counter has no rate in the first window after a restart, since that takes two samples."""
    later = [("a", "x", 170, 171), ("a", "y", 170, 173)]
    assert _news(_frame(*_GONE, *later, machines={"a": "xyz", "b": "xy"}), size) == [
        ("a", "_machine", "absence", 150, 150),
        ("a", "_machine", "recovered", 170, 150),
    ]


def test_a_metric_that_does_not_come_back_with_its_machine_is_absent_from_then_on() -> None:
    gone = _frame(*_GONE, ("a", "y", 170, STEPS), machines={"a": "xyz", "b": "xy"})
    assert _news(gone) == [
        ("a", "_machine", "absence", 150, 150),
        ("a", "_machine", "recovered", 170, 150),
        ("a", "y", "absence", 171, 171),
    ]


def test_the_end_of_the_absence_of_a_machine_is_told_in_words_with_how_long_it_lasted() -> None:
    (back,) = (
        _returned(_frame(*_GONE, machines={"a": "xyz", "b": "xy"}))
        .filter(metric="_machine")
        .pipe(explained)
        .rows(named=True)
    )
    assert back["message"] == "a sends again after 20 min."
    assert back["context"] == [{"key": "absent", "value": 1.0}]

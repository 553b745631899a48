"""Detection on frames: one code path for the stream and for files, whatever the batches."""

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from engine.spec.errors import NewnormalError
from pipelines.contracts.records.novelty import JOINED, Novelty
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.metrics.verdict_frames import SCHEMA
from tests.models.contracts import MOST_BYTES

DETECTION = Detection(DetectorSettings())


def _frame(steps: int = 60, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    ends = (np.arange(steps) + 1) * 10_000
    series = [("a", "cpu"), ("a", "mem"), ("a", "net"), ("b", "cpu"), ("c", "cpu"), ("c", "mem")]
    frames = []
    for entity, metric in series:
        value = rng.normal(50, 5, steps)
        if entity == "a":
            value[50:] += 400
        columns = {"window_start": ends - 10_000, "window_end": ends, "value": value}
        frames.append(pl.DataFrame(columns).with_columns(entity=pl.lit(entity), metric=pl.lit(metric)))
    return pl.concat(frames).with_columns(kind=pl.lit("gauge"))


def _judge(*frames: pl.DataFrame) -> pl.DataFrame:
    state, results = DETECTION.new_state(), []
    for frame in frames:
        verdicts, state = DETECTION.process(frame, state)
        results.append(verdicts)
    return pl.concat(results)


WHOLE = _judge(_frame())


def test_the_columns_are_those_of_a_novelty() -> None:
    assert list(SCHEMA) == [name for name in Novelty.model_fields if name != "workload"]  # which follows from the name
    assert dict(WHOLE.schema) == SCHEMA


def test_every_row_gets_a_verdict_and_every_entity_of_several_metrics_a_joined_one() -> None:
    assert WHOLE.filter(pl.col("metric") != JOINED).height == _frame().height
    joined = WHOLE.filter(pl.col("metric") == JOINED)
    assert set(joined["entity"]) == {"a", "c"}
    assert joined.height == 2 * 60


def test_a_shift_of_all_metrics_is_an_anomaly_of_the_machine_with_its_metrics_as_influencers() -> None:
    joined = WHOLE.filter((pl.col("metric") == JOINED) & (pl.col("entity") == "a"))
    onset = joined.filter(pl.col("window_end") == 510_000).row(0, named=True)
    assert onset["kind"] == "anomaly"
    assert onset["since"] == 500_000
    shares = {row["key"]: row["value"] for row in onset["influencers"]}
    assert set(shares) == {"cpu", "mem", "net"}
    assert sum(shares.values()) == pytest.approx(1.0)
    assert joined.filter(pl.col("window_end") < 510_000)["kind"].is_in(["learning", "normal"]).all()


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.integers(1, 60), max_size=4), st.randoms(use_true_random=False))
def test_any_batches_and_any_order_of_rows_give_the_same_verdicts_bit_for_bit(cuts: list[int], random: object) -> None:
    edges = [0, *sorted({10_000 * cut for cut in cuts}), 10**9]
    shuffled = _frame().sample(fraction=1.0, shuffle=True, seed=random.randrange(1000))  # type: ignore[attr-defined]
    parts = [
        shuffled.filter((pl.col("window_end") > low) & (pl.col("window_end") <= high))
        for low, high in itertools.pairwise(edges)
    ]
    assert_frame_equal(_judge(*parts), WHOLE, check_exact=True)


def test_a_machine_that_gets_metrics_in_the_middle_of_a_frame_is_judged_as_if_each_window_came_by_itself() -> None:
    """Models hold 4, 8, 16, 32 metrics: this machine grows through all of them, and to a second and a third block."""
    rng, frames = np.random.default_rng(5), []
    for number in range(80):
        ends = (np.arange(60) + 1) * 10_000
        own = pl.DataFrame({"window_start": ends - 10_000, "window_end": ends, "value": rng.normal(50, 5, 60)})
        own = own.filter(pl.col("window_end") > 10_000 * (number // 2 + 2 * (number % 3)))
        frames.append(own.with_columns(entity=pl.lit("ab"[number == 39]), metric=pl.lit(f"m{number:02}")))
    whole = pl.concat([*frames, _frame().drop("kind")])
    by_window = [part for _, part in whole.sort("window_end").group_by("window_end", maintain_order=True)]
    assert_frame_equal(_judge(whole), _judge(*by_window), check_exact=True)


def test_the_state_goes_through_tables_without_a_change() -> None:
    frame = _frame()
    early, late = frame.filter(pl.col("window_end") <= 300_000), frame.filter(pl.col("window_end") > 300_000)
    first, state = DETECTION.process(early, DETECTION.new_state())
    tables = {name: pl.from_arrow(table).to_arrow() for name, table in state.to_tables().items()}  # type: ignore[union-attr]
    second, _ = DETECTION.process(late, DETECTION.from_tables(tables))
    assert_frame_equal(pl.concat([first, second]), WHOLE, check_exact=True)


def test_a_column_that_old_state_lacks_gets_its_default() -> None:
    _, state = DETECTION.process(_frame(), DETECTION.new_state())
    tables = state.to_tables()
    tables["series"] = tables["series"].drop_columns(["record.low"])
    restored = DETECTION.from_tables(tables)
    assert (restored.series.columns["record.low"] == 0).all()
    assert DETECTION.process(_frame(), restored)[0].height == WHOLE.height


def test_a_table_without_its_keys_is_refused() -> None:
    tables = DETECTION.new_state().to_tables()
    with pytest.raises(NewnormalError, match="STATE_INVALID"):
        DETECTION.from_tables({"series": tables["series"].drop_columns(["metric"])})


def test_missing_values_and_missing_optional_columns_are_taken() -> None:
    frame = (
        _frame()
        .drop("kind")
        .with_columns(value=pl.when(pl.col("window_end") % 30_000 == 0).then(None).otherwise("value"))
    )
    verdicts = _judge(frame)
    missing = verdicts.filter(pl.col("window_end") % 30_000 == 0, pl.col("metric") != JOINED)
    assert missing["actual"].is_null().all()
    assert (missing["record_score"] == 0).all()
    assert verdicts["typical"].is_nan().sum() == 0


def test_no_rows_give_no_verdicts() -> None:
    verdicts, _ = DETECTION.process(_frame().clear(), DETECTION.new_state())
    assert dict(verdicts.schema) == SCHEMA
    assert verdicts.is_empty()


def test_two_values_of_one_series_at_one_time_are_both_judged_in_their_order() -> None:
    verdicts = _judge(pl.concat([_frame(20), _frame(20, seed=1)]))
    assert verdicts.filter(pl.col("metric") != JOINED).height == 2 * _frame(20).height


def _counted(settings: DetectorSettings, metric: str = "errors", steps: int = 60) -> pl.DataFrame:
    """What was believed when a burst of rare events came: the means of six samples a window."""
    value = np.append(np.random.default_rng(0).poisson(0.6, steps) / 6, 20.0)
    ends = (np.arange(steps + 1) + 1) * 60_000
    frame = pl.DataFrame({"window_start": ends - 60_000, "window_end": ends, "value": value}).with_columns(
        entity=pl.lit("a"), metric=pl.lit(metric), kind=pl.lit("count"), count=pl.lit(6)
    )
    detection = Detection(settings)
    return detection.process(frame, detection.new_state())[0].filter(window_end=ends[-1])


def test_a_count_is_judged_by_the_family_of_counts_unless_a_setting_says_otherwise() -> None:
    by_count, pattern = {"count": 1.0}, {"err*": "mixture", "*": "count"}
    for settings_, metric, believed in (
        (DetectorSettings(), "errors", by_count),
        (DetectorSettings(family=pattern), "errors", None),
        (DetectorSettings(family=pattern), "hits", by_count),
    ):
        row = _counted(settings_, metric).row(0, named=True)
        assert row["kind"] == "anomaly"
        experts = {name: weight for name, weight in row["experts"].items() if weight is not None}
        assert experts == by_count if believed else set(experts) == {"level", "log_level", "hour"}
        assert believed is None or row["upper"] * 6 == round(row["upper"] * 6), "a bound is a number of events"


def test_a_series_takes_up_what_its_models_may_and_208_bytes_at_the_most() -> None:
    state = DETECTION.process(_frame(), DETECTION.new_state())[1]
    assert sum(column[:1].nbytes for column in state.series.columns.values()) <= MOST_BYTES + 128 + 80


def test_there_is_a_band_from_the_third_value_of_a_series_on() -> None:
    """Fewer say nothing of how far values spread, and a chart of a band of any width would show nothing else."""
    frame = _frame(steps=5)
    band = _judge(frame).filter(pl.col("metric") != JOINED).sort("entity", "metric", "window_end")
    assert band["typical"].null_count() == 0
    for bound in ("lower", "upper"):
        assert band[bound].is_null().to_list() == [True, True, False, False, False] * 6
    largest = frame["value"].max()
    assert isinstance(largest, float) and band["upper"].max() < 10 * largest  # type: ignore[operator]

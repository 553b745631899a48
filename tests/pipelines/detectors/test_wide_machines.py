"""Machines of more metrics than one model takes: all count, and what is known stays when metrics come and go."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

from models.machine.joined import Windows
from pipelines.contracts.records.novelty import JOINED
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.metrics.state import DetectionState

DETECTION = Detection(DetectorSettings())
STEP = 60_000
WINDOWS = 260


def _values(metrics: int, seed: int = 0) -> np.ndarray:
    """Values that follow two loads, so that each is known from any few others; shape (windows, metrics)."""
    rng = np.random.default_rng(seed)
    loads, weights = (
        rng.normal(size=(WINDOWS, 2)),
        rng.choice([-1, 1], (2, metrics)) * rng.uniform(0.7, 1.3, (2, metrics)),
    )
    values: np.ndarray = 50 + 3 * loads @ weights + 0.2 * rng.normal(size=(WINDOWS, metrics))
    return values


def _frame(values: np.ndarray, entity: str = "a") -> pl.DataFrame:
    """A row for each value that is not NaN."""
    windows, metrics = values.shape
    ends = np.repeat(STEP * np.arange(1, windows + 1), metrics)
    names = np.tile([f"m{number:03}" for number in range(metrics)], windows)
    frame = pl.DataFrame({"metric": names, "window_end": ends, "value": values.reshape(-1)})
    return frame.with_columns(entity=pl.lit(entity), window_start=pl.col("window_end") - STEP).filter(
        pl.col("value").is_not_nan()
    )


def _judge(*frames: pl.DataFrame) -> tuple[pl.DataFrame, DetectionState]:
    state, results = DETECTION.new_state(), []
    for frame in frames:
        verdicts, state = DETECTION.process(frame, state)
        results.append(verdicts)
    return pl.concat(results), state


def _last(verdicts: pl.DataFrame) -> dict[str, object]:
    """The last joined verdict, with its influencers as a dictionary."""
    row = verdicts.filter(metric=JOINED).sort("window_end").row(-1, named=True)
    return row | {"influencers": {named["key"]: named["value"] for named in row["influencers"]}}


def _opposed(values: np.ndarray, metric: int) -> np.ndarray:
    """The same, but for three windows at the end a metric is on the wrong side: common by itself, not with others."""
    mean, spread = np.nanmean(values[:, metric]), np.nanstd(values[:, metric])
    changed = values.copy()
    changed[-3:, metric] = mean - 2 * spread * np.sign(values[-3:, metric] - mean)
    return changed


@pytest.mark.parametrize("metric", [3, 40, 69])
def test_a_metric_that_breaks_with_the_others_is_found_and_named_in_any_block(metric: int) -> None:
    last = _last(_judge(_frame(_opposed(_values(70), metric)))[0])
    assert last["kind"] == "anomaly"
    shares = last["influencers"]
    assert isinstance(shares, dict)
    assert max(shares, key=lambda name: shares[name]) == f"m{metric:03}"
    assert sum(shares.values()) <= 1 + 1e-9


@pytest.mark.parametrize("known", [70, 64])
def test_the_shares_of_all_metrics_of_a_window_add_up_and_each_has_an_expected_value(known: int) -> None:
    """Also in the window in which a new block begins."""
    values = _values(70)
    _, state = _judge(_frame(values[:-1, :known]))
    series = state.series.rows(("a", f"m{number:03}") for number in range(70))
    windows = Windows(np.array([0]), np.array([STEP * WINDOWS]), np.array([0, 70]))
    together = DETECTION.machines.step(state, windows, series, values[-1])
    assert together.shares.sum() == pytest.approx(1.0)
    off = np.abs(together.expected - values[-1])[:known]
    assert (off < 0.8 * values.std(axis=0)[:known] + 0.5).all(), "NaN is not less"


@pytest.mark.parametrize("metrics", [4, 32, 45])
def test_a_new_metric_costs_nothing_of_what_is_known_of_the_others(metrics: int) -> None:
    """It comes one window before another metric breaks with the others; a model that starts anew is silent."""
    values = _opposed(_values(metrics + 1), 2)
    values[:-4, metrics] = np.nan
    last = _last(_judge(_frame(values))[0])
    assert last["kind"] == "anomaly"
    shares = last["influencers"]
    assert isinstance(shares, dict)
    assert max(shares, key=lambda name: shares[name]) == "m002"


def test_metrics_that_leave_cost_nothing_of_what_is_known_of_the_others() -> None:
    """The second block and a part of the first are gone for 160 windows when a metric breaks with the others."""
    values = _opposed(_values(60), 2)
    values[100:, 20:] = np.nan
    last = _last(_judge(_frame(values))[0])
    assert last["kind"] == "anomaly"


def test_a_wide_machine_is_judged_the_same_whichever_other_machines_are_in_the_call() -> None:
    alone = _judge(_frame(_values(70)))[0]
    others = [_frame(_values(metrics, metrics), f"b{metrics}") for metrics in (3, 33, 100)]
    among = _judge(pl.concat([*others, _frame(_values(70))]))[0].filter(entity="a")
    assert_frame_equal(among, alone, check_exact=True)


def _bytes(state: DetectionState) -> int:
    tables = state.to_tables()
    return sum(c.nbytes for name in tables if name.startswith("machines-") for c in tables[name].columns)


def test_the_state_of_a_machine_grows_with_the_number_of_its_metrics() -> None:
    size = {metrics: _bytes(_judge(_frame(_values(metrics)[:3]))[1]) for metrics in (32, 64, 320, 960)}
    for metrics, taken in size.items():
        assert taken / metrics == pytest.approx(size[32] / 32, rel=0.01)


def test_a_machine_that_has_grown_leaves_no_narrower_model_in_its_state() -> None:
    values = _values(40)
    grown = np.where(np.arange(40) <= np.arange(WINDOWS)[:, None], values, np.nan)
    rows = [
        {name: len(table) for name, table in _judge(frame)[1].to_tables().items()}
        for frame in map(_frame, (grown, values))
    ]
    assert rows[0] == rows[1]


def _as_before(name: str, table: pa.Table) -> pa.Table:
    """The same state as written when a machine had one model only, of its first 32 metrics at most."""
    if name.startswith("machines-"):
        return table.filter(pa.array([block == "0" for block in table["block"].to_pylist()])).drop_columns(["block"])
    if name == "entities":
        width, row = pa.array(np.full(table.num_rows, 32)), pa.array(np.zeros(table.num_rows, np.int64))
        return table.append_column("machine.width", width).append_column("machine.row", row)
    return table


def test_state_of_the_version_before_opens_and_only_metrics_beyond_its_model_are_learned_anew() -> None:
    for metrics, same in ((30, True), (40, False)):
        values = _opposed(_values(metrics), 2)
        early, late = _frame(values[:-1]), _frame(values).filter(pl.col("window_end") == STEP * WINDOWS)
        _, state = _judge(early)
        before = {name: _as_before(name, table) for name, table in state.to_tables().items()}
        restored = DETECTION.from_tables({name: table for name, table in before.items() if table.num_rows})
        verdicts, then = DETECTION.process(late, restored)
        assert _last(verdicts)["kind"] == "anomaly"
        assert ("machines-8" in then.to_tables()) == (metrics > 32)
        if same:
            assert_frame_equal(verdicts, DETECTION.process(late, state)[0], check_exact=True)

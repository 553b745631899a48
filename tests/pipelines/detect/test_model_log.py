"""Models of a shard in its state: what is read is what was written, however it was written, kept or lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from engine.spec.duration import NEVER
from engine.spec.operator import Progress
from engine.state import kept_arrays
from engine.state.kept_arrays import KeptArrays
from engine.state.segments import DictSegments, ShardState
from engine.vectorized.build import build
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detect.detect_operator import Detect
from pipelines.jobs.detect.metrics import model_log
from pipelines.jobs.detect.metrics.judging import Metrics
from pipelines.jobs.detect.metrics.model_log import ModelLog
from pipelines.jobs.detect.metrics.state import DetectionState
from pipelines.jobs.detect.state_table import as_frame

STEP, HORIZON = 10_000, 120_000
MACHINES, METRICS = 24, ("cpu", "mem", "net")
CONFIG = Detect(DetectorSettings(emit="all", threshold=30.0), Metrics(HORIZON))
Tables = dict[str, pl.DataFrame]


def batches(count: int) -> list[tuple[pl.DataFrame, int]]:
    """Windows that touch all series, one series, series of all machines or new ones, in turn; and the watermarks."""
    rng, found = np.random.default_rng(3), []
    for number in range(count):
        rows = []
        for machine in range(MACHINES + number // 3):
            for place, metric in enumerate(METRICS):
                whole, one, spread = number % 5 == 0, machine == number % MACHINES, (machine + number) % 3 == place
                if whole or (one if number % 5 < 3 else spread):
                    value = float(rng.normal(50, 3)) + (40 if machine == 7 and number > 12 else 0)
                    end = (number + 1) * STEP
                    rows.append(
                        {"entity": f"m{machine}", "metric": metric, "kind": "gauge", "window_start": end - STEP}
                        | {"window_end": end, "count": 1, "mean": value, "p95": value, "rate": value, "revision": 0}
                    )
        found.append((pl.DataFrame(rows), (number + 1) * STEP))
    return found


def take(batch: pl.DataFrame, before: int, now: int, segments: DictSegments) -> pl.DataFrame:
    """The verdicts of a micro-batch."""
    state = ShardState(segments)
    results = build(CONFIG).process(batch, state, Progress(before, now))
    state.save()
    return results.records


def read(segments: DictSegments, time: int | None = None) -> Tables:
    """What the log holds."""
    models = new_models()
    assert ModelLog(ShardState(segments)).read(models, time)
    return {name: as_frame(table) for name, table in models.to_tables().items()}


def new_models() -> DetectionState:
    return CONFIG.judges.judge(CONFIG.settings).detection.new_state()


def same(some: Tables, others: Tables) -> None:
    assert some.keys() == others.keys()
    for name, table in some.items():
        assert_frame_equal(table, others[name], check_exact=True)


@pytest.fixture(autouse=True)
def _small_chunks_and_space_for_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_arrays, "_SPARE", 0.0)
    monkeypatch.setattr(model_log, "ROWS", 8)
    monkeypatch.setattr(model_log, "MOST_CHANGES", 4)


def test_verdicts_and_state_are_the_same_where_models_are_kept_and_where_all_are_read_each_time(tmp_path: Path) -> None:
    kept, read_anew, before = DictSegments(tmp_path / "kept"), DictSegments(), NEVER
    for batch, now in batches(25):
        found, wanted = (take(batch, before, now, segments) for segments in (kept, read_anew))
        assert_frame_equal(found, wanted, check_exact=True)
        assert kept.values == read_anew.values
        assert (tmp_path / "kept" / "version").exists()
        before = now
    assert "models/0" not in kept.values, "no part was replaced, so this test shows little"


def test_what_an_attempt_left_that_was_not_committed_is_not_used(tmp_path: Path) -> None:
    """A task that was repeated, or went back to an earlier state, after its first attempt had changed what is kept."""
    kept, wanted, before = DictSegments(tmp_path / "kept"), DictSegments(), NEVER
    for number, (batch, now) in enumerate(batches(20)):
        if number % 4 == 1:
            committed = dict(kept.values)
            other = batch.with_columns(mean=pl.col("mean") + 100.0)
            take(other, before, now, kept)  # its state is lost, but not what it has kept
            kept.values = committed
        if number % 7 == 2:
            shutil.rmtree(tmp_path / "kept")  # another machine, or a new driver
        take(batch, before, now, kept)
        take(batch, before, now, wanted)
        assert kept.values == wanted.values
        before = now


def test_what_a_failed_attempt_has_changed_in_place_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, wanted, before = DictSegments(tmp_path / "kept"), DictSegments(), NEVER
    for number, (batch, now) in enumerate(batches(12)):
        if number == 10:
            committed = dict(kept.values)
            with monkeypatch.context() as patched:
                patched.setattr(ModelLog, "write", _fail)
                with pytest.raises(OSError, match="killed"):
                    take(batch, before, now, kept)
            kept.values = committed
        take(batch, before, now, kept)
        take(batch, before, now, wanted)
        assert kept.values == wanted.values
        before = now


def _fail(*_: object) -> None:
    raise OSError("killed")


def test_while_another_attempt_holds_what_is_kept_the_state_is_read_from_the_log(tmp_path: Path) -> None:
    kept, wanted, before = DictSegments(tmp_path / "kept"), DictSegments(), NEVER
    for number, (batch, now) in enumerate(batches(12)):
        holder = KeptArrays(tmp_path / "kept") if number in (5, 6) else None
        take(batch, before, now, kept)
        if holder:
            holder.close()
        take(batch, before, now, wanted)
        assert kept.values == wanted.values
        before = now


def test_a_micro_batch_writes_what_it_touches_and_the_log_does_not_grow() -> None:
    segments, before, written, parts = DictSegments(), NEVER, dict[str, list[int]](), []
    for number, (batch, now) in enumerate(batches(60)):
        known = set(segments.values)
        take(batch, before, now, segments)
        new = [name for name in segments.values if name.startswith("models/") and name not in known]
        rows = sum(len(segments.values[name]) for name in new)
        written.setdefault("all" if number % 5 == 0 else "one" if number % 5 < 3 else "spread", []).append(rows)
        parts.append(sum(name.startswith("models/") for name in segments.values))
        before = now
    late = {name: max(sizes[-8:]) for name, sizes in written.items()}
    assert late["one"] < 0.5 * min(written["all"][-4:])
    assert max(parts[-10:]) < 4 * (60 + MACHINES) * (len(METRICS) + 2) / 8, (
        "parts are removed when nothing refers to them"
    )

"""Models of a shard in its state: what is read is what was written, however it was written, kept or lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal, assert_series_equal

from engine.spec.duration import NEVER
from engine.spec.operator import Progress
from engine.state import kept_arrays
from engine.state.kept_arrays import KeptArrays
from engine.state.rescaling import Rescaling
from engine.state.segments import DictSegments, ShardState, pack, unpack
from engine.vectorized.build import build
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.correction_journal import IDENTITY
from pipelines.jobs.detectors.detect_operator import Detect
from pipelines.jobs.detectors.metrics import model_log
from pipelines.jobs.detectors.metrics.blocks import in_use
from pipelines.jobs.detectors.metrics.judging import Metrics
from pipelines.jobs.detectors.metrics.model_log import ModelLog
from pipelines.jobs.detectors.metrics.state import DetectionState
from pipelines.jobs.detectors.state_table import as_frame
from tests.fixtures import states

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


def growing(count: int, machines: int = 4) -> list[tuple[pl.DataFrame, int]]:
    """Windows of machines that get more and more metrics, with gaps and late windows; and the watermarks."""
    rng, found = np.random.default_rng(5), []
    for number in range(count):
        rows = []
        for machine in range(machines):
            for metric in range(min(3 + 4 * machine + 6 * (number // 8), 36)):
                if rng.random() < 0.08 or (machine == 3 and 15 <= number < 18):
                    continue
                value = float(rng.normal(50, 3)) + (40 if machine == 2 and 14 < number < 24 else 0)
                end = (number - (3 if number > 12 and rng.random() < 0.01 else 0) + 1) * STEP
                rows.append(
                    {"entity": f"m{machine}", "metric": f"k{metric}", "kind": "gauge", "window_start": end - STEP}
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


def as_one_value(segments: DictSegments) -> None:
    """Makes a state that of the versions that stored the models of now and of each instant as a whole."""
    state = ShardState(segments)
    values = {}
    for version in state.notes.pop("models")["versions"]:
        name, time = ("models", None) if version == "now" else (f"snapshot/{version}", int(version))
        values[name] = pack(read(segments, time))
    for name in [name for name in state.sizes if name.startswith("models/")]:
        state.remove(name)
    for name, value in values.items():
        state.put(name, value)
    state.save()


def replaced(segments: DictSegments) -> dict[int, tuple[int, int]]:
    """How many models of each width the log holds, and how many of them wider ones have replaced."""
    models = new_models()
    assert ModelLog(ShardState(segments)).read(models)
    used = {width: int(in_use(table, width, models.entities).sum()) for width, table in models.machines.items()}
    return {width: (len(table), len(table) - used[width]) for width, table in models.machines.items()}


def same(some: Tables, others: Tables) -> None:
    assert some.keys() == others.keys()
    for name, table in some.items():
        assert_frame_equal(table, others[name], check_exact=True)


@pytest.fixture(autouse=True)
def _small_chunks_and_space_for_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_arrays, "_SPARE", 0.0)
    monkeypatch.setattr(model_log, "ROWS", 32)
    monkeypatch.setattr(model_log, "MOST_CHANGES", 4)


@pytest.mark.parametrize(("stream", "count"), [(batches, 25), (growing, 36)], ids=["few at a time", "growing"])
def test_verdicts_and_state_are_the_same_where_models_are_kept_and_where_all_are_read_each_time(
    tmp_path: Path, stream: Callable[[int], list[tuple[pl.DataFrame, int]]], count: int
) -> None:
    kept, read_anew, before = DictSegments(tmp_path / "kept"), DictSegments(), NEVER
    for batch, now in stream(count):
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


def test_a_micro_batch_writes_what_it_touches_and_the_log_does_not_grow(tmp_path: Path) -> None:
    segments, before, written, parts = DictSegments(tmp_path / "kept"), NEVER, dict[str, list[int]](), []
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


def test_what_was_not_changed_of_the_models_of_an_instant_stays() -> None:
    segments, before = DictSegments(), NEVER
    for batch, now in growing(14):
        take(batch, before, now, segments)
        before = now
    state, wanted = ShardState(segments), read(segments, 120_000)
    log = ModelLog(state)
    for entity in ("m0", "m3"):
        models = new_models()
        assert log.read(models, 120_000)
        models.replace(models.only({entity}), {entity})
        log.replace(120_000, models)
    state.save()
    same(read(segments, 120_000), wanted)


def test_state_whose_models_were_one_value_goes_on_with_the_same_verdicts(tmp_path: Path) -> None:
    """Late windows are judged from the snapshots of the version before, until there are newer ones."""
    whole, old, before, revised = DictSegments(), DictSegments(), NEVER, 0
    for number, (batch, now) in enumerate(growing(44)):
        wanted = take(batch, before, now, whole)
        if number == 26:
            as_one_value(old)
            assert {"models", "snapshot/120000", "snapshot/240000"} <= old.values.keys()
            assert not [name for name in old.values if name.startswith("models/")]
            old.kept = tmp_path / "kept"
        found = take(batch, before, now, old)
        assert_frame_equal(found, wanted, check_exact=True)
        revised += int((found["revision"] > 0).sum()) if 26 <= number < 36 else 0
        before = now
    assert revised > 0
    assert not [name for name in old.values if name == "models" or name.startswith("snapshot/")]
    keys = ("entity", "metric", "block")
    found_tables, wanted_tables = (
        {name: table.sort([key for key in keys if key in table.columns]) for name, table in read(state).items()}
        for state in (old, whole)
    )
    same(found_tables, wanted_tables)


@pytest.mark.parametrize("divided", [False, True], ids=["as it is", "divided anew"])
def test_what_an_earlier_version_had_learned_is_known_and_nothing_is_learned_anew(
    tmp_path: Path, divided: bool
) -> None:
    """The file holds a state as commit d92b010 stored it after 20 windows, and what the models then said last of each.

    The models compute something else by now: so what is typical now must lie where that version expected the value.
    """
    recorded = states.read(states.FOLDER / "models-as-one-value.arrow")
    old, said = DictSegments(tmp_path / "kept"), list[pl.DataFrame]()
    old.values = recorded["state"][0].values
    assert {"models", "snapshot/0", "snapshot/120000"} <= old.values.keys()
    if divided:
        whole, old = ShardState(old), DictSegments(tmp_path / "divided")
        state = ShardState(old)
        build(CONFIG).rescale(Rescaling([whole], [state], "entity"))
        state.save()
    for batch, now in growing(44, machines=3)[20:]:
        said.append(take(batch, now - STEP, now, old))
    wanted = unpack(recorded["verdicts"][0].values["verdicts"])["verdicts"]
    found = pl.concat(said).unique(IDENTITY, keep="last")
    assert (wanted["revision"] > 0).any()
    assert {"absence", "learning", "recovered"} <= set(wanted["kind"])
    both = wanted.join(found, on=IDENTITY, suffix="_now")
    assert len(both) == len(wanted)
    for kind in ("absence", "learning"):
        assert_series_equal(both["kind_now"] == kind, both["kind"] == kind, check_names=False)
    known = both.filter(pl.col("lower").is_not_null(), pl.col("kind") != "learning")
    assert len(known) > 1_000
    assert known["typical_now"].is_between(known["lower"], known["upper"]).all()


def test_models_that_wider_ones_have_replaced_are_at_most_half_of_a_table_and_none_of_a_new_shard() -> None:
    segments, before, most = DictSegments(), NEVER, 0
    for number, (batch, now) in enumerate(growing(44, machines=6)):
        take(batch, before, now, segments)
        rows = replaced(segments)
        assert all(gone <= 0.5 * height for height, gone in rows.values())
        most = max(most, *(gone for _, gone in rows.values()))
        if number % 3 == 0 and sum(gone for _, gone in rows.values()):
            divided = [DictSegments() for _ in range(2)]
            new = [ShardState(part) for part in divided]
            CONFIG.judges.judge(CONFIG.settings).rescale(Rescaling([ShardState(segments)], new, "entity"))
            for state in new:
                state.save()
            assert not [gone for part in divided for _, gone in replaced(part).values() if gone]
            used = {width: height - gone for width, (height, gone) in rows.items()}
            assert used == {width: sum(replaced(part)[width][0] for part in divided) for width in used}
        before = now
    assert most > 0, "no model was replaced while others of its width were in use, so this test shows little"
    assert replaced(segments)[8] == (0, 0)

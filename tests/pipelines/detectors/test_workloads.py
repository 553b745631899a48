"""A new replica starts from those of its workload, also if they have ended, whatever the batches and the shards."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from engine.columns.partitioning import slots
from engine.state.rescaling import Rescaling
from engine.state.segments import DictSegments, ShardState
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.detect_operator import Detect
from pipelines.jobs.detectors.metrics import workloads
from pipelines.jobs.detectors.metrics.judging import Metrics
from pipelines.jobs.detectors.metrics.model_log import ModelLog
from pipelines.jobs.detectors.metrics.peers import PeersKept
from pipelines.jobs.detectors.metrics.workloads import Workloads
from pipelines.jobs.detectors.state_table import as_frame
from tests.pipelines.detectors.coming import judged

STEP, HORIZON, PARTITIONS = 10_000, 60_000, 8
ENDS, BEGINS, STEPS = 100, 104, 116
"""The first replica of cart and of mail ends; the second begins a moment later."""

OLD, NEW = "5f7c9d8b6c-b4n7s", "7d4b9c6f5-x2x7p"


def _windows(late: bool = False) -> list[dict[str, Any]]:
    """Carts use 50, mails 900; each is one pod, which is replaced; a host uses 3 all the time."""
    rng, rows = np.random.default_rng(0), []
    for number in range(STEPS):
        pods = [(f"shop/{name}-{OLD}", level) for name, level in (("cart", 50), ("mail", 900)) if number < ENDS]
        pods += [(f"shop/{name}-{NEW}", level) for name, level in (("cart", 50), ("mail", 900)) if number >= BEGINS]
        for machine, level in [*pods, ("host", 3)]:
            end = (number + 1) * STEP
            row = {"entity": machine, "metric": "cpu", "kind": "gauge", "window_start": end - STEP, "window_end": end}
            row |= {"count": 1, "mean": float(rng.normal(level, level / 20)), "p95": None, "rate": None, "revision": 0}
            is_late = late and machine.endswith(OLD) and number == 95
            rows.append(row | {"comes": end + (4 * STEP if is_late else 0)})
    return rows


def _judge(rows: list[dict[str, Any]], every: int) -> tuple[pl.DataFrame, DictSegments]:
    """The last word on each window, and the state."""
    return judged(rows, range(every * STEP, STEPS * STEP, every * STEP), Metrics(HORIZON, PARTITIONS))


def _models(segments: DictSegments) -> Any:
    detect = Detect(DetectorSettings(), Metrics(HORIZON, PARTITIONS))
    models = detect.judges.judge(detect.settings).detection.new_state()
    assert ModelLog(ShardState(segments)).read(models)
    return models


def _workloads(segments: DictSegments) -> Workloads:
    detect = Detect(DetectorSettings(), Metrics(HORIZON, PARTITIONS))
    return Workloads(
        ShardState(segments), detect.judges.judge(detect.settings).detection.detector.predecessors, PARTITIONS
    )


def test_a_replica_that_replaces_another_is_expected_to_be_as_that_was_whatever_the_batches() -> None:
    wanted, segments = _judge(_windows(), 4)
    priors = as_frame(_models(segments).series.to_arrow()).select("entity", "peers.mean", "peers.variance")
    means = dict(priors.select("entity", "peers.mean").iter_rows())
    assert means[f"shop/cart-{NEW}"] == pytest.approx(50, rel=0.02)  # twenty standard errors of 97 values
    assert means[f"shop/mail-{NEW}"] == pytest.approx(900, rel=0.02)
    assert means[f"shop/cart-{OLD}"] == means["host"] == 0
    for every, late in ((1, False), (STEPS, False), (3, True), (7, True)):
        found, _ = _judge(_windows(late), every)
        assert_frame_equal(found, wanted, check_exact=True)


def test_of_what_is_forgotten_the_workload_remembers_what_ended_last_and_it_says_what_a_new_replica_is() -> None:
    segments = _judge(_windows(), 4)[1]
    models, kept = _models(segments), _workloads(segments)
    rows = models.series.find([(f"shop/cart-{end}", "cpu") for end in (NEW, OLD)])
    kept.remember(models, rows[[0]])
    kept.remember(models, rows[[1]])  # ended before the other: nothing new
    one_by_one = kept._remembered()
    kept.state.remove("workloads")
    kept.remember(models, rows)
    assert_frame_equal(kept._remembered(), one_by_one)
    new = pl.DataFrame({"entity": ["shop/cart-6b8f7c9d4-zzzzz", "shop/else-6b8f7c9d4-zzzzz"], "metric": ["cpu"] * 2})
    left = kept.start(models, new, pl.DataFrame())
    assert left["entity"].to_list() == ["shop/else-6b8f7c9d4-zzzzz"]
    (row,) = models.series.find([("shop/cart-6b8f7c9d4-zzzzz", "cpu")])
    assert models.series.columns["peers.mean"][row] == pytest.approx(50, rel=0.05)


def test_what_is_remembered_of_workloads_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "MOST", 1)
    segments = _judge(_windows(), 4)[1]
    models, kept = _models(segments), _workloads(segments)
    for name in ("cart", "mail"):
        kept.remember(models, models.series.find([(f"shop/{name}-{NEW}", "cpu")]))
    places = slots(pl.Series(["shop/cart", "shop/mail"]), PARTITIONS)
    assert kept._remembered().height == len(set(places.tolist()))


def test_with_other_shards_a_workload_keeps_what_is_known_of_it() -> None:
    segments = _judge(_windows(), 4)[1]
    models, kept = _models(segments), _workloads(segments)
    kept.remember(models, models.series.find([(f"shop/{name}-{NEW}", "cpu") for name in ("cart", "mail")]))
    kept.state.save()
    after = [ShardState(DictSegments()) for _ in range(4)]
    PeersKept.rescale(Rescaling([kept.state], after, "entity"))
    for name in ("cart", "mail"):
        (place,) = slots(pl.Series([f"shop/{name}"]), PARTITIONS)
        for shard, state in enumerate(after):
            names = Workloads(state, kept.predecessors, PARTITIONS)._remembered()
            known = names["workload"].to_list() if names.height else []
            assert (f"shop/{name}" in known) == (shard == place % 4)
            assert bool(state.notes.get("peers")) or not known

"""What the detector says on `detector.state`: one message for each change of what it believes of a series."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import orjson
import polars as pl
import pyarrow as pa
import pytest

from engine.columns.partitioning import crc32
from engine.formats import columnar
from engine.formats.heartbeat import HEARTBEAT
from engine.runtime.intake import KAFKA
from engine.testing import Driven
from pipelines.contracts import topics
from pipelines.contracts.records import Features, SeriesState
from pipelines.contracts.settings import DetectorSettings, load
from pipelines.jobs.detectors.beliefs import latest
from pipelines.jobs.detectors.job import detector
from pipelines.jobs.detectors.metrics.detection import Detection

SAID = (topics.RULES, topics.LABELS, topics.CHANGES)
T0, STEP, PARTITIONS = 1_700_000_000_000, 10_000, 4
STATISTICS = ("mean", "std", "min", "max", "last", "p50", "p95", "p99")
HOSTILE = 'a/b"\\\n\x00 é%00'
Series = dict[tuple[str, str], np.ndarray]


def noise(windows: int, level: float = 50.0, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(level, 2.0, windows)


def fed(series: Series, batch: int = 60, emit: str = "all") -> Driven:
    """The job over series of values, NaN for windows that do not come, so many windows in a micro-batch."""
    settings = load().model_copy(update={"detector": DetectorSettings(emit=emit)})  # type: ignore[arg-type]
    driven, offset = Driven(detector(settings), 2), 0
    windows = max(map(len, series.values()))
    for begin in range(0, windows, batch):
        end = min(begin + batch, windows)
        rows: list[tuple[Any, ...]] = []
        for partition in range(PARTITIONS):
            own = [
                {"entity": entity, "metric": metric, "kind": "gauge", "count": 1, "revision": 0}
                | {"window_start": T0 + n * STEP, "window_end": T0 + (n + 1) * STEP}
                | dict.fromkeys(STATISTICS, float(values[n]))
                for (entity, metric), values in series.items()
                if crc32(entity) % PARTITIONS == partition
                for n in range(begin, min(end, len(values)))
                if np.isfinite(values[n])
            ]
            table, now = pa.Table.from_pylist(own, schema=Features.arrow_schema()), T0 + end * STEP
            rows.append((columnar.encode(table, now), topics.FEATURES, partition, offset, now))
            rows += [(HEARTBEAT, topic, partition, offset, now) for topic in SAID]
            offset += 1
        made = [dict(zip(KAFKA.names, row, strict=True)) for row in rows]
        driven.kafka([pa.Table.from_pylist(made, schema=KAFKA)])
    return driven


def said(driven: Driven) -> list[SeriesState]:
    values = (m.value for _, m in driven.messages if m.topic == topics.STATE)
    return [SeriesState.from_json(value) for value in values]


def last(driven: Driven) -> dict[tuple[str, str], SeriesState]:
    return {(state.entity, state.metric): state for state in said(driven)}


def believed(series: Series) -> list[dict[str, Any]]:
    """All that is said of series of values, in order, and the verdicts on them."""
    rows = [
        {"entity": entity, "metric": metric, "window_start": T0 + n * STEP, "window_end": T0 + (n + 1) * STEP}
        | {"value": float(value)}
        for (entity, metric), values in series.items()
        for n, value in enumerate(values)
        if np.isfinite(value)
    ]
    detection = Detection(DetectorSettings(), says=True)
    until = T0 + max(map(len, series.values())) * STEP
    _, state = detection.process(pl.DataFrame(rows), detection.new_state(), now=until)
    each = [latest([said.at(row)], []) for said in state.changed for row in range(len(said.names))]
    return pl.concat([*each, *state.absent]).sort("window_end", maintain_order=True).to_dicts()


def test_a_quiet_series_is_said_a_few_times_while_it_is_learned_and_then_once_in_an_hour() -> None:
    of = believed({("web-1", "cpu"): noise(1_080)})  # three hours
    late = [state for state in of if state["window_end"] > T0 + 3_600_000]
    assert len(of) < 40
    assert 2 <= len(late) <= 6
    assert all(b["window_end"] - a["window_end"] <= 3_600_000 for a, b in pairwise(of))


def test_an_incident_is_said_when_it_opens_and_when_it_ends() -> None:
    values = noise(400)
    values[300:304] = 95.0
    mine = {state["window_start"]: state for state in believed({("web-1", "cpu"): values})}
    onset = mine[T0 + 300 * STEP]
    assert (onset["kind"], onset["incident_state"], onset["actual"]) == ("anomaly", "open", 95.0)
    assert onset["since"] == onset["window_start"]
    after = [mine[start] for start in sorted(mine) if start > onset["window_start"]]
    assert "closed" in [state["incident_state"] for state in after]
    assert (after[-1]["kind"], after[-1]["incident_state"]) == ("normal", None)


def test_a_second_regime_is_said_with_the_level_of_both() -> None:
    state = believed({("db-1", "conn"): np.concatenate([noise(400, 50), noise(400, 120)])})[-1]
    assert state["regime"] == 1
    first, second = state["regimes"]
    assert 45 < first < 55
    assert 115 < second < 125


def test_a_machine_that_falls_silent_is_believed_absent_until_it_is_back() -> None:
    values = noise(500)

    def web_1(its: np.ndarray) -> dict[str, Any]:
        return [s for s in believed({("web-1", "cpu"): its, ("web-2", "cpu"): values}) if s["entity"] == "web-1"][-1]

    state = web_1(values[:300])
    assert (state["kind"], state["incident_state"], state["since"]) == ("absence", "open", T0 + 300 * STEP)
    assert web_1(np.concatenate([values[:300], np.full(100, np.nan), values[400:]]))["kind"] == "normal"


def test_the_last_message_holds_the_band_the_detector_judges_with() -> None:
    driven = fed({("web-1", "cpu"): noise(400)}, batch=100)
    state, verdict = last(driven)["web-1", "cpu"], driven.rows[-1]
    least = 0.25 * (state.upper - state.lower)
    assert 48 < state.typical < 52
    assert all(abs(getattr(state, name) - verdict[name]) <= least for name in ("typical", "lower", "upper"))
    assert state.regime == 0
    assert state.regimes == pytest.approx([50.0], abs=1.0)


def test_what_is_last_said_does_not_depend_on_micro_batches_nor_on_what_is_written_of_verdicts() -> None:
    values = noise(420)
    values[300:310] = 95.0
    series = {("web-1", "cpu"): values, ("web-1", "mem"): noise(420, 20, 1), ("web-2", "cpu"): noise(420, 70, 2)}
    one = last(fed(series, batch=60))
    assert set(one) == {*series, ("web-1", "_machine")}
    assert last(fed(series, batch=140)) == one
    assert last(fed(series, batch=140, emit="novel")) == one


def test_messages_have_a_key_for_each_series_and_lie_in_the_partition_of_the_machine() -> None:
    driven = fed({(HOSTILE, "cpu"): noise(20), (HOSTILE, "c/pu"): noise(20, 5), ("web-2", "cpu"): noise(20)})
    mine = [message for _, message in driven.messages if message.topic == topics.STATE]
    keys = {tuple(orjson.loads(message.key).values()): message.partition for message in mine}
    assert set(keys) == {(HOSTILE, "cpu"), (HOSTILE, "c/pu"), (HOSTILE, "_machine"), ("web-2", "cpu")}
    assert all(partition == crc32(entity) % PARTITIONS for (entity, _), partition in keys.items())


def test_kafka_keeps_the_last_state_of_each_series_for_ever() -> None:
    assert topics.config(topics.STATE)["cleanup.policy"] == "compact"
    assert "retention.ms" not in topics.config(topics.STATE)

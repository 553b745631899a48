"""A mean differs in its last bit where its samples came in other micro-batches; no verdict may hang on that."""

import numpy as np
import polars as pl
import pytest

from models.numbers.arrays import Array
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.metrics.verdict_frames import CHANNELS, NUMBERS

STEPS, MACHINES, SHIFTED = 70, 30, 45
TOLERANCE = 1e-9
"""Verdicts are compared as `newnormal chaos` compares them."""


def _noise(rng: np.random.Generator) -> Array:
    return rng.normal(50, 3, STEPS)


def _shifted(rng: np.random.Generator) -> Array:
    return np.exp(rng.normal(3, 0.4, STEPS)) + np.where(np.arange(STEPS) >= SHIFTED, 80.0, 0.0)


def _wave(rng: np.random.Generator) -> Array:
    return np.asarray(1_000 + 30 * np.sin(np.arange(STEPS) / 5 + rng.uniform(0, 6)) + rng.normal(0, 4, STEPS))


def _thirds(rng: np.random.Generator) -> Array:
    return rng.integers(1, 12, STEPS) / 3


def _whole(rng: np.random.Generator) -> Array:
    return rng.integers(1, 9, STEPS).astype(np.float64)


METRICS = {"cpu": _noise, "latency": _shifted, "memory": _wave, "queue": _thirds, "users": _whole}


def _verdicts(nudged: bool) -> pl.DataFrame:
    rng, bits, ends = np.random.default_rng(7), np.random.default_rng(8), (np.arange(STEPS) + 1) * 10_000
    frames = []
    for machine in range(MACHINES):
        for metric, values in METRICS.items():
            value = values(rng)
            if nudged:
                value = np.nextafter(value, np.where(bits.random(STEPS) < 0.5, -np.inf, np.inf))
            place = {"window_start": ends - 10_000, "window_end": ends, "value": value}
            names = {"entity": f"h{machine}", "metric": metric, "kind": "gauge"}
            frames.append(pl.DataFrame(place).with_columns(pl.lit(text).alias(name) for name, text in names.items()))
    detection = Detection(DetectorSettings(threshold=30.0))
    verdicts, _ = detection.process(pl.concat(frames), detection.new_state())
    return verdicts.unnest("evidence")


@pytest.fixture(scope="module")
def both() -> pl.DataFrame:
    """Each verdict, and the one on the same values in which the last bit is another one."""
    identity = ["entity", "metric", "window_end", "revision"]
    return _verdicts(False).join(_verdicts(True), on=identity, how="full", suffix="_nudged", coalesce=True)


@pytest.mark.parametrize("name", [*NUMBERS, *CHANNELS])
def test_a_number_of_a_verdict_moves_as_little_as_the_value(both: pl.DataFrame, name: str) -> None:
    one, other = (both[column].to_numpy() for column in (name, f"{name}_nudged"))
    apart = both.filter(~pl.Series(np.isclose(one, other, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)))
    assert apart.select("entity", "metric", "window_end", name, f"{name}_nudged").is_empty()


@pytest.mark.parametrize("name", ["kind", "incident_state", "since", "decided"])
def test_what_a_verdict_says_is_the_same(both: pl.DataFrame, name: str) -> None:
    assert both[name].equals(both[f"{name}_nudged"])
    assert (both["kind"] == "anomaly").any()

"""Calibration: on series that stay as they are, verdicts are as rare as they say, whatever the series' distribution."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from models.config import DetectorConfig
from models.detector import Detector

SERIES, WARM, COUNTED, STEP = 60, 1000, 2500, 300_000
"""Of each family; steps that are not counted, and that are; milliseconds a step."""

MONTH = 30 * 86_400_000 / STEP


def _families(rng: np.random.Generator) -> dict[str, np.ndarray]:
    shape = WARM + COUNTED, SERIES
    return {
        "normal": rng.normal(50, 5, shape),
        "lognormal": np.exp(rng.normal(3, 0.6, shape)),
        "gamma": rng.gamma(2.0, 10.0, shape),
        "poisson, high": rng.poisson(30, shape).astype(float),
        "negative binomial": rng.negative_binomial(3, 0.1, shape).astype(float),
        "ratio": rng.binomial(200, 0.02, shape) / 200,
        "quantised": np.round(rng.normal(50, 5, shape) / 4) * 4,
    }


@cache
def _judged() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Probabilities and scores of the steps that count, by family."""
    families = _families(np.random.default_rng(11))
    values = np.concatenate(list(families.values()), axis=1)
    steps, series = values.shape
    detector = Detector(DetectorConfig())
    state, rows = detector.new_state(series), np.arange(series)
    probability, score = np.empty((COUNTED, series)), np.empty((COUNTED, series))
    for step in range(steps):
        verdicts = detector.step(state, rows, np.full(series, step * STEP), values[step])
        if step >= WARM:
            probability[step - WARM], score[step - WARM] = verdicts.probability, verdicts.record_score
    parts = [np.split(array, len(families), axis=1) for array in (probability, score)]
    return dict(zip(families, parts[0], strict=True)), dict(zip(families, parts[1], strict=True))


FAMILIES = list(_families(np.random.default_rng(0)))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("level", [1e-2, 1e-3])
def test_the_share_of_windows_below_a_probability_is_about_that_probability(family: str, level: float) -> None:
    share = float((_judged()[0][family] < level).mean())
    assert level / 1.5 < share < level * 1.5


def test_no_more_than_one_window_in_ten_thousand_is_below_one_in_ten_thousand() -> None:
    share = np.mean([(probability < 1e-4).mean() for probability in _judged()[0].values()])
    assert 1e-4 / 3 < share < 1e-4 * 1.5


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "lognormal"])
def test_at_most_one_false_alarm_a_series_and_month(family: str) -> None:
    assert (_judged()[1][family] >= DetectorConfig().threshold).mean() * MONTH <= 1.0

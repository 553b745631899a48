"""The verdicts on some series stay what they were, to the last of nine digits.

A recorded series of NAB, and simulated ones with outages, a new level on a daily pattern, holes, and counts. A change
of the model changes them, and is to record them anew.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from models.config import DetectorConfig
from models.detector import Detector
from models.families.choice import NONE
from models.families.suited import About

START, STEP = 1_700_000_000_000, 300_000
EVERY = 20
COUNTS = 4
"""The column of counts: their statistics, kept in 32 bits, were also computed in 32 bits then."""


@pytest.fixture(scope="module")
def recorded() -> dict[str, np.ndarray]:
    with np.load(Path(__file__).parent / "recorded" / "verdicts.npz") as file:
        return {name: file[name] for name in file.files}


@pytest.fixture(scope="module")
def replayed(recorded: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Series beside each other, window after window."""
    steps, n = recorded["value"].shape
    detector, about = Detector(DetectorConfig()), About(recorded["metric_kind"], np.full(n, NONE), np.ones(n))
    state, rows = detector.new_state(n), np.arange(n)
    verdicts = [
        detector.step(state, rows, np.full(n, START + step * STEP), recorded["value"][step], None, about)
        for step in range(steps)
    ]
    names = [name for name in recorded if hasattr(verdicts[0], name)]
    return {name: np.array([getattr(verdict, name) for verdict in verdicts]) for name in names}


@pytest.mark.parametrize("name", ["kind", "incident", "turned"])
def test_kinds_and_incidents_are_those_recorded(
    name: str, replayed: dict[str, np.ndarray], recorded: dict[str, np.ndarray]
) -> None:
    np.testing.assert_array_equal(replayed[name], recorded[name])


@pytest.mark.parametrize("name", ["record_score", "lower", "typical", "upper", "probability"])
def test_figures_are_those_recorded(
    name: str, replayed: dict[str, np.ndarray], recorded: dict[str, np.ndarray]
) -> None:
    got, want = replayed[name][:: 1 if name == "record_score" else EVERY], recorded[name]
    np.testing.assert_allclose(np.delete(got, COUNTS, 1), np.delete(want, COUNTS, 1), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(got[:, COUNTS], want[:, COUNTS], rtol=1e-5, atol=1e-5)


def test_the_whole_history_of_each_series_at_once_gives_the_same_verdicts_bit_for_bit(
    replayed: dict[str, np.ndarray], recorded: dict[str, np.ndarray]
) -> None:
    """One call with all windows, series after series; the state lies in columns of their own, and is written back."""
    steps, n = recorded["value"].shape
    detector = Detector(DetectorConfig())
    state = {name: column.copy() for name, column in detector.new_state(n).items()}
    rows, time = np.repeat(np.arange(n), steps), np.tile(START + STEP * np.arange(steps), n)
    about = About(recorded["metric_kind"][rows], np.full(n * steps, NONE), np.ones(n * steps))
    verdicts = detector.step(state, rows, time, recorded["value"].T.ravel(), None, about)
    for name, values in replayed.items():
        np.testing.assert_array_equal(getattr(verdicts, name).reshape(n, steps).T, values, err_msg=name)
    assert (state["seen"] == np.isfinite(recorded["value"]).sum(axis=0)).all()

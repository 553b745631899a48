"""Lingering surprise: it ranks the values of a series below notable evidence, and says nothing above."""

import numpy as np
import pytest

from models.config import DetectorConfig
from models.detector import Detector
from models.evidence.lingering import linger, rank
from models.evidence.score import score
from models.records import constants

LINGERING = constants(all=Detector(DetectorConfig(notable=8.0)).lingering).all
STEP, SPIKES = 300_000, np.arange(400, 1000, 50)


@pytest.fixture(scope="module")
def figures() -> tuple[np.ndarray, np.ndarray]:
    """Score and point evidence of noise: with nothing in it, with one spike, with one every 50 steps; (1000, 3)."""
    values = np.random.default_rng(3).normal(50, 2, (1000, 3))
    values[700, 1], values[SPIKES, 2] = 75.0, 62.0
    detector, rows = Detector(DetectorConfig()), np.arange(3)
    state = detector.new_state(3)
    verdicts = [detector.step(state, rows, np.full(3, k * STEP), row) for k, row in enumerate(values)]
    return np.array([v.record_score for v in verdicts]), np.array([v.evidence["point"] for v in verdicts])


def test_surprise_orders_what_is_below_notable_evidence_and_never_reaches_it() -> None:
    pairs = ((8.0, 0.0), (7.0, 1.0), (1.0, 10.0), (0.0, 1e6))
    ranked = [rank(LINGERING, evidence, surprise, 1000.0) for evidence, surprise in pairs]
    assert (np.diff(ranked) > 0).all()
    assert ranked[-1] < LINGERING.notable
    assert rank(LINGERING, 8.1, 1e6, 1000.0) == 8.1


def test_of_a_new_series_stronger_evidence_is_asked_but_none_that_a_threshold_of_50_would_miss() -> None:
    config = DetectorConfig()
    lingering = constants(all=Detector(config).lingering).all
    asked = [
        next(e for e in np.arange(0, 40, 0.1).tolist() if rank(lingering, e, 0.0, seen) > 0)
        for seen in (0.0, 100.0, 200.0)
    ]
    np.testing.assert_allclose(asked, config.notable * np.array([3.0, 2.0, 1.0]), atol=0.11)
    assert max(asked) < config.half


def test_it_fades_and_of_a_new_series_counts_half() -> None:
    assert linger(LINGERING, 0.0, 40.0, 1000.0) == 40.0
    assert linger(LINGERING, 0.0, 40.0, 25.0) == 20.0
    assert linger(LINGERING, 40.0, 0.0, 1000.0) == pytest.approx(36.0)
    assert linger(LINGERING, 40.0, 50.0, 1000.0) == 50.0


def test_what_follows_a_spike_ranks_above_the_quiet_before_it_and_raises_no_alarm(
    figures: tuple[np.ndarray, np.ndarray],
) -> None:
    scores = figures[0][:, 1]
    assert scores[700] >= 50
    assert scores[701:704].min() > np.quantile(scores[300:700], 0.9)
    assert scores[701:].max() < 50
    assert np.median(scores[760:]) < 1.5 * np.median(scores[300:700])


def test_equal_spikes_far_apart_rank_alike_although_the_series_has_grown_used_to_them(
    figures: tuple[np.ndarray, np.ndarray],
) -> None:
    scores, point = (each[:, 2] for each in figures)
    assert point[SPIKES[-1]] < 0.8 * point[SPIKES[0]]  # calibration has numbed it
    assert scores[SPIKES].min() > np.quantile(np.delete(scores, SPIKES)[100:], 0.95)


def test_notable_evidence_scores_by_itself(figures: tuple[np.ndarray, np.ndarray]) -> None:
    config = DetectorConfig()
    scores, point = (each[:, 1] for each in figures)
    assert scores[700] >= score(point[700:701], config.half)[0] > score(np.array([config.notable]), config.half)[0]

"""The parts of the model, and the detector as a whole, give right results."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from models.config import DetectorConfig
from models.detector import Detector
from models.families import student_t
from models.families.normal_inverse_gamma import Statistics, learn
from models.families.student_t import StudentT
from models.series.mixture import ends, mass_up_to, mixture_of
from models.verdicts import Kind, Verdicts
from tests.models.contracts import run

STEP = 300_000


def _run(values: np.ndarray) -> list[Verdicts]:
    detector = Detector(DetectorConfig())
    state, row = detector.new_state(1), np.array([0])
    return [detector.step(state, row, np.array([i * STEP]), values[i : i + 1]) for i in range(len(values))]


def test_tails_of_student_t_are_within_six_per_cent_of_the_exact_surprise() -> None:
    for dof in (3.0, 5.0, 10.0, 50.0, 1000.0):
        p = np.logspace(-6, np.log10(0.4), 50)
        t = StudentT(0.0, 1.0, dof, 0.0)
        beyond = [student_t.cdf(t, -value) for value in stats.t.isf(p, dof).tolist()]
        np.testing.assert_allclose(-np.log(beyond), -np.log(p), rtol=0.06)


def test_density_of_student_t_is_exact() -> None:
    value = np.linspace(-30, 30, 61)
    density = [student_t.log_density(StudentT(1.5, 2.0, 4.0, 0.0), x) for x in value.tolist()]
    np.testing.assert_allclose(density, stats.t.logpdf(value, 4.0, 1.5, 2.0), rtol=1e-10)


def test_a_density_on_the_log_like_axis_integrates_to_one() -> None:
    value = np.sinh(np.linspace(-12, 12, 20_001))
    density = np.exp([student_t.log_density(StudentT(1.0, 0.5, 8.0, 3.0), x) for x in value.tolist()])
    assert np.trapezoid(density, value) == pytest.approx(1.0, abs=1e-3)


def test_without_forgetting_the_statistics_are_those_of_the_sample() -> None:
    values = np.random.default_rng(0).normal(1e6, 1.0, 500)
    known = Statistics(0.0, 0.0, 0.0)
    for value in values.tolist():
        known = learn(known, value, 1.0, 0.0)
    assert known.mean == pytest.approx(values.mean(), rel=1e-12)
    assert known.squares == pytest.approx(((values - values.mean()) ** 2).sum(), rel=1e-6)


def test_the_ends_of_the_band_have_the_stated_mass_outside() -> None:
    rng, n = np.random.default_rng(0), 5000
    shape = (3, n)
    location, scale, dof = rng.normal(0, 3, shape), np.exp(rng.normal(0, 1, shape)), np.exp(rng.uniform(1, 7, shape))
    weights, z, masses = rng.dirichlet([0.3] * 3, n) * 0.999 + 0.001 / 3, float(ndtri(0.9995)), np.empty((2, n))
    for i in range(n):
        parts = [StudentT(location[k, i], scale[k, i], dof[k, i], 0.0) for k in range(3)]
        mixture = mixture_of(*parts, tuple(np.log(weights[i]).tolist()))
        masses[:, i] = [mass_up_to(mixture, value) for value in ends(mixture, z)]
    miss = np.abs(ndtri(masses) - np.array([[-z], [z]]))
    assert miss.max() < 0.02, "in standard deviations"


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_part_with_a_tail_over_many_magnitudes_does_not_carry_an_end_off(side: float) -> None:
    """Its own end is 5e14: a search that comes from there meets a tail that hardly changes with the value."""
    far, near = StudentT(-4.58 * side, 0.106, 21.2, 0.0), StudentT(1.74 * side, 0.936, 89.0, 0.0)
    mixture = mixture_of(far, StudentT(1.12 * side, 1.54, 2.01, 0.121), near, (-1.8916, -0.2211, -3.0466))
    masses = [mass_up_to(mixture, value) for value in ends(mixture, 3.0)]
    np.testing.assert_allclose(ndtri(masses), [-3.0, 3.0], atol=0.02)


def test_on_gaussian_noise_the_band_holds_nearly_all_and_alarms_are_as_rare_as_they_say() -> None:
    values = np.random.default_rng(0).normal(100, 10, 3000)
    verdicts = _run(values)[200:]
    outside = [not (v.lower[0] <= x <= v.upper[0]) for v, x in zip(verdicts, values[200:], strict=True)]
    assert np.mean(outside) < 0.004
    assert np.mean([v.record_score[0] >= 50 for v in verdicts]) < 0.002
    assert np.mean([v.upper[0] - v.lower[0] for v in verdicts]) < 90


def test_an_outlier_does_not_poison_the_statistics() -> None:
    values = np.random.default_rng(0).normal(100, 10, 500)
    values[300] = 1e9
    verdicts = _run(values)
    assert verdicts[300].kind[0] == Kind.ANOMALY.code
    before, after = verdicts[299], verdicts[302]
    assert after.upper[0] - after.lower[0] < 1.5 * (before.upper[0] - before.lower[0])


def test_a_new_level_alarms_and_is_accepted_in_the_end() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(100, 5, 600), rng.normal(300, 5, 700)])
    verdicts = _run(values)
    assert verdicts[600].kind[0] == Kind.ANOMALY.code
    assert verdicts[600].since[0] == 600 * STEP
    last = verdicts[-50:]
    assert max(v.record_score[0] for v in last) < 50
    assert all(v.lower[0] < 300 < v.upper[0] for v in last)


def test_a_change_of_a_constant_series_alarms() -> None:
    values = np.full(300, 4.0)
    values[250] = 5.0
    scores = [v.record_score[0] for v in _run(values)]
    assert scores[250] >= 50
    assert max(scores[:250]) < 5


def test_a_daily_pattern_is_learned_and_the_wrong_hour_is_noticed() -> None:
    rng, day = np.random.default_rng(0), 288
    t = np.arange(8 * day)
    values = 100 + 50 * np.sin(2 * np.pi * t / day) + rng.normal(0, 2, len(t))
    verdicts = _run(values)
    last = verdicts[-day]
    assert last.upper[0] - last.lower[0] < 60
    detector = Detector(DetectorConfig())
    state, row = detector.new_state(1), np.array([0])
    for i in range(len(t)):
        detector.step(state, row, np.array([i * STEP]), values[i : i + 1])
    peak_value = np.array([150.0])
    at_peak = detector.score(state, row, np.array([(8 * day + 72) * STEP]), peak_value)
    at_trough = detector.score(state, row, np.array([(8 * day + 216) * STEP]), peak_value)
    assert at_peak.evidence["point"][0] < 5 < at_trough.evidence["point"][0]


def test_a_metric_that_was_never_negative_is_not_expected_to_be() -> None:
    verdicts = _run(np.random.default_rng(0).exponential(5.0, 600))[10:]
    assert min(v.lower[0] for v in verdicts) >= 0
    below = _run(np.random.default_rng(0).normal(0.0, 5.0, 600))[10:]
    assert max(v.lower[0] for v in below) < 0


def test_the_band_of_a_daily_pattern_is_as_before_soon_after_an_outlier() -> None:
    rng, day = np.random.default_rng(0), 48
    t = np.arange(40 * day)
    values = 15_000 + 10_000 * np.sin(2 * np.pi * t / day) + rng.normal(0, 800, len(t))
    outlier = 30 * day + 12
    values[outlier : outlier + 3] *= 1.6
    detector = Detector(DetectorConfig())
    state, row = detector.new_state(1), np.array([0])
    width = []
    for i in range(len(t)):
        verdict = detector.step(state, row, np.array([i * 1_800_000]), values[i : i + 1])
        width.append(verdict.upper[0] - verdict.lower[0])
    after, before = np.array(width[outlier + 4 : outlier + day]), np.array(width[outlier + 4 - day : outlier])
    assert np.median(after) < 1.3 * np.median(before)
    assert after.max() < 3 * before.max()


def test_the_hour_of_a_series_at_a_million_million_is_known_to_its_noise() -> None:
    """Two days of a level of 1e12 that is 20 higher at night: 32 bits alone would know it to 65,000."""
    steps, rng = 2 * 288, np.random.default_rng(0)
    night = np.arange(steps) % 288 < 96
    values = 1e12 + np.where(night, 20.0, 0.0) + rng.normal(0, 1, steps)
    model = Detector(DetectorConfig())
    state = run(model, values[:, None])[1]
    known = state["hour.anchor"][0] + state["hour.mean"][0][:24]
    assert np.allclose(known[[1, 2, 3, 4, 5, 6]], 1e12 + 20, atol=2)
    assert np.allclose(known[[10, 12, 16, 20]], 1e12, atol=2)


def test_hours_that_an_earlier_version_kept_from_nought_in_64_bits_predict_the_same() -> None:
    values = 500 + 40 * np.sin(np.arange(3 * 288) / 288 * 2 * np.pi) + np.random.default_rng(0).normal(0, 3, 3 * 288)
    model = Detector(DetectorConfig())
    state = run(model, values[:, None])[1]
    earlier = {name: column.copy() for name, column in state.items()}
    known = earlier["hour.count"] > 0
    earlier["hour.mean"] = np.where(known, state["hour.anchor"][:, None] + state["hour.mean"], 0).astype(np.float32)
    earlier["hour.anchor"][:] = 0.0
    for i in range(48):
        at, value = np.array([(3 * 288 + i) * STEP]), np.array([510.0 + i])
        ours, theirs = (model.step(each, np.array([0]), at, value) for each in (state, earlier))
        assert ours.typical == pytest.approx(theirs.typical, rel=1e-5)
        assert ours.record_score == pytest.approx(theirs.record_score, abs=0.1)

"""Counts and ratios: exact against SciPy, right about simulated series, finite however far out."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp, ndtr, ndtri

from models.families.beta_binomial import Successes, learn_ratio, log_chance, log_tails, new_state, ratio_ahead
from models.families.discrete import mid_tail
from models.families.gamma_poisson import GammaPoisson
from models.families.negative_binomial import NegativeBinomial
from models.kernels import kernel
from models.numbers.arrays import Array
from models.records import Layout, Table

_MEANS, _SIZES = (m.ravel() for m in np.meshgrid([0.001, 0.05, 1.0, 20.0, 5000.0], [0.2, 1.0, 30.0, 1e4]))


def test_negative_binomial_agrees_with_scipy() -> None:
    predictive = NegativeBinomial(_MEANS, _SIZES)
    exact = stats.nbinom(_SIZES, _SIZES / (_SIZES + _MEANS))
    for count in (0, 1, 2, 7, 30, 4000, 6000):
        value = np.full(len(_MEANS), float(count))
        below, above = predictive.log_tails(value)
        np.testing.assert_allclose(predictive.log_density(value), exact.logpmf(count), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(predictive.cdf(value), exact.cdf(count), rtol=1e-8)
        np.testing.assert_allclose(np.exp(below), exact.cdf(count), rtol=1e-8, atol=1e-280)
        np.testing.assert_allclose(np.exp(above), exact.sf(count - 1), rtol=1e-6, atol=1e-280)
        for density, *tails in zip(predictive.log_density(value), below, above, strict=True):
            assert sum(math.exp(mid_tail(tail, density)) for tail in tails) == pytest.approx(1.0, rel=1e-8)


def test_tails_of_counts_stay_finite_and_fall_however_far_out_a_count_is() -> None:
    value = np.array([0.0, 10.0, 1e3, 1e5, 1e8, 1e12])[:, None]
    below, above = NegativeBinomial(np.full(1, 20.0), np.array([50.0])).log_tails(value)
    assert np.isfinite(below).all()
    assert np.isfinite(above).all()
    assert (np.diff(above[:, 0]) < 0).all()
    assert NegativeBinomial(np.full(1, 5e6), np.full(1, 1e4)).log_tails(np.zeros(1))[0] < -5e3


@pytest.mark.parametrize("count", [1000, 3000])
def test_far_out_a_tail_is_the_sum_of_the_probabilities_beyond(count: int) -> None:
    """SciPy's own tail is 0 there; its logarithms of single probabilities are not."""
    mean, size = 20.0, 50.0
    exact = stats.nbinom(size, size / (size + mean))
    beyond = float(logsumexp(exact.logpmf(np.arange(count, count + 2000))))
    above = NegativeBinomial(np.array([mean]), np.array([size])).log_tails(np.array([float(count)]))[1][0]
    assert above == pytest.approx(beyond, abs=2e-3)


def test_far_below_a_tail_is_the_sum_of_the_probabilities_up_to_it() -> None:
    mean, size, count = 1e6, 1e4, 500_000
    exact = stats.nbinom(size, size / (size + mean))
    up_to = float(logsumexp(exact.logpmf(np.arange(count - 5_000, count + 1))))
    below = NegativeBinomial(np.array([mean]), np.array([size])).log_tails(np.array([float(count)]))[0][0]
    assert up_to < -1000
    assert below == pytest.approx(up_to, abs=2e-2)


def test_the_quantile_of_a_count_is_where_the_distribution_function_says() -> None:
    predictive = NegativeBinomial(_MEANS, _SIZES)
    for normal in (-3.29, -1.0, 0.0, 1.0, 3.29):
        value = predictive.quantile(np.full(len(_MEANS), normal))
        inside = value > 1
        np.testing.assert_allclose(ndtri(predictive.cdf(value)[inside]), normal, atol=0.2)
        assert (predictive.cdf(np.ceil(value))[~inside] >= ndtr(normal - 0.2)).all()


@pytest.mark.parametrize("rate", [0.01, 0.3, 8.0, 400.0])
def test_predictions_of_poisson_counts_are_calibrated(rate: float) -> None:
    rng, n = np.random.default_rng(0), 2000
    rates, places, one = GammaPoisson.empty(n), [], np.ones(n)
    for step in range(600):
        count = rng.poisson(rate, n).astype(float)
        if step >= 300:
            places.append(_place(rates.predictive(one), count, rng.random(n)))
        rates = rates.learn(count, one, 1.0, 1 / 2000)
    assert _worst_factor(np.array(places)) < 1.5


@pytest.mark.parametrize("spread", [0.3, 1.0])
def test_counts_that_vary_more_than_poisson_ones_do_not_alarm_all_the_time(spread: float) -> None:
    rng, n = np.random.default_rng(0), 2000
    rates, places, one = GammaPoisson.empty(n), [], np.ones(n)
    for step in range(600):
        count = rng.poisson(50 * rng.gamma(1 / spread, spread, n)).astype(float)
        if step >= 300:
            places.append(_place(rates.predictive(one), count, rng.random(n)))
        rates = rates.learn(count, one, 1.0, 1 / 2000)
    assert _worst_factor(np.array(places)) < 1.5


def test_exposure_counts_a_rate_is_the_same_in_long_and_short_windows() -> None:
    rng, n = np.random.default_rng(0), 500
    rates = GammaPoisson.empty(n)
    for _ in range(400):
        exposure = rng.choice([10.0, 60.0, 300.0], n)
        rates = rates.learn(rng.poisson(0.1 * exposure).astype(float), exposure, 1.0, 0.0)
    assert rates.predictive(np.full(n, 600.0)).expected.mean() == pytest.approx(60.0, rel=0.02)
    assert rates.dispersion().mean() < 1.1


def test_after_many_empty_windows_one_event_is_news_and_a_burst_is_alarming() -> None:
    rates, one = GammaPoisson.empty(1), np.ones(1)
    for _ in range(5000):
        rates = rates.learn(0 * one, one, 1.0, 1 / 6000)
    surprise = -rates.predictive(one).log_tails(np.array([[1.0], [20.0]]))[1][:, 0]
    assert 7 < surprise[0] < 12
    assert surprise[1] > 30


_TRIALS, _YES, _NO = (
    np.array(column)
    for column in zip(
        *[(1.0, 0.5, 0.5), (20.0, 2.0, 6.0), (20.0, 0.3, 900.0), (200.0, 0.5, 0.5), (1000.0, 3.0, 3000.0)],
        *[(1e4, 2.0, 2000.0), (1e4, 300.0, 700.0), (1e5, 8.0, 1e4), (50.0, 5e4, 50.0)],
        strict=True,
    )
)


def test_beta_binomial_agrees_with_scipy() -> None:
    for trials, yes, no in zip(_TRIALS.tolist(), _YES.tolist(), _NO.tolist(), strict=True):
        ahead = Successes(trials, yes, no)
        exact, turned = stats.betabinom(int(trials), yes, no), stats.betabinom(int(trials), no, yes)
        for share in (0.0, 0.0005, 0.02, 0.3, 0.7, 0.98, 1.0):
            count = float(np.round(share * trials))
            assert log_chance(ahead, count) == pytest.approx(exact.logpmf(int(count)), rel=1e-6, abs=1e-6)
            for got, want in zip(log_tails(ahead, count), (exact.cdf(count), turned.cdf(trials - count)), strict=True):
                if want > 1e-9:
                    np.testing.assert_allclose(-got, -np.log(min(want, 1.0)), rtol=0.06, atol=0.02)


def test_a_ratio_of_nothing_or_all_is_a_count_like_others() -> None:
    ahead = Successes(10.0, 1.0, 9.0)
    below, above = log_tails(ahead, 0.0)
    assert (below < -0.1, above) == (True, 0.0)
    below, above = log_tails(ahead, 10.0)
    assert (below, above < -5) == (0.0, True)


@kernel
def _places_of_ratios(table: Table, counts: Array, trials: float, uniform: Array, first: int, places: Array) -> None:
    """Randomised probability integral transform of each second count of shape (steps, n) from a step on."""
    for step in range(len(counts)):
        for series in range(len(table)):
            count = counts[step, series]
            if step >= first and step % 2 == 0:
                ahead = ratio_ahead(table[series], trials)
                at = (step - first) // 2
                mass = math.exp(log_chance(ahead, count))
                places[at, series] = math.exp(log_tails(ahead, count)[0]) - (1 - uniform[at, series]) * mass
            learn_ratio(table[series], count / trials, trials, 1.0, 1 / 2000)


@pytest.mark.parametrize("trials", [1.0, 30.0, 2000.0])
@pytest.mark.parametrize(("chance", "total"), [(0.004, np.inf), (0.004, 500.0), (0.3, 10.0), (0.3, np.inf)])
def test_predictions_of_ratios_are_calibrated(trials: float, chance: float, total: float) -> None:
    rng, shape, first = np.random.default_rng(0), (1200, 2000), 900
    chances = rng.beta(chance * total, (1 - chance) * total, shape) if np.isfinite(total) else np.full(shape, chance)
    counts, places = rng.binomial(int(trials), chances).astype(float), np.empty((150, shape[1]))
    table = Layout(new_state(0)).table(shape[1])
    _places_of_ratios(table, counts, trials, rng.random(places.shape), first, places)
    rare = trials * chance < 1 and np.isfinite(total)
    assert _worst_factor(np.clip(places, 0.0, 1.0)) < (2.0 if rare else 1.5), (
        "slight correlation is hard to see in rare events"
    )


def _place(ahead: NegativeBinomial, count: Array, uniform: Array) -> Array:
    """Randomised probability integral transform: uniform on (0, 1) under a right model."""
    below, _ = ahead.log_tails(count)
    return np.clip(np.exp(below) - (1 - uniform) * np.exp(ahead.log_density(count)), 0.0, 1.0)


def _worst_factor(places: np.ndarray) -> float:
    """How far the share of two-sided probabilities below p is from p, over p = 1e-2, 1e-3, 1e-4."""
    probability = 2 * np.minimum(places, 1 - places)
    shares = [(probability < p).mean() / p for p in (1e-2, 1e-3, 1e-4)]
    return max(max(share, 1 / max(share, 1e-9)) for share in shares)

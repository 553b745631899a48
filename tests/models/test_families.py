"""Constant and quantised series, and priors from other machines."""

import numpy as np
import pytest
from scipy.special import ndtri

from models.families.categorical import chance, gap, learn_place, new_state, place_quantile, rarity, reserve
from models.families.hierarchy import Peers
from models.families.normal_inverse_gamma import Prior, Statistics, learn, predictive
from models.families.student_t import cdf
from models.kernels import kernel
from models.numbers.arrays import Array
from models.records import Layout, Record, Table, record_of


def _learned(values: np.ndarray, forget: float = 1 / 6000) -> Record:
    known = record_of(new_state(1))
    for value in values.tolist():
        learn_place(known, value, 1.0, forget)
    return known


def test_a_constant_series_that_changes_is_novel_and_the_longer_it_was_constant_the_more() -> None:
    short, long = (_learned(np.full(n, 5.0)) for n in (30, 3000))
    for value in (4.0, 5.001, 6.0):
        assert rarity(short, value) > 3.5
        assert rarity(long, value) > 8
    assert rarity(long, 5.0) == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_quantised_series_does_not_alarm_at_its_steps(seed: int) -> None:
    known = _learned(np.random.default_rng(seed).choice([0.0, 25.0, 50.0, 75.0], 3000, p=[0.1, 0.2, 0.3, 0.4]))
    for value in (0.0, 25.0, 50.0, 75.0):
        assert rarity(known, value) < 3
    assert rarity(known, 60.0) > 6.5, "an unseen value between two others"
    assert rarity(known, 100.0) > 6.5


def test_the_chances_of_values_are_those_of_the_sample_and_add_up() -> None:
    values = np.random.default_rng(0).choice([1.0, 2.0, 9.0], 2000, p=[0.5, 0.3, 0.2])
    state = _learned(values, 0.0)
    chances = [chance(state, value) for value in (1.0, 2.0, 9.0)]
    assert sum(chances) + reserve(state) == pytest.approx(1.0)
    np.testing.assert_allclose(chances, [(values == value).mean() for value in (1.0, 2.0, 9.0)], atol=2e-3)
    assert place_quantile(state, 0.0) == np.median(values)
    assert place_quantile(state, ndtri(1e-6)) == 0.0
    assert place_quantile(state, ndtri(1 - 1e-6)) == 10.0


def test_of_more_values_than_slots_the_rarest_is_given_up_and_strangers_become_likely() -> None:
    assert reserve(_learned(np.random.default_rng(0).normal(0, 1, 500))) > 0.9


@kernel
def _rarities(table: Table, values: Array, first: int, rarities: Array) -> None:
    """Rarity of each of the values of shape (steps, n) from a step on, before it is learned."""
    for step in range(len(values)):
        for series in range(len(table)):
            if step >= first:
                rarities[step - first, series] = rarity(table[series], values[step, series])
            learn_place(table[series], values[step, series], 1.0, 1 / 20000)


def test_the_rarity_of_values_of_a_stationary_quantised_series_is_calibrated() -> None:
    rng, n = np.random.default_rng(0), 3000
    chances = np.array([0.6, 0.3, 0.09, 0.009, 0.0009, 0.0001])
    values, rarities = rng.choice(6, (1000, n), p=chances).astype(float), np.empty((300, n))
    _rarities(Layout(new_state(0)).table(n), values, 700, rarities)
    shares = [(np.exp(-rarities) < p).mean() / p for p in (1e-2, 1e-3, 1e-4)]
    assert max(shares) < 1.5, shares


def _all_learn(statistics: list[Statistics], values: np.ndarray, weights: np.ndarray) -> list[Statistics]:
    each = zip(statistics, values.tolist(), weights.tolist(), strict=True)
    return [learn(own, value, weight, 0.0) for own, value, weight in each]


def _masses_up_to(statistics: list[Statistics], prior: np.ndarray, values: np.ndarray) -> np.ndarray:
    """P(X ≤ value) of each series, by its own prior; those of shape (4, n)."""
    each = zip(statistics, prior.T.tolist(), values.tolist(), strict=True)
    return np.array([cdf(predictive(own, Prior(*believed), 0.0, 0.0), value) for own, believed, value in each])


def _cohort(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(50, 5, n), 2 * np.exp(rng.normal(0, 0.2, n))


def test_a_new_machine_is_judged_well_from_its_second_window_when_there_are_others() -> None:
    rng, old, new = np.random.default_rng(0), 100, 2000
    centre, spread = _cohort(old + new, rng)
    statistics = [Statistics(0.0, 0.0, 0.0)] * (old + new)
    exists = np.arange(old + new) < old
    for _ in range(300):
        statistics = _all_learn(statistics, rng.normal(centre, spread), exists.astype(float))
    group = np.zeros(old + new, np.int64)
    surprises = {"peers": [], "alone": []}
    for window in range(10):
        value = rng.normal(centre, spread)
        count, mean, squares = np.array(statistics).T
        peers = Peers.of(group, 1, count, mean, squares)
        assert peers.has_peers(group).all()
        vague = np.stack([mean, 0 * mean, 0 * mean + 0.5, (0.25 * 50 / (1 + count)) ** 2])
        priors = {"peers": np.stack(peers.prior(group)), "alone": vague}
        for name, prior in priors.items():
            if window >= 1:
                below = _masses_up_to(statistics[old:], prior[:, old:], value[old:])
                surprises[name].append(2 * np.minimum(below, 1 - below))
        if window == 2:
            bad = (centre + 6 * spread)[old:]
            masses = [_masses_up_to(statistics[old:], prior[:, old:], bad) for prior in priors.values()]
            caught = [np.mean(mass > 1 - 1e-3) for mass in masses]
        statistics = _all_learn(statistics, value, np.ones(old + new))
    share = np.mean(np.array(surprises["peers"]) < 1e-2) / 1e-2
    assert 1 / 1.5 < share < 1.5
    assert caught[0] > 0.85
    assert caught[0] > caught[1] + 0.2, "without the others two windows say less"


def test_peers_do_not_depend_on_series_of_other_groups() -> None:
    rng, n = np.random.default_rng(0), 40
    count, mean, squares = np.full(n, 50.0), rng.normal(size=n), rng.gamma(5, 10, n)
    group = np.arange(n) % 2
    both, alone = (
        Peers.of(group, 2, count, mean, squares),
        Peers.of(group[::2] * 0, 1, *(c[::2] for c in (count, mean, squares))),
    )
    for name in ("mean", "between", "within", "likeness"):
        assert getattr(both, name)[0] == getattr(alone, name)[0]


def test_series_that_never_moved_teach_a_new_one_nothing() -> None:
    """In the second group one has moved: that is enough."""
    group, n = np.array([0, 0, 1, 1]), np.full(4, 50.0)
    peers = Peers.of(group, 2, n, np.array([5.0, 6.0, 5.0, 6.0]), np.array([0.0, 0.0, 0.0, 20.0]))
    assert peers.has_peers(group).tolist() == [False, False, True, True]
    assert peers.within[0] == 0


def test_half_of_the_reserve_lies_below_the_lowest_value_and_half_above_the_highest() -> None:
    state = _learned(np.tile([3.0, 4.0, 5.0], 4), 0.0)
    half, step = 0.5 * reserve(state), gap(state)
    assert half > 0.01
    assert step == 1.0
    for mass, place in (
        (0.99 * half, 3 - step),
        (1.01 * half, 3.0),
        (1 - 1.01 * half, 5.0),
        (1 - 0.99 * half, 5 + step),
    ):
        assert place_quantile(state, ndtri(mass)) == place, mass

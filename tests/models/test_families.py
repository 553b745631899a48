"""Constant and quantised series, and priors from other machines."""

import numpy as np
from scipy.special import ndtri

from models.families.categorical import Categorical
from models.families.hierarchy import Peers
from models.families.normal_inverse_gamma import NormalInverseGamma, Prior


def _learned(values: np.ndarray, forget: float = 1 / 6000) -> Categorical:
    known = Categorical.empty(values.shape[1])
    for row in values:
        known = known.learn(row, 1.0, forget)
    return known


def test_a_constant_series_that_changes_is_novel_and_the_longer_it_was_constant_the_more() -> None:
    short, long = (_learned(np.full((n, 1), 5.0)).predictive() for n in (30, 3000))
    for value in (4.0, 5.001, 6.0):
        news = [-p.log_rarity(np.array([value]))[0] for p in (short, long)]
        assert news[0] > 3.5
        assert news[1] > 8
    assert long.log_rarity(np.array([5.0]))[0] == 0


def test_a_quantised_series_does_not_alarm_at_its_steps() -> None:
    values = np.random.default_rng(0).choice([0.0, 25.0, 50.0, 75.0], (3000, 200), p=[0.1, 0.2, 0.3, 0.4])
    predictive = _learned(values).predictive()
    for value in (0.0, 25.0, 50.0, 75.0):
        assert (-predictive.log_rarity(np.full(200, value)) < 3).all()
    assert (-predictive.log_rarity(np.full(200, 60.0)) > 6.5).all(), "an unseen value between two others"
    assert (-predictive.log_tails(np.full(200, 100.0))[1] > 6.5).all()


def test_the_chances_of_spikes_are_those_of_the_sample_and_add_up() -> None:
    values = np.random.default_rng(0).choice([1.0, 2.0, 9.0], (2000, 3), p=[0.5, 0.3, 0.2])
    predictive = _learned(values, 0.0).predictive()
    np.testing.assert_allclose(predictive.chances.sum(axis=1) + predictive.reserve, 1.0)
    np.testing.assert_allclose(predictive.cdf(np.full(3, 2.0)), (values <= 2).mean(axis=0), atol=2e-3)
    np.testing.assert_array_equal(predictive.quantile(np.array([[0.0]]))[0], np.median(values, axis=0))
    np.testing.assert_array_equal(predictive.quantile(ndtri(np.array([[1e-6]])))[0], 0.0)
    np.testing.assert_array_equal(predictive.quantile(ndtri(np.array([[1 - 1e-6]])))[0], 10.0)


def test_of_more_values_than_slots_the_rarest_is_given_up_and_strangers_become_likely() -> None:
    values = np.random.default_rng(0).normal(0, 1, (500, 4))
    known = _learned(values)
    assert (known.predictive().reserve > 0.9).all()


def test_the_rarity_of_values_of_a_stationary_quantised_series_is_calibrated() -> None:
    rng, n = np.random.default_rng(0), 3000
    chances = np.array([0.6, 0.3, 0.09, 0.009, 0.0009, 0.0001])
    known, rarity = Categorical.empty(n), []
    for step in range(1000):
        value = rng.choice(6, n, p=chances).astype(float)
        if step >= 700:
            rarity.append(known.predictive().log_rarity(value))
        known = known.learn(value, 1.0, 1 / 20000)
    shares = [(np.exp(rarity) < p).mean() / p for p in (1e-2, 1e-3, 1e-4)]
    assert max(shares) < 1.5, shares


def _cohort(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(50, 5, n), 2 * np.exp(rng.normal(0, 0.2, n))


def test_a_new_machine_is_judged_well_from_its_second_window_when_there_are_others() -> None:
    rng, old, new = np.random.default_rng(0), 100, 2000
    centre, spread = _cohort(old + new, rng)
    known = NormalInverseGamma(*(np.zeros(old + new) for _ in range(3)))
    exists = np.arange(old + new) < old
    for _ in range(300):
        known = known.learn(rng.normal(centre, spread), exists.astype(float), 0.0)
    group = np.zeros(old + new, np.int64)
    surprises = {"peers": [], "alone": []}
    for window in range(10):
        value = rng.normal(centre, spread)
        peers = Peers.of(group, 1, known.count, known.mean, known.squares)
        assert peers.known(group).all()
        vague = Prior(known.mean, 0.0, 0.5, (0.25 * 50 / (1 + known.count)) ** 2)
        for name, prior in (("peers", peers.prior(group)), ("alone", vague)):
            below, above = known.predictive(prior).log_tails(value)
            if window >= 1:
                surprises[name].append(2 * np.exp(np.minimum(below, above))[old:])
        bad = centre + 6 * spread
        if window == 2:
            caught = [
                np.mean(known.predictive(prior).log_tails(bad)[1][old:] < np.log(1e-3))
                for prior in (peers.prior(group), vague)
            ]
        known = known.learn(value, 1.0, 0.0)
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
    assert peers.known(group).tolist() == [False, False, True, True]
    assert peers.within[0] == 0


def test_half_of_the_reserve_lies_below_the_lowest_value_and_half_above_the_highest() -> None:
    predictive = _learned(np.tile([[3.0], [4.0], [5.0]], (4, 1)), 0.0).predictive()
    half = 0.5 * float(predictive.reserve[0])
    assert half > 0.01
    step = float(predictive.step[0])
    for chance, wanted in (
        (0.99 * half, 3 - step),
        (1.01 * half, 3.0),
        (1 - 1.01 * half, 5.0),
        (1 - 0.99 * half, 5 + step),
    ):
        assert predictive.quantile(ndtri(np.array([[chance]])))[0] == wanted, chance


def test_beyond_all_known_values_lies_half_of_the_reserve_and_both_tails_include_the_value() -> None:
    predictive = _learned(np.tile([[3.0], [4.0], [4.0], [5.0]], (5, 1)), 0.0).predictive()
    half = 0.5 * float(predictive.reserve[0])
    chance = (1 - 2 * half) / 4
    for value, below, above in ((2.0, 0, 4), (3.0, 1, 4), (4.0, 3, 3), (4.5, 3, 1), (5.0, 4, 1), (6.0, 4, 0)):
        tails = np.exp(predictive.log_tails(np.array([value])))[:, 0]
        np.testing.assert_allclose(tails, [below * chance + half, above * chance + half], err_msg=str(value))

"""Departures from the recent values: against an independent computation, and how little incidents teach."""

import numpy as np
import pytest

from models.evidence.departure import RECENT, Departures, depart, learn_departure, new_state
from models.records import constants, record_of

CONFIG = constants(all=Departures()).all
MINUTE = 60_000.0


def _nats(values: np.ndarray, gap: float = MINUTE) -> tuple[np.ndarray, np.ndarray, object]:
    """Deviation and nats of each value, and the state after them."""
    state, figures = record_of(new_state(1)), []
    for value in values:
        departure = depart(CONFIG, state, float(value), 10.0)
        figures.append((departure.deviation, departure.nats))
        learn_departure(CONFIG, state, departure, float(value), gap)
    deviations, nats = np.array(figures).T
    return deviations, nats, state


def test_a_value_is_held_against_the_median_of_the_fifteen_before() -> None:
    values = np.random.default_rng(1).normal(50, 2, 300).astype(np.float32).astype(float)
    wanted = [abs(values[i] - np.median(values[i - RECENT : i])) for i in range(RECENT, 300)]
    np.testing.assert_allclose(_nats(values)[0][RECENT:], wanted, rtol=1e-6, atol=1e-6)


def test_the_quantile_is_that_of_the_last_day() -> None:
    values = np.random.default_rng(2).normal(50, 2, 6000)
    deviations, _, state = _nats(values)
    np.testing.assert_allclose(state.edge, np.quantile(deviations[-1440:], 0.95), rtol=0.15)


def test_nothing_is_said_before_a_day_is_known() -> None:
    values = np.random.default_rng(3).normal(50, 2, 1600)
    values[[700, 701]] = 500.0
    values[[1500, 1501]] = 500.0
    nats = _nats(values)[1]
    assert nats[:1440].max() == 0
    assert nats[1501] > 15


def test_one_value_alone_says_about_half_of_what_two_say() -> None:
    values = np.random.default_rng(4).normal(50, 2, 3000)
    values[2990:2992] = 75.0
    nats = _nats(values)[1]
    assert nats[2990] == pytest.approx(nats[2991] / 2, rel=0.1)


def test_an_incident_every_other_day_is_as_clear_after_a_month_as_the_first() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(50, 2, 30 * 1440)
    onsets = np.arange(2, 30, 2) * 1440 + 300
    for onset in onsets:
        values[onset : onset + 10] = 75.0
    nats = _nats(values)[1]
    each = [nats[onset : onset + 5].max() for onset in onsets]
    assert min(each) > 0.6 * each[0] > 10


@pytest.mark.parametrize("gap", [MINUTE, 5 * MINUTE, 60 * MINUTE])
@pytest.mark.parametrize("kind", ["normal", "lognormal", "walk"])
def test_the_nats_of_noise_are_those_of_chance_or_fewer(kind: str, gap: float) -> None:
    rng = np.random.default_rng(6)
    noise = rng.normal(0, 1, 40_000)
    values = {"normal": 50 + 2 * noise, "lognormal": np.exp(0.4 * noise), "walk": np.cumsum(noise) * 0.1}[kind]
    nats = _nats(values, gap)[1][2000:]
    assert (nats > np.log(1000)).mean() < 2e-3, "a chance of one in a thousand comes about once in a thousand"


def test_values_of_any_size_give_finite_nats() -> None:
    values = np.array([0.0, 1e300, -1e300, 1e-300, 5.0] * 600)
    deviations, nats, _ = _nats(values)
    assert np.isfinite(nats).all()
    assert np.isfinite(deviations).all()

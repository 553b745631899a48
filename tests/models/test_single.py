"""Every family as a detector of its own keeps every contract, and its probabilities are what they say."""

from collections.abc import Callable

import numpy as np
import pytest

from models.checks import CONTRACTS, Model
from models.multivariate.config import MultivariateConfig
from models.multivariate.machine import Multivariate
from models.single import Counts, Levels, Ratios, Single

FAMILIES = {"counts": Counts(), "ratios": Ratios(), "levels": Levels()}


def _values(name: str, steps: int = 60) -> np.ndarray:
    rng, t = np.random.default_rng(1), np.arange(steps)
    quiet = rng.poisson(4, steps).astype(float) if name != "ratios" else rng.beta(2, 30, steps)
    spike, holes = quiet.copy(), quiet.copy()
    spike[40] = 1.0 if name == "ratios" else 1e9
    holes[rng.random(steps) < 0.3] = np.nan
    holes[40:42] = np.inf, -np.inf
    columns = [quiet, spike, holes, np.zeros(steps), np.ones(steps), (t == 40) * 1.0, np.full(steps, np.nan)]
    if name == "levels":
        columns += [rng.normal(0, 1e300, steps), np.where(t % 2 == 0, 1e308, -1e308), np.full(steps, -5e-324)]
    if name == "counts":
        columns += [rng.lognormal(20, 9, steps), np.full(steps, 1e308)]
    return np.column_stack(columns)


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.__name__)
@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_keeps_the_contract(name: str, contract: Callable[[Model, np.ndarray], None]) -> None:
    contract(Single(FAMILIES[name]), _values(name))


@pytest.mark.parametrize("name", ["counts", "ratios"])
def test_probabilities_of_stationary_series_are_calibrated(name: str) -> None:
    rng, n, told = np.random.default_rng(0), 500, []
    detector = Single(FAMILIES[name])
    state, rows = detector.new_state(n), np.arange(n)
    for step in range(1300):
        value = rng.poisson(300, n).astype(float) if name == "counts" else rng.binomial(1000, 0.3, n) / 1000
        verdict = detector.step(state, rows, rows, value)
        if step >= 600:
            told.append(verdict.probability)
    _calibrated(np.array(told))


def test_probabilities_of_a_stationary_machine_are_calibrated() -> None:
    rng, n, width, told = np.random.default_rng(0), 250, 5, []
    model = Multivariate(MultivariateConfig(), width)
    state, rows, loading = model.new_state(n), np.arange(n), rng.normal(size=(n, 2, width))
    for step in range(2400):
        value = np.einsum("nk,nkw->nw", rng.normal(size=(n, 2)), loading) + 0.5 * rng.normal(size=(n, width))
        verdict = model.step(state, rows, np.full(n, step * 60_000), value)
        if step >= 1200:
            told.append(verdict.probability)
    _calibrated(np.array(told))


def _calibrated(told: np.ndarray) -> None:
    for p in (1e-2, 1e-3, 1e-4):
        share = (told < p).mean() / p
        assert 1 / 1.5 < share < 1.5, (p, share)

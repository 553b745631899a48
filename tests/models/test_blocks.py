"""Machines with more metrics than one model takes, and models that get more metrics."""

from __future__ import annotations

import numpy as np
import pytest

from models.machine.blocks import join_blocks
from models.machine.config import MultivariateConfig
from models.machine.multivariate import Multivariate

STEP = 60_000


def test_a_machine_of_one_block_has_the_evidence_of_its_block_to_the_last_bit() -> None:
    evidence = np.random.default_rng(0).exponential(3.0, 100)
    whole, shares = join_blocks(np.arange(101), evidence, np.random.default_rng(1).integers(0, 33, 100).astype(float))
    np.testing.assert_array_equal(whole, evidence)
    np.testing.assert_array_equal(shares, np.ones(100))


def test_blocks_are_joined_by_the_harmonic_mean_of_their_probabilities_by_their_number_of_metrics() -> None:
    evidence, metrics = np.array([2.0, 9.0, 0.5, 1.0, 4.0]), np.array([32.0, 32.0, 6.0, 10.0, 30.0])
    whole, shares = join_blocks(np.array([0, 3, 5]), evidence, metrics)
    for machine, own in zip(whole, (slice(0, 3), slice(3, 5)), strict=True):
        probability = np.average(1 / np.exp(-evidence[own]), weights=metrics[own])
        assert np.exp(machine) == pytest.approx(probability)
    assert shares[:3].sum() == pytest.approx(1.0)
    assert shares[3:].sum() == pytest.approx(1.0)
    assert shares[1] > 0.99, "the block whose evidence makes the verdict"


@pytest.mark.parametrize("missing", [False, True])
def test_a_model_that_gets_wider_judges_as_one_that_was_so_wide_from_the_start(missing: bool) -> None:
    rng = np.random.default_rng(2)
    values = np.full((200, 3, 8), np.nan)
    values[:, :, :4] = 50 + rng.normal(size=(200, 3, 2)) @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(200, 3, 4))
    values[120:, :, 4] = values[120:, :, 0] + rng.normal(0, 0.1, (80, 3))
    if missing:
        values[rng.random(values.shape) < 0.1] = np.nan
    narrow, wide = (Multivariate(MultivariateConfig(), width) for width in (4, 8))
    small, rows = narrow.new_state(3), np.arange(3)
    whole, grown = wide.new_state(3), wide.new_state(5)
    for window in range(100):
        narrow.step(small, rows, np.full(3, window * STEP), values[window, :, :4])
        wide.step(whole, rows, np.full(3, window * STEP), values[window])
    wide.widen(grown, rows + 1, {name: column[rows] for name, column in small.items()}, 4)
    for window in range(100, 200):
        one = wide.step(whole, rows, np.full(3, window * STEP), values[window])
        other = wide.step(grown, rows + 1, np.full(3, window * STEP), values[window])
        np.testing.assert_allclose(other.record_score, one.record_score, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(other.shares, one.shares, rtol=1e-4, atol=1e-6)
    assert (grown["seen"] == [0, 200, 200, 200, 0]).all()

"""How surprising the shares are that a window's lines have, given those of the windows before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from models.evidence.mean import mean_surprise
from models.numbers.arrays import Array, Flags, Ints, clamp

_PRIOR_WINDOWS = 5.0
"""Windows that the belief in independent lines is worth."""


@dataclass(frozen=True)
class Mix:
    """The mix of one window of m entities against what a Dirichlet-multinomial expects.

    Args:
        deviance: 2 Σ c ln(c / Nπ) over the known templates, shape (m,).
        freedom: Its expectation, were the lines independent, shape (m,).
        spread: Its variance then, shape (m,).
        gain: What each (entity, template) adds to the deviance, shape (r,).
    """

    deviance: Array
    freedom: Array
    spread: Array
    gain: Array

    @classmethod
    def of(cls, owner: Ints, m: int, count: Array, weight: Array, seen: Flags) -> Mix:
        """Compares counts with their expected shares.

        Args:
            owner: Entity of each row, 0 ≤ owner < m, shape (r,).
            m: Number of entities.
            count: Lines of each row in this window, shape (r,).
            weight: Dirichlet parameter of each row: prior and faded lines so far, shape (r,).
            seen: False for templates that came for the first time: they are judged elsewhere.

        Source: the deviance of a multinomial: P. McCullagh, J. Nelder, Generalized Linear Models (1989), 5.2.

        >>> one, count = np.zeros(3, np.int64), np.array([50.0, 49.0, 1.0])
        >>> mix = Mix.of(one, 1, count, np.array([500.0, 490.0, 10.0]), one == 0)
        >>> mix.deviance.round(6), mix.freedom.round(2)
        (array([0.]), array([2.15]))
        """
        counted, mass = np.where(seen, count, 0.0), np.where(seen, weight, 0.0)
        lines, total = np.bincount(owner, counted, m), np.bincount(owner, mass, m)
        share = mass / np.maximum(total, 1e-300)[owner]
        expected = lines[owner] * share
        log = np.log(np.where(counted > 0, counted / np.maximum(expected, 1e-300), 1.0))
        gain = 2 * (counted * log - counted + expected)
        # a line more or less is noise of the prediction too: the weights are estimates
        noisy = gain / (1 + lines[owner] / np.maximum(total, 1e-300)[owner])
        mean, variance = _poisson_deviance(expected)
        freedom: Array = np.bincount(owner, (1 - share) * mean, m).astype(np.float64)
        spread: Array = np.bincount(owner, (1 - share) * variance, m).astype(np.float64)
        return cls(np.maximum(np.bincount(owner, noisy, m), 0.0), freedom, spread, noisy)

    def surprise(self, dispersion: Array) -> Array:
        """-ln of the chance of a deviance so large, that of a gamma with the same mean and variance, shape (m,).

        Args:
            dispersion: Mean of deviance over expectation in the windows before, at least 1, shape (m,).
        """
        mixed = self.freedom > 0.01
        freedom, spread = np.where(mixed, self.freedom, 1.0), np.where(mixed, self.spread, 1.0)
        ratio = self.deviance / (freedom * dispersion)
        return np.where(mixed, mean_surprise(ratio, np.maximum(freedom * freedom / spread, 0.1)), 0.0)


def _poisson_deviance(expected: Array) -> tuple[Array, Array]:
    """Mean and variance of 2 (c ln(c / e) - c + e) for c ~ Poisson(e), from a table."""
    place = np.log(clamp(expected, _GRID[0], _GRID[-1]))
    few = np.minimum(expected / _GRID[0], 1.0)
    return np.interp(place, np.log(_GRID), _MEAN) * few, np.interp(place, np.log(_GRID), _VARIANCE) * few


def _table(grid: Array) -> tuple[Array, Array]:
    count = np.arange(1200.0)[:, None]
    chance = np.exp(count * np.log(grid) - grid - gammaln(count + 1))
    gain = 2 * (count * np.log(np.maximum(count, 1e-300) / grid) - count + grid)
    mean = (chance * gain).sum(axis=0)
    return mean, (chance * (gain - mean) ** 2).sum(axis=0)


_GRID = np.logspace(-4, np.log10(800.0), 80)
_MEAN, _VARIANCE = _table(_GRID)


def dispersion(odd: Array, windows: Array) -> Array:
    """How much more than independent lines the mix varies, at least 1.

    Args:
        odd: Faded sum of deviance over its expectation, shape (m,).
        windows: Faded number of windows, shape (m,).
    """
    return np.maximum((_PRIOR_WINDOWS + odd) / (_PRIOR_WINDOWS + windows), 1.0)

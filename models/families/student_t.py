"""Student's t, vectorised: the predictive of every normal model with an unknown mean and variance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from models.arrays import LARGEST, Array
from models.families.base import Predictive
from models.normal import log_tails


@dataclass(frozen=True)
class StudentT(Predictive):
    """Student's t of each of n series.

    Tail areas go through Wallace's normalising transformation, z = (8ν+1)/(8ν+3) · √(ν ln(1 + t²/ν)): its inverse
    is closed, it does not underflow, and it costs a tenth of the incomplete beta function. Against the exact
    tail area, -ln p is wrong by less than 6 % for ν ≥ 3 and p ≥ 1e-6 (test). The density is exact.

    Args:
        location: Centre, shape (n,).
        scale: Scale, above 0, shape (n,).
        dof: Degrees of freedom ν, shape (n,).

    Source: D. L. Wallace, Bounds on normal approximations to Student's and the chi-square distributions, Annals of
    Mathematical Statistics 30 (1959).

    >>> t = StudentT(np.array([0.0]), np.array([1.0]), np.array([10.0]))
    >>> np.exp(t.log_density(np.array([1.0]))).round(6)  # exact: 0.230362
    array([0.230362])
    >>> t.cdf(np.array([2.0])).round(3)  # exact: 0.963
    array([0.963])
    >>> t.quantile(np.array([3.0902])).round(2)  # the 99.9th percentile; exact: 4.144
    array([4.15])
    """

    location: Array
    scale: Array
    dof: Array

    @cached_property
    def _factor(self) -> Array:
        return (8 * self.dof + 1) / (8 * self.dof + 3)

    def _bend(self, value: Array) -> tuple[Array, Array]:
        """Standardised value t, and ln(1 + t²/ν)."""
        t = np.minimum(np.maximum((value - self.location) / self.scale, -LARGEST), LARGEST)
        return t, np.log1p(t * t / self.dof)

    def log_density(self, value: Array) -> Array:
        """See `Predictive`."""
        half = 0.5 * self.dof
        norm = gammaln(half + 0.5) - gammaln(half) - 0.5 * np.log(np.pi * self.dof) - np.log(self.scale)
        return norm - (half + 0.5) * self._bend(value)[1]

    def log_tails(self, value: Array) -> tuple[Array, Array]:
        """See `Predictive`."""
        t, bend = self._bend(value)
        return log_tails(self._factor**2 * self.dof * bend, t < 0)

    def cdf(self, value: Array) -> Array:
        """See `Predictive`."""
        return np.exp(self.log_tails(value)[0])

    def quantile(self, normal: Array) -> Array:
        """See `Predictive`."""
        z = normal / self._factor
        t = np.sqrt(self.dof * np.expm1(np.minimum(z * z / self.dof, 300.0)))
        return self.location + np.copysign(t, z) * self.scale

    def median(self) -> Array:
        """See `Predictive`: the centre."""
        return self.location + 0.0

"""A predictive on a compressed axis, asinh(value / unit): logarithmic far from zero, linear near it, any sign."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Array
from models.families.base import Predictive


@dataclass(frozen=True)
class LogLike(Predictive):
    """The distribution of a value whose asinh(value / unit) has the distribution ``inner``.

    Args:
        inner: Distribution on the compressed axis.
        unit: Magnitude at which the axis turns from linear to logarithmic, above 0, shape (n,).

    Source: J. B. Burbidge, L. Magee, A. L. Robb, Alternative transformations to handle extreme values, JASA 83 (1988).

    >>> from models.families.student_t import StudentT
    >>> one = np.array([1.0])
    >>> LogLike(StudentT(5 * one, 0.5 * one, 100 * one), one).quantile(np.array([[-3.0], [0.0], [3.0]])).round(1)
    array([[ 15.9],
           [ 74.2],
           [345.6]])
    """

    inner: Predictive
    unit: Array

    def compress(self, value: Array) -> Array:
        """The value on the compressed axis."""
        return np.arcsinh(value / self.unit)

    def expand(self, place: Array) -> Array:
        """Inverse of `compress`, never beyond 1e150 units or so."""
        return self.unit * np.sinh(np.minimum(np.maximum(place, -345.0), 345.0))

    def log_stretch(self, value: Array) -> Array:
        """Log of how much the axis is compressed at a value: what a density loses in going there."""
        return np.log(np.hypot(value, self.unit))

    def log_density(self, value: Array) -> Array:
        """See `Predictive`."""
        return self.inner.log_density(self.compress(value)) - self.log_stretch(value)

    def log_tails(self, value: Array) -> tuple[Array, Array]:
        """See `Predictive`."""
        return self.inner.log_tails(self.compress(value))

    def cdf(self, value: Array) -> Array:
        """See `Predictive`."""
        return self.inner.cdf(self.compress(value))

    def quantile(self, normal: Array) -> Array:
        """See `Predictive`."""
        return self.expand(self.inner.quantile(normal))

    def median(self) -> Array:
        """See `Predictive`."""
        return self.expand(self.inner.median())

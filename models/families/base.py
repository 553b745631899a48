"""What every predictive distribution can say of a value."""

from __future__ import annotations

from abc import ABC, abstractmethod

from models.numbers.arrays import Array


class Predictive(ABC):
    """The distribution of the next value of each of n series; values have the shape (n,) or (m, n)."""

    @abstractmethod
    def log_density(self, value: Array) -> Array:
        """Natural logarithm of the density (of the probability, for counts)."""

    @abstractmethod
    def log_tails(self, value: Array) -> tuple[Array, Array]:
        """Natural logarithms of P(X ≤ value) and P(X ≥ value), finite however far out the value lies."""

    @abstractmethod
    def cdf(self, value: Array) -> Array:
        """P(X ≤ value)."""

    @abstractmethod
    def quantile(self, normal: Array) -> Array:
        """The value below which a standard normal has the mass that it has below ``normal``."""

"""Several predictives asked the same at once: one call on stacked arrays where the families allow it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.arrays import Array
from models.families.base import Predictive
from models.families.log_like import LogLike
from models.families.student_t import StudentT


class Each:
    """k predictives of n series; every answer has the predictives as first axis: shape (k, n) or (k, m, n).

    Student-t's, plain or on a log-like axis, are stacked into one with parameters of shape (k, 1, n): on short arrays
    the number of NumPy calls is all that costs. Other families are asked in turn.

    Args:
        parts: The predictives.

    >>> one = np.ones(1)
    >>> Each([StudentT(0 * one, one, 9 * one), LogLike(StudentT(0 * one, one, 9 * one), 2 * one)]).cdf(3 * one).round(3)
    array([[0.992],
           [0.869]])
    """

    def __init__(self, parts: Sequence[Predictive]) -> None:
        self.parts = parts
        inner = [part.inner if isinstance(part, LogLike) else part for part in parts]
        self._stack: StudentT | None = None
        if all(isinstance(part, StudentT) for part in inner):
            columns = ([getattr(part, name) for part in inner] for name in ("location", "scale", "dof"))
            self._stack = StudentT(*(np.array(column)[:, None] for column in columns))

    def log_density(self, value: Array) -> Array:
        """`Predictive.log_density` of each; values of shape (n,)."""
        if self._stack is None:
            return np.array([part.log_density(value) for part in self.parts])
        density = self._stack.log_density(self._place(value))[:, 0]
        for index, part in enumerate(self.parts):
            if isinstance(part, LogLike):
                density[index] -= part.log_stretch(value)
        return density

    def log_tails(self, value: Array) -> tuple[Array, Array]:
        """`Predictive.log_tails` of each; values of shape (n,)."""
        if self._stack is None:
            tails = [part.log_tails(value) for part in self.parts]
            return np.array([tail[0] for tail in tails]), np.array([tail[1] for tail in tails])
        below, above = self._stack.log_tails(self._place(value))
        return below[:, 0], above[:, 0]

    def cdf(self, value: Array) -> Array:
        """`Predictive.cdf` of each."""
        if self._stack is None:
            return np.array([part.cdf(value) for part in self.parts])
        area = self._stack.cdf(self._place(value))
        return area if value.ndim > 1 else area[:, 0]

    def quantile(self, normal: Array) -> Array:
        """`Predictive.quantile` of each; ``normal`` of shape (k, m, n)."""
        if self._stack is None:
            return np.array([part.quantile(own) for part, own in zip(self.parts, normal, strict=True)])
        values = self._stack.quantile(normal)
        for row, part in zip(values, self.parts, strict=True):
            if isinstance(part, LogLike):
                row[...] = part.expand(row)
        return values

    def median(self) -> Array:
        """The median of each, shape (k, n)."""
        return np.array([part.median() for part in self.parts])

    def _place(self, value: Array) -> Array:
        """The value on each part's own axis, shape (k, m, n)."""
        places = np.empty((len(self.parts), *(value.shape if value.ndim > 1 else (1, *value.shape))))
        for row, part in zip(places, self.parts, strict=True):
            row[...] = part.compress(value) if isinstance(part, LogLike) else value
        return places

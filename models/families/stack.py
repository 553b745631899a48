"""Several Student-t's of each series, plain or on a log-like axis, as one: each question is one call on arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln

from models.arrays import LARGEST, Array, Ints, clamp
from models.families.log_like import LogLike
from models.families.student_t import StudentT

Part = StudentT | LogLike


class Stack:
    """k predictives of n series; every answer has the predictives as first axis.

    Args:
        parts: The predictives; `LogLike` ones with a `StudentT` within.

    >>> one = np.ones(1)
    >>> two = Stack([StudentT(0 * one, one, 9 * one), LogLike(StudentT(0 * one, one, 9 * one), 2 * one)])
    >>> two.median()
    array([[0.],
           [0.]])
    >>> two.around(np.full((1, 2, 1), 3.0)).round(1).ravel()  # 0.135 % lie beyond each
    array([  4.1,  -4.1,  60.7, -60.7])
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        inner = [_inner(part) for part in parts]
        self.location = np.array([part.location for part in inner])
        self.scale = np.array([part.scale for part in inner])
        self.dof = np.array([part.dof for part in inner])
        factor = (8 * self.dof + 1) / (8 * self.dof + 3)
        self._stretch = factor * factor * self.dof

    def part(self, rows: Ints) -> Stack:
        """That of some of the series."""
        return Stack([_taken(part, rows) for part in self.parts])

    def median(self) -> Array:
        """The median of each, shape (k, n)."""
        return self._values(self.location.copy())

    def deviation(self, value: Array) -> Array:
        """By how many scales values lie above the centres, each on its own axis: of (m, n) shape (k, m, n)."""
        place = np.empty((len(self.parts), *value.shape))
        for row, part in zip(place, self.parts, strict=True):
            row[...] = part.compress(value) if isinstance(part, LogLike) else value
        return clamp((place - self.location[:, None]) / self.scale[:, None], -LARGEST, LARGEST)

    def square(self, deviation: Array) -> Array:
        """z² of the standard normal with the same tail area, by Wallace's transformation (see `StudentT`).

        Args:
            deviation: As from `deviation`, shape (k, m, n).
        """
        result: Array = self._stretch[:, None] * np.log1p(deviation * deviation / self.dof[:, None])
        return result

    def around(self, z: Array) -> Array:
        """The values above and below the centres where a standard normal would be z away; (j, k, n) to (j, k, 2, n)."""
        reach = np.sqrt(self.dof * np.expm1(np.minimum(z * z / self._stretch, 300.0))) * self.scale
        ends = np.empty((*z.shape[:-1], 2, z.shape[-1]))
        np.add(self.location, reach, out=ends[..., 0, :])
        np.subtract(self.location, reach, out=ends[..., 1, :])
        return self._values(ends, axis=1)

    def log_density(self, value: Array) -> Array:
        """Logarithm of the density at values of shape (n,), shape (k, n)."""
        half = 0.5 * self.dof
        norm = gammaln(half + 0.5) - gammaln(half) - 0.5 * np.log(np.pi * self.dof) - np.log(self.scale)
        t = self.deviation(value[None])[:, 0]
        density: Array = norm - (half + 0.5) * np.log1p(t * t / self.dof)
        for number, part in enumerate(self.parts):
            if isinstance(part, LogLike):
                density[number] -= part.log_stretch(value)
        return density

    def _values(self, place: Array, axis: int = 0) -> Array:
        """Values of places, in their stead; the parts are an axis of them."""
        for row, part in zip(np.moveaxis(place, axis, 0), self.parts, strict=True):
            if isinstance(part, LogLike):
                row[...] = part.expand(row)
        return place


def _inner(part: Part) -> StudentT:
    inner = part.inner if isinstance(part, LogLike) else part
    assert isinstance(inner, StudentT)
    return inner


def _taken(part: Part, rows: Ints) -> Part:
    inner = _inner(part)
    taken = StudentT(inner.location[rows], inner.scale[rows], inner.dof[rows])
    return LogLike(taken, part.unit[rows]) if isinstance(part, LogLike) else taken

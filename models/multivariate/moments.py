"""Fading moments of a machine's metrics: locations, scales, correlations within a window and with the one before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.arrays import SMALLEST, Array, Columns, Flags, Rows

_COARSE = 1e-6
"""Differences below this share of a metric's mean mean nothing."""

_FEW = 10
"""With fewer windows the scale is too uncertain to call a value far out."""

Single = NDArray[np.float32]


@dataclass(frozen=True)
class Window:
    """One window of n machines with w metrics each; what is standardised is in units of the scales so far.

    Args:
        value: Finite, whatever stands where it is missing, shape (n, w).
        present: Where there was a value, shape (n, w).
        z: Standardised values; where missing, what was expected; shape (n, w).
        before: The same of the window before, shape (n, w).
        linked: 1 where the window before says something of this one, else 0, shape (n,).
        weight: What the window counts in learning, in [0, 1], shape (n,).
    """

    value: Array
    present: Flags
    z: Array
    before: Array
    linked: Array
    weight: Array


@dataclass(frozen=True)
class Moments:
    """Means, variances and correlations of w metrics; each by the windows in which the metrics were there.

    The correlations are kept in units of the present scales: two matrices a machine, ``now`` (of metrics i and j in one
    window) and ``then`` (of metric i now and j in the window before), float32.

    Args:
        width: Metrics a machine has at most, w.
        forget: Share of the moments forgotten a window.
        clip: A standardised value counts at most this.

    Source: exponentially weighted moments: M. West, J. Harrison, Bayesian Forecasting and Dynamic Models (1997), 16.4;
    correlations with the window before: W. Ku, R. Storer, C. Georgakis, Disturbance detection and isolation by dynamic
    principal component analysis, Chemometrics and Intelligent Laboratory Systems 30 (1995).

    >>> moments, rows, one = Moments(2, 1 / 5000, 1000.0), np.array([0]), np.ones(1)
    >>> state = moments.new_state(1)
    >>> for load in np.random.default_rng(0).normal(0, 1, 500):
    ...     view, value = Rows(state, rows, ""), np.array([[50 + 5 * load, 3 - load]])
    ...     z = moments.standardise(moments.standard(view), value)
    ...     moments.learn(view, Window(value, np.isfinite(value), z, 0 * z, 0 * one, one))
    >>> state["mean"].round(), state["now"].reshape(2, 2).round(2)
    (array([[50.,  3.]]), array([[ 1., -1.],
           [-1.,  1.]], dtype=float32))
    """

    width: int
    forget: float
    clip: float

    def new_state(self, n: int) -> Columns:
        """The columns for n machines of which nothing is known."""
        columns: Columns = {name: np.zeros((n, self.width)) for name in ("count", "mean", "variance", "before")}
        return columns | {name: np.zeros((n, self.width**2), np.float32) for name in ("now", "then")}

    def standard(self, state: Rows) -> tuple[Array, Array, Array]:
        """Effective windows, location and scale of each metric so far, each of shape (n, w)."""
        count, mean = state["count"], state["mean"]
        return count, mean, _scale(mean, state["variance"])

    def standardise(self, standard: tuple[Array, Array, Array], value: Array) -> Array:
        """Values in units of their scale, shape (n, w); 0 for a metric not yet seen, at most k for one seen k times."""
        count, mean, scale = standard
        most = np.minimum(count, self.clip)
        return np.minimum(np.maximum((value - mean) / scale, -most), most)

    def matrix(self, state: Rows, name: str) -> Array:
        """``now`` or ``then`` as float64, shape (n, w, w)."""
        return state[name].astype(np.float64).reshape(-1, self.width, self.width)

    def learn(self, state: Rows, window: Window) -> None:
        """Adds one window to the moments of each machine."""
        count, mean, scale = self.standard(state)
        there = window.present * window.weight[:, None]
        after = count * (1 - self.forget * there) + there
        gain = there / np.maximum(after, 1e-12)
        error = window.value - mean
        step = np.where(count < _FEW, error, np.copysign(np.minimum(np.abs(error), self.clip * scale), error))
        located = mean + gain * step
        variance = state["variance"]
        spread = variance + gain * ((1 - gain) * step * step - variance)
        scaled = _scale(located, spread)

        z = (step / scaled) * np.sqrt(1 - gain) * window.present
        units = (np.sqrt(variance) / scaled).astype(np.float32)
        linked = there * window.linked[:, None]
        before = window.before * scale / scaled
        share = (1 / np.maximum(after, 1.0)).astype(np.float32)
        used = slice(int(np.flatnonzero((after > 0).any(axis=0)).max(initial=-1)) + 1)  # of the others all is 0
        units, share, z, before = units[:, used], share[:, used], z[:, used], before[:, used]
        pace = np.maximum(share[:, :, None], share[:, None, :])
        both = _outer(there[:, used], window.present[:, used].astype(np.float64))
        self._mix(state, "now", units, (z, z), pace * both)
        self._mix(state, "then", units, (z, before), pace * linked.astype(np.float32)[:, used, None])
        state["count"], state["mean"], state["variance"] = after, located, spread
        state["before"] = np.where(count > 0, window.z * scale / scaled, 0.0)

    def _mix(self, state: Rows, name: str, units: Single, pair: tuple[Array, Array], gain: Single) -> None:
        whole, used = state[name], slice(units.shape[1])
        part = whole.reshape(-1, self.width, self.width)[:, used, used]
        old = part * (units[:, :, None] * units[:, None, :])
        part[...] = old + gain * (_outer(*pair) - old)
        state[name] = whole


def _scale(mean: Array, variance: Array) -> Array:
    return np.maximum(np.sqrt(variance), np.maximum(_COARSE * np.abs(mean), SMALLEST))


def _outer(left: Array, right: Array) -> Single:
    return left.astype(np.float32)[:, :, None] * right.astype(np.float32)[:, None, :]

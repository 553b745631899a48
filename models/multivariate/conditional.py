"""What each metric should be, given the machine's other metrics and all of them in the window before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.arrays import Array, Columns, Flags, Rows
from models.multivariate.moments import Moments


class Expectation(NamedTuple):
    """What the machine's metrics say of one another, standardised; every array has the shape (n, w).

    Args:
        z: Standardised values; where missing, what was expected.
        residual: How far off each metric is from what was expected of it, in standard deviations; 0 where missing.
        expected: What was expected of each metric, given all the others.
    """

    z: Array
    residual: Array
    expected: Array


@dataclass(frozen=True)
class Conditional:
    """Regressions read from two inverted matrices, kept in the state and renewed now and then.

    With R the correlations of the metrics within a window, C those with the window before and I·noise the variance that
    is each metric's own, the prediction from the window before is A z₋₁, A = C (R + I·noise)⁻¹, with error covariance
    Σ = R + I·noise - A Cᵀ; of a prediction error e, metric j is off by (Σ⁻¹e)ⱼ / √(Σ⁻¹)ⱼⱼ standard deviations, given
    all others. Before there are many windows R and C are shrunk to uncorrelated.

    Args:
        moments: The moments that it is worked out from.
        noise: Variance that is each metric's own, in standardised units.
        prior: Windows that the belief in uncorrelated metrics is worth.
        refresh: Renewed at least every so many windows, in the beginning more often.

    Sources: Gaussian conditionals from the precision matrix: S. Lauritzen, Graphical Models (1996), 5.1; the matrix
    plus a constant as the covariance of probabilistic PCA with all directions kept: M. Tipping, C. Bishop, JRSS B 61
    (1999); ridge: A. Hoerl, R. Kennard, Technometrics 12 (1970).
    """

    moments: Moments
    noise: float
    prior: float
    refresh: int

    def new_state(self, n: int) -> Columns:
        """The columns for n machines of which nothing is known: uncorrelated metrics."""
        w = self.moments.width
        own = np.broadcast_to(np.eye(w, dtype=np.float32).reshape(-1) / np.float32(1 + self.noise), (n, w * w))
        columns: Columns = {"static": own.copy(), "dynamic": own.copy(), "transition": np.zeros((n, w * w), np.float32)}
        return columns | {"age": np.zeros(n)}

    def expect(self, state: Rows, z: Array, present: Flags, before: Array, linked: Array) -> Expectation:
        """Residuals of one window.

        Args:
            state: The columns.
            z: Standardised values, shape (n, w).
            present: Where there was a value.
            before: Standardised values of the window before.
            linked: 1 where that says something, else 0, shape (n,).
        """
        matrix = self.moments.matrix
        precision, alone = matrix(state, "dynamic"), linked == 0
        if alone.any():
            precision[alone] = matrix(Rows(state.state, state.rows[alone], state.prefix), "static")
        drift = np.matvec(matrix(state, "transition"), before) * linked[:, None]
        error = np.where(present, z - drift, 0.0)
        holes = (~present & (state["count"] > 0)).any(axis=1)  # a column never used is uncorrelated: no hole
        if holes.any():
            precision[holes] = _marginal(precision[holes], present[holes])
        pull = np.matvec(precision, error)
        diagonal = np.maximum(np.diagonal(precision, axis1=1, axis2=2), 1 / (1 + self.noise))
        off = pull / diagonal
        filled = np.where(present, z, drift)
        return Expectation(filled, np.where(present, pull / np.sqrt(diagonal), 0.0), filled - off)

    def distance(self, state: Rows, z: Array) -> Array:
        """Hotelling's T² of each window: squared distance from the mean, in units of the covariance; shape (n,)."""
        squared: Array = np.einsum("nw,nw->n", z, np.matvec(self.moments.matrix(state, "static"), z))
        return np.maximum(squared, 0.0)

    def learn(self, state: Rows, seen: Array) -> None:
        """Renews the regressions of the machines whose time has come.

        Args:
            state: The columns.
            seen: Windows that the moments hold, shape (n,).
        """
        age = state["age"] + 1
        due = age >= np.minimum(1 + np.floor(seen / 16), self.refresh)
        state["age"] = np.where(due, 0.0, age)
        if not due.any():
            return
        held = state["count"]
        used = np.where(due, self.moments.width - (held > 0)[:, ::-1].argmax(axis=1), 0)
        for columns in np.unique(used[due]).tolist():
            at = np.flatnonzero(used == columns)
            self._renew(Rows(state.state, state.rows[at], state.prefix), held[at], columns)

    def _renew(self, state: Rows, held: Array, columns: int) -> None:
        """Renews the regressions; of columns beyond the last one in use there is nothing new.

        Args:
            state: The columns of these machines.
            held: Windows that the moments hold of each metric, shape (n, w).
            columns: How many are in use.
        """
        w, part = self.moments.width, (slice(None), slice(columns), slice(columns))
        held = held[:, :columns]
        shared = np.minimum(held[:, :, None], held[:, None, :])
        trust = shared / (shared + self.prior)
        own = np.eye(columns)
        now, then = (self.moments.matrix(state, name)[part] for name in ("now", "then"))
        diagonal = np.diagonal(now, axis1=1, axis2=2)
        covariance = now * np.where(own > 0, 1.0, trust) + own * self.noise
        blank = self.prior / (held + self.prior) * np.maximum(1 - diagonal, 0.0)
        covariance += own * blank[:, :, None]
        then = then * trust
        static = np.linalg.inv(covariance)
        transition = then @ static
        error = covariance - transition @ then.swapaxes(1, 2)
        dynamic = np.linalg.inv(0.5 * (error + error.swapaxes(1, 2)))
        for name, result in (("static", static), ("dynamic", dynamic), ("transition", transition)):
            whole = state[name].reshape(-1, w, w)
            whole[part] = result
            state[name] = whole.reshape(-1, w * w)


def _marginal(precision: Array, present: Flags) -> Array:
    """The precision of the metrics that are there, when the others are not known; 1 on the diagonal of those."""
    covariance = np.linalg.inv(precision)
    both = present[:, :, None] & present[:, None, :]
    return np.linalg.inv(np.where(both, covariance, np.eye(present.shape[1])))

"""What each metric should be, given the machine's other metrics and all of them in the window before.

Regressions are read from two inverted matrices, kept in the state and renewed now and then. With R the correlations of
the metrics within a window, C those with the window before and I·noise the variance that is each metric's own, the
prediction from the window before is A z₋₁, A = C (R + I·noise)⁻¹, with error covariance Σ = R + I·noise - A Cᵀ; of a
prediction error e, metric j is off by (Σ⁻¹e)ⱼ / √(Σ⁻¹)ⱼⱼ standard deviations, given all others. Before there are many
windows R and C are shrunk to uncorrelated.

Sources: Gaussian conditionals from the precision matrix: S. Lauritzen, Graphical Models (1996), 5.1; the matrix plus a
constant as the covariance of probabilistic PCA with all directions kept: M. Tipping, C. Bishop, JRSS B 61 (1999);
ridge: A. Hoerl, R. Kennard, Technometrics 12 (1970).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from models.kernels import kernel, within
from models.machine.config import MultivariateConfig
from models.machine.state import Machine
from models.numbers.arrays import Array, Columns, Ints


def new_state(n: int, width: int, noise: float) -> Columns:
    """The columns for n machines of which nothing is known: uncorrelated metrics."""
    own = np.broadcast_to(np.eye(width, dtype=np.float32).reshape(-1) / np.float32(1 + noise), (n, width**2))
    return {"static": own.copy(), "dynamic": own.copy(), "transition": np.zeros((n, width**2), np.float32)}


@kernel
def expect(
    config: MultivariateConfig, machine: Machine, z: Array, judgeable: Any, linked: float, outputs: tuple[Array, Array]
) -> None:
    """Compares the metrics of a window with what the others say.

    Args:
        config: The constants.
        machine: The machine.
        z: Standardised values, shape (w,); where there is none to judge, changed to what the window before says.
        judgeable: Where there is one of a metric that had values before, shape (w,).
        linked: 1 where the window before says something, else 0.
        outputs: Written: the residuals, in standard deviations, 0 where missing, and what was expected of each metric,
            given all the others; shape (w,) each.
    """
    width = len(z)
    residual, expected = outputs
    precision = (machine.dynamic if linked > 0 else machine.static).astype(np.float64)
    error, hidden = np.zeros(width), np.zeros(width, np.bool_)
    for i in range(width):
        drift = 0.0
        if linked > 0:
            for j in range(width):
                drift += float(machine.transition[i, j]) * machine.before[j]
        if judgeable[i]:
            error[i] = z[i] - drift
        else:
            z[i] = _unseen(machine.before[i], drift)
            hidden[i] = machine.held[i] > 0  # a column never used is uncorrelated: nothing is missing
    if hidden.any():
        precision = _marginal(precision, np.flatnonzero(hidden))
    for i in range(width):
        pull = 0.0
        for j in range(width):
            pull += precision[i, j] * error[j]
        diagonal = max(precision[i, i], 1 / (1 + config.noise))
        residual[i] = pull / math.sqrt(diagonal) if judgeable[i] else 0.0
        expected[i] = z[i] - pull / diagonal


@kernel
def _unseen(before: float, drift: float) -> float:
    """What is taken for a standardised value that is missing: no farther out than the one before it, or than usual.

    What the window before says may not be bounded: regressions of many metrics on few windows can be explosive, and
    what they say of one gap would be what they start from in the next.

    >>> _unseen(0.2, -0.7), _unseen(0.2, 30.0), _unseen(-4.0, -30.0)
    (-0.7, 1.0, -4.0)
    """
    most = max(abs(before), 1.0)
    return within(drift, -most, most)


@kernel
def _marginal(precision: Array, hidden: Ints) -> Array:
    """The precision of the metrics that are there, when the others are not known; 1 on the diagonal of those.

    It is P - P₁ P₂⁻¹ P₃ with those rows and columns of P that are hidden in place of P₃ and P₁, and both of them in
    P₂ (Schur's complement), so that the cost of a metric that is missing is that of another one.
    """
    if not np.isfinite(precision).all():  # of a damaged state: compiled code cannot invert it, and says so by an error
        return precision
    rows, columns = precision[hidden], np.ascontiguousarray(precision[:, hidden])
    between = np.ascontiguousarray(rows[:, hidden])
    if np.linalg.slogdet(between)[0] <= 0:  # as above: no precision has such a part
        return precision
    rest = precision - columns @ np.linalg.inv(between) @ rows
    for i in hidden:
        rest[i], rest[:, i] = 0.0, 0.0
        rest[i, i] = 1.0
    return rest


@kernel
def learn_regressions(config: MultivariateConfig, machine: Machine, present: Any) -> None:
    """Renews the regressions of a machine when a sixteenth of what is known is new, of the metric least known.

    Args:
        config: The constants.
        machine: The machine; changed.
        present: Metrics that have a value, shape (w,); there is one.
    """
    machine.own[0].age += 1
    if machine.own[0].age < 1 + math.floor(machine.held[present].min() / 16):
        return
    machine.own[0].age = 0.0
    columns = len(machine.held)
    while columns > 0 and machine.held[columns - 1] <= 0:
        columns -= 1
    if columns > 0:  # of columns beyond the last one in use there is nothing new
        _renew(config, machine, columns)


@kernel
def _renew(config: MultivariateConfig, machine: Machine, columns: int) -> None:
    covariance, then = np.empty((columns, columns)), np.empty((columns, columns))
    for i in range(columns):
        for j in range(columns):
            shared = min(machine.held[i], machine.held[j])
            trust = shared / (shared + config.prior)
            then[i, j] = within(float(machine.then[i, j]), -1.0, 1.0) * trust  # a correlation, whatever was stored
            covariance[i, j] = float(machine.now[i, j]) * (1.0 if i == j else trust)
        blank = config.prior / (machine.held[i] + config.prior) * max(1 - float(machine.now[i, i]), 0.0)
        covariance[i, i] += config.noise + blank
    if not (np.isfinite(covariance).all() and np.isfinite(then).all()):
        return  # as in `_marginal`
    static = np.linalg.inv(covariance)
    transition = then @ static
    error = covariance - transition @ then.T
    dynamic = np.linalg.inv(0.5 * (error + error.T))
    for i in range(columns):
        for j in range(columns):
            machine.static[i, j], machine.dynamic[i, j] = static[i, j], dynamic[i, j]
            machine.transition[i, j] = transition[i, j]

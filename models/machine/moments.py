"""Fading moments of a machine's metrics: locations, scales, correlations within a window and with the one before."""

from __future__ import annotations

import math

import numpy as np

from models.kernels import kernel, within
from models.machine.config import MultivariateConfig
from models.machine.state import Machine, Window
from models.numbers.arrays import SMALLEST, Columns

_COARSE = 1e-6
"""Differences below this share of a metric's mean mean nothing."""

_FEW = 10
"""With fewer windows the scale is too uncertain to call a value far out."""


def new_state(n: int, width: int) -> Columns:
    """The columns for n machines of which nothing is known, with so many metrics each.

    Means, variances and correlations, each by the windows in which the metrics were there. The correlations are kept in
    units of the present scales: two matrices a machine, ``now`` (of metrics i and j in one window) and ``then`` (of
    metric i now and j in the window before), float32.

    Source: exponentially weighted moments: M. West, J. Harrison, Bayesian Forecasting and Dynamic Models (1997), 16.4;
    correlations with the window before: W. Ku, R. Storer, C. Georgakis, Disturbance detection and isolation by dynamic
    principal component analysis, Chemometrics and Intelligent Laboratory Systems 30 (1995).
    """
    columns: Columns = {name: np.zeros((n, width)) for name in ("count", "mean", "variance", "before")}
    return columns | {name: np.zeros((n, width**2), np.float32) for name in ("now", "then")}


@kernel
def scale_of(mean: float, variance: float) -> float:
    """The unit of a metric.

    >>> scale_of(64.0, 4.0), round(scale_of(64.0, 0.0), 9)
    (2.0, 6.4e-05)
    """
    return max(math.sqrt(variance), _COARSE * abs(mean), SMALLEST)


@kernel
def standardised(count: float, mean: float, scale: float, value: float) -> float:
    """A value in units of its scale; 0 for a metric not yet seen, at most k for one seen k times.

    Args:
        count: Windows that the moments hold of the metric.
        mean: Its location.
        scale: Its unit.
        value: The value.
    """
    return within((value - mean) / scale, -count, count)


@kernel
def learn_moments(config: MultivariateConfig, machine: Machine, window: Window, weight: float) -> None:
    """Adds a window to the moments of a machine. It at most doubles a variance, so that no outlier hides the next.

    Args:
        config: The constants.
        machine: The machine; changed.
        window: The window.
        weight: What it counts, in [0, 1].
    """
    width = len(machine.held)
    z, there, before = np.zeros(width), np.zeros(width), np.zeros(width)
    units, share = np.zeros(width, np.float32), np.zeros(width, np.float32)
    used = 0
    for i in range(width):
        count, mean, variance = machine.held[i], machine.mean[i], machine.variance[i]
        scale = scale_of(mean, variance)
        there[i] = weight if window.present[i] else 0.0
        after = count * (1 - config.forget * there[i]) + there[i]
        gain = there[i] / max(after, 1e-12)
        error = window.value[i] - mean
        step = error if count < _FEW else math.copysign(min(abs(error), math.sqrt(count) * scale), error)
        machine.mean[i] = mean + gain * step
        machine.variance[i] = variance + gain * ((1 - gain) * step * step - variance)
        scaled = scale_of(machine.mean[i], machine.variance[i])
        if window.present[i]:
            z[i] = step / scaled * math.sqrt(1 - gain)
        units[i] = math.sqrt(variance) / scaled
        before[i] = machine.before[i] * scale / scaled
        share[i] = 1 / max(after, 1.0)
        machine.held[i] = after
        machine.before[i] = window.z[i] * scale / scaled if count > 0 else 0.0
        if after > 0:
            used = i + 1
    for i in range(used):  # of the others all is 0
        for j in range(used):
            pace, unit = max(share[i], share[j]), units[i] * units[j]
            both = pace * np.float32(there[i] if window.present[j] else 0.0)
            old = machine.now[i, j] * unit
            machine.now[i, j] = old + both * (np.float32(z[i]) * np.float32(z[j]) - old)
            old = machine.then[i, j] * unit
            linked = pace * np.float32(there[i] * window.linked)
            machine.then[i, j] = old + linked * (np.float32(z[i]) * np.float32(before[j]) - old)

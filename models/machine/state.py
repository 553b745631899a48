"""What is kept of machines with w metrics each: arrays with a row a machine, and the view of one of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from models.kernels import kernel
from models.numbers.arrays import Array
from models.records import Table

MATRICES = ("now", "then", "static", "dynamic", "transition")
"""Columns that hold a matrix a machine, row after row, as float32."""

VECTORS = ("residual.mean", "count", "mean", "variance", "before", "tail.shape", "tail.rate")
"""Columns that hold one number per metric; the first one holds one per machine."""


class Machine(NamedTuple):
    """The state of n machines of like width; or, as from `machine_at`, of one of them, without the axis of n.

    Args:
        own: Records of what is not by metric, shape (n,); of one machine a table of its record, as kernels return none.
        average: Residual evidence averaged over metrics and the last windows, shape (n,); of one machine (1,).
        held: Windows that the moments hold of each metric, shape (n, w), as all up to ``rate``.
        mean: Its location.
        variance: Its variance.
        before: Its standardised value in the window before.
        shape: Of the tail of its residuals.
        rate: Of the same.
        now: Correlations of metrics in one window, float32, shape (n, w * w), of one (w, w), as all that follow.
        then: Of metric i now and j in the window before.
        static: Inverse of the covariance within a window.
        dynamic: Inverse of the covariance of what the window before does not tell.
        transition: Regression on the window before.
    """

    own: Table
    average: Array
    held: Array
    mean: Array
    variance: Array
    before: Array
    shape: Array
    rate: Array
    now: Any
    then: Any
    static: Any
    dynamic: Any
    transition: Any


@kernel
def machine_at(machines: Machine, row: int) -> Machine:
    """One of the machines; it shares their memory."""
    width = machines.held.shape[1]
    return Machine(
        machines.own[row : row + 1],
        machines.average[row : row + 1],
        machines.held[row],
        machines.mean[row],
        machines.variance[row],
        machines.before[row],
        machines.shape[row],
        machines.rate[row],
        machines.now[row].reshape((width, width)),
        machines.then[row].reshape((width, width)),
        machines.static[row].reshape((width, width)),
        machines.dynamic[row].reshape((width, width)),
        machines.transition[row].reshape((width, width)),
    )


class Window(NamedTuple):
    """A window of a machine with w metrics, as it was judged; arrays of shape (w,), standardised by the scales so far.

    Args:
        value: Finite; where it is missing, the location.
        present: Where there was a value.
        judgeable: Where there was one of a metric that had values before.
        z: Standardised values; where there is none to judge, what was expected.
        residual: How far off each metric is from what was expected of it, in standard deviations; 0 where missing.
        expected: What was expected of each metric, given all the others.
        linked: 1 where the window before says something of this one, else 0.
    """

    value: Array
    present: Any
    judgeable: Any
    z: Array
    residual: Array
    expected: Array
    linked: float

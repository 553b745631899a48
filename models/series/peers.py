"""What a new series starts from: what the same metric is on the other machines, and fading as it speaks for itself."""

from __future__ import annotations

import numpy as np

from models.families.hierarchy import Peers
from models.families.normal_inverse_gamma import Prior
from models.kernels import kernel
from models.numbers.arrays import Columns, Flags, Ints, Rows
from models.records import Record

_TAILS = ("point.", "window.", "change.tail.")
"""The calibrations whose history a new series begins with."""

_LEAST = 30.0
"""Values of a series before it says something of others."""

_SPENT = 200.0
"""Values of its own after which a series no longer asks the others."""

_HISTORY = 100.0
"""Steps of history that the calibrations of the others are worth."""

_EXCESSES = 100.0
"""Surprises in the tail that those of all the others together are worth, at the most."""

_PRIOR = ("mean", "strength", "shape", "variance", "log_mean", "log_variance")
"""A prior of the level, and mean and variance on the logarithm-like axis, of which the metric's peers say nothing."""

_HOUR = 0.005
"""Weight of the hour's expert in a series that knows no hour yet."""


class Newcomers:
    """Sums up the series of each metric, and lets new ones start from it; holds no state.

    Columns of a sum: ``mean``, ``strength``, ``shape``, ``variance`` of the normal-inverse-gamma prior, and edge, shape
    and rate of each calibration. A variance of 0: there are no peers to learn from. What replicas start from has more,
    see `models.series.predecessors`.
    """

    def new_state(self, n: int) -> Columns:
        """The columns for n series without peers."""
        small = {name: np.zeros(n, np.float32) for name in _PRIOR if name not in ("mean", "variance")}
        return small | {name: np.zeros(n) for name in ("mean", "variance")}

    def sums(self, state: Columns, rows: Ints, metric: Ints, metrics: int) -> Columns:
        """What the series of each metric have in common.

        Args:
            state: A detector's state.
            rows: Rows of the series, in an order that does not depend on how they came, shape (n,).
            metric: Number of each one's metric, shape (n,).
            metrics: How many there are.
        """
        level = Rows(state, rows, "level.")
        count = level["count"]
        peers = Peers.of(metric, metrics, count, level["mean"], level["squares"], _LEAST)
        every = np.arange(metrics)
        has_peers, prior = peers.has_peers(every), peers.prior(every)
        columns: Columns = {name: np.where(has_peers, getattr(prior, name), 0.0) for name in prior._fields}
        return columns | self.histories(state, rows, metric, metrics, count >= _LEAST)

    def histories(self, state: Columns, rows: Ints, group: Ints, groups: int, speaks: Flags) -> Columns:
        """The calibrations of the series of each group as one.

        Args:
            state: A detector's state.
            rows: Rows of the series, shape (n,).
            group: Number of each one's group, shape (n,).
            groups: How many there are.
            speaks: Which of the series count, shape (n,).
        """
        columns: Columns = {}
        members = np.maximum(np.bincount(group, weights=speaks, minlength=groups), 1.0)
        for tail in _TAILS:
            own = Rows(state, rows, tail)
            totals = {
                name: np.bincount(group, weights=np.where(speaks, own[name], 0.0), minlength=groups)
                for name in ("edge", "shape", "rate")
            }
            scale = totals["rate"] / np.maximum(totals["shape"], 1.0)
            columns[tail + "edge"] = totals["edge"] / members
            columns[tail + "shape"] = shape = np.minimum(totals["shape"], _EXCESSES)
            columns[tail + "rate"] = shape * scale
        return columns

    def start(self, state: Columns, rows: Ints, sums: Columns, metric: Ints) -> None:
        """Lets new series start from a sum.

        Args:
            state: A detector's state; the rows of the series are changed.
            rows: Rows of new series, shape (n,).
            sums: As from `sums`.
            metric: Number of each one's metric in the sums, shape (n,).
        """
        has_peers = np.asarray(sums["variance"], np.float64)[metric] > 0
        rows = rows[has_peers]
        self.begin(state, rows, sums, metric[has_peers])
        for expert, weight in (("level", 0.5 - 0.5 * _HOUR), ("log_level", 0.5 - 0.5 * _HOUR), ("hour", _HOUR)):
            state[f"{expert}.log_weight"][rows] = np.log(weight)

    def begin(self, state: Columns, rows: Ints, sums: Columns, group: Ints) -> None:
        """Gives new series the priors of a sum, and the history of its calibrations; see `start` for the arguments."""
        own = Rows(state, rows, "peers.")
        for name in _PRIOR:
            if name in sums:
                own[name] = sums[name][group]
        for tail in _TAILS:
            history = Rows(state, rows, tail)
            for name in ("edge", "shape", "rate"):
                history[name] = sums[tail + name][group]
            history["count"] = np.full(len(rows), _HISTORY)


@kernel
def peers_prior(peers: Record, seen: float) -> Prior:
    """What the peers let expect of the level, the less the more values a series has had; variance 0 where nothing.

    Args:
        peers: The columns.
        seen: Values learned so far.
    """
    return _faded(Prior(peers.mean, peers.strength, peers.shape, peers.variance), seen)


@kernel
def peers_log_prior(peers: Record, seen: float) -> Prior:
    """The same of the level on its logarithm-like axis; variance 0 also where only the level is known."""
    one = 1.0  # a kernel computes with what is kept in 32 bits in 64 once it was multiplied
    return _faded(Prior(one * peers.log_mean, peers.strength, peers.shape, one * peers.log_variance), seen)


@kernel
def _faded(prior: Prior, seen: float) -> Prior:
    if prior.variance <= 0 or seen >= _SPENT:
        return Prior(0.0, 0.0, 0.0, 0.0)
    left = 1 - seen / _SPENT
    return Prior(prior.mean, prior.strength * left, 0.5 + left * max(prior.shape - 0.5, 0.0), prior.variance)

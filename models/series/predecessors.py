"""What a replica starts from: what the same metric is, and was, on the other replicas of its workload.

Replicas of a workload do the same work, so a new one begins with much of what was learned of those before it: level,
spread, hours of the day, family. What is asked of the other machines at large says where a level may lie; this says
where it lies. See `models.series.peers` for what both have in common.
"""

from __future__ import annotations

import numpy as np

from models.experts.hour_of_day import BINS
from models.families.choice import Family
from models.families.hierarchy import Priors
from models.numbers.arrays import SMALLEST, Array, Columns, Flags, Ints, Rows, log_sum_exp
from models.regimes.reference import begin_reference
from models.series import birth
from models.series.peers import Newcomers

LEAST = 8.0
"""Values of a replica before it says something of those that follow."""

_HALF_LIFE = 6 * 3_600_000.0
"""Milliseconds that a predecessor may have ended before the last one, and count half: a version may do other work."""

_MOST = 200.0
"""Values of one replica that count."""

_LIKE = 0.25
"""Variance of the levels of replicas over that of their values, before there is more than one."""

_SHAPE = 25.0
"""Half the observations that the variance of the replicas is worth at the most, and before there is more than one."""

_VALUES = 30.0
"""Values that the replicas' hours, counts and ratios are worth to a new one, at the most."""

_POOL = 2000.0
"""Values that their variance within hours is worth, at the most: it only stands in for that of a single hour."""

_FINE = 1e-4
"""What varies by less on the logarithm-like axis is as well known by its level, whose mean is kept in 64 bits."""

_LEAST_STRENGTH, _MOST_STRENGTH = 0.05, 50.0
_EXPERTS = ("level", "log_level", "hour")
_FAMILIES = {"family.count.": ("events", "exposure", "excess"), "family.ratio.": ("successes", "failures", "excess")}
_ONLY_ALIKE = ("record.low", "record.high", "time")
"""What a new replica begins with only if it goes on where its predecessors are."""
_FLAGS = ("fractions", "negatives", "above_one")


class Predecessors:
    """Sums up the series of each workload and metric, and lets new replicas start from it; holds no state.

    Args:
        newcomers: What starts series of which only the metric is known.
        learning: Values before a series is judged. Replicas that begin as their predecessors are go on as after so
            many, see `models.series.birth`.

    Columns of a sum: those of `Newcomers`, the priors on both axes, ``born``, ``apart`` and ``bias`` (how many replicas
    have begun, which share of them otherwise, and by how much on average), ``worth`` (see `_worth`), and of the state
    of series those that a new replica begins with. A variance of 0: there is no predecessor to learn from.
    """

    def __init__(self, newcomers: Newcomers, learning: float) -> None:
        self.newcomers, self.learning = newcomers, learning

    def sums(self, state: Columns, rows: Ints, group: Ints, groups: int) -> Columns:
        """What the replicas of each workload have in common; what ended long before the last of them counts little.

        Args:
            state: A detector's state.
            rows: Rows of the series, by group, within it in an order that does not depend on how they came, shape (n,).
            group: Number of the workload and metric of each, ascending, shape (n,).
            groups: How many there are, each with a series at least.
        """
        level, log_level = Rows(state, rows, "level."), Rows(state, rows, "log_level.")
        count, time = level["count"].astype(np.float64), state["time"][rows]
        starts = np.searchsorted(group, np.arange(groups))
        speaks = _speak(state, rows, starts, group)
        last = np.maximum.reduceat(np.where(speaks, time, 0), starts)
        recent: Array = np.where(speaks, np.exp2(np.minimum(time - last[group], 0) / _HALF_LIFE), 0.0)
        worth = recent * np.minimum(count, _MOST)
        pooled = _Pool(starts, group, worth)
        prior = _level(pooled, level["mean"], level["squares"], count)
        unit = pooled.of_heaviest(log_level["unit"])
        own_unit, on_unit = np.where(log_level["unit"] > 0, log_level["unit"], 1.0), np.where(unit > 0, unit, 1.0)
        place = np.sinh(np.clip(log_level["mean"], -300.0, 300.0)) * (own_unit / on_unit[group])
        on_axis = _level(pooled, np.arcsinh(place), log_level["squares"].astype(np.float64), count)
        fine = on_axis.variance < _FINE * _FINE
        values = _worth(pooled, prior.strength)
        columns: Columns = dict(prior._asdict()) | {"worth": values}
        columns["log_mean"], columns["log_variance"] = on_axis.mean, np.where(fine, 0.0, on_axis.variance)
        columns["log_level.unit"] = unit
        columns |= _hours(Rows(state, rows, "hour."), prior.mean, starts, group, recent)
        weights = np.stack([pooled.mean(_numbers(state, f"{expert}.log_weight", rows)) for expert in _EXPERTS])
        for expert, weight in zip(_EXPERTS, weights - log_sum_exp(weights), strict=True):
            columns[f"{expert}.log_weight"] = weight
        columns |= _families(state, rows, starts, recent, pooled)
        columns |= _beginnings(state, rows, starts, recent, np.sqrt(prior.variance)[group])
        columns |= _range(state, rows, pooled, count, values) | {"time": last}
        return columns | self.newcomers.histories(state, rows, group, groups, worth > 0)

    def start(self, state: Columns, rows: Ints, sums: Columns, group: Ints) -> None:
        """Lets new replicas start from a sum.

        Args:
            state: A detector's state; the rows of the series are changed.
            rows: Rows of new series, shape (n,).
            sums: As from `sums`.
            group: Number of each one's workload and metric in the sums, shape (n,).
        """
        known = np.asarray(sums["variance"], np.float64)[group] > 0
        rows, group = rows[known], group[known]
        self.newcomers.begin(state, rows, sums, group)
        names = ("born", "apart", "bias")
        born, apart, bias = (np.asarray(sums[name], np.float64) for name in names)
        birth.begin(Rows(state, rows, "birth."))
        alike = (born >= birth.LEAST) & (apart <= birth.MOST_APART) & (np.abs(bias) <= birth.MOST_BIASED)
        for name, column in sums.items():
            if name in state and name not in _ONLY_ALIKE:
                state[name][rows] = column[group]
        self._go_on(state, rows[alike[group]], sums, group[alike[group]])

    def _go_on(self, state: Columns, rows: Ints, sums: Columns, group: Ints) -> None:
        """Lets replicas go on where their predecessors are, as after some values of their own."""
        state["seen"][rows] = self.learning
        worth = np.nan_to_num(np.asarray(sums["worth"], np.float64)[group]) if "worth" in sums else 0.0
        state["birth.worth"][rows] = np.maximum(worth, self.learning)  # sums of earlier versions do not say it
        for name in _ONLY_ALIKE:
            state[name][rows] = sums[name][group]
        names = ("mean", "variance", "strength", "log_mean", "log_variance")
        mean, variance, strength, log_mean, log_variance = (np.asarray(sums[name], np.float64)[group] for name in names)
        for expert, centre, within in (("level", mean, variance), ("log_level", log_mean, log_variance)):
            known = within > 0
            own = Rows(state, rows[known], f"{expert}.")
            own["count"] = np.full(int(known.sum()), self.learning)
            own["mean"], own["squares"] = centre[known], self.learning * within[known]
        unit = _numbers(state, "log_level.unit", rows)
        unit = np.where(unit > 0, unit, 1.0)
        slope = 1 / np.hypot(mean, unit)
        place = np.where(log_variance > 0, log_mean, np.arcsinh(mean / unit))
        within = np.where(log_variance > 0, log_variance, variance * slope * slope)
        begin_reference(Rows(state, rows, "regime."), place, np.sqrt(within * (1 + 1 / strength)))


def _speak(state: Columns, rows: Ints, starts: Ints, group: Ints) -> Flags:
    """Which members say what the workload is: none that is in an incident, unless all are.

    An incident has so many values: a replica that is drained ends with one or a few that are less than usual.
    """
    known = _numbers(state, "level.count", rows) >= LEAST
    usual = known & ((_numbers(state, "regime.weight", rows) == 0) | (_numbers(state, "regime.number", rows) < LEAST))
    return np.where(np.logical_or.reduceat(usual, starts)[group], usual, known)


def _beginnings(state: Columns, rows: Ints, starts: Ints, recent: Array, spread: Array) -> Columns:
    """How the members began."""
    begun = Rows(state, rows, "birth.")
    counts = recent * birth.has_begun(begun)
    born = np.add.reduceat(counts, starts)
    offset = birth.offset(begun, _numbers(state, "peers.mean", rows), spread)
    apart = np.add.reduceat(counts * (np.abs(offset) >= birth.APART), starts) / np.maximum(born, SMALLEST)
    bias = np.add.reduceat(counts * offset, starts) / np.maximum(born, SMALLEST)
    return {"born": born, "apart": apart, "bias": bias}


def _range(state: Columns, rows: Ints, pool: _Pool, count: Array, worth: Array) -> Columns:
    """The range of the member in the middle, as far as one would go of all values that the members are worth.

    A range of n values is about ln n of the scales of its tails, see `models.evidence.record`. It goes no further than
    some member's.

    Args:
        state: A detector's state.
        rows: Rows of the members, shape (n,).
        pool: The members.
        count: Values of each, shape (n,).
        worth: As from `_worth`, shape (g,).
    """
    low, high = (_numbers(state, f"record.{end}", rows) for end in ("low", "high"))
    logs, speaks = np.log(np.maximum(pool.middle(count), LEAST)), pool.worth > 0
    more = 0.5 * np.maximum(np.log(np.maximum(worth, LEAST)) / logs - 1, 0.0)
    lowest, highest = pool.middle(low), pool.middle(high)
    further = more * (highest - lowest)
    least = np.minimum.reduceat(np.where(speaks, low, np.inf), pool.starts)
    most = np.maximum.reduceat(np.where(speaks, high, -np.inf), pool.starts)
    known = pool.total > 0
    return {
        "record.low": np.where(known, np.maximum(lowest - further, least), 0.0),
        "record.high": np.where(known, np.minimum(highest + further, most), 0.0),
    }


def _numbers(state: Columns, name: str, rows: Ints) -> Array:
    return state[name][rows].astype(np.float64)


class _Pool:
    """Weighted means over the series of each group.

    Args:
        starts: First row of each group, shape (g,).
        group: Group of each row, shape (n,).
        worth: Weight of each row, at least 0, shape (n,).
    """

    def __init__(self, starts: Ints, group: Ints, worth: Array) -> None:
        self.starts, self.group, self.worth = starts, group, worth
        self.total = np.add.reduceat(worth, starts)
        squared = np.add.reduceat(worth * worth, starts)
        self.members = np.where(squared > 0, self.total**2 / np.maximum(squared, SMALLEST), 0.0)
        """Equal members that the weights are worth, shape (g,)."""

    def mean(self, values: Array) -> Array:
        """The weighted mean of each group; 0 where no member has a weight."""
        weight = self.worth.reshape(-1, *[1] * (values.ndim - 1))
        total = np.maximum(self.total, SMALLEST).reshape(-1, *[1] * (values.ndim - 1))
        return np.asarray(np.add.reduceat(weight * values, self.starts, axis=0) / total, np.float64)

    def middle(self, values: Array) -> Array:
        """The weighted median of each group, which few members do not move; 0 where no member has a weight.

        Weights are rounded to whole numbers, whose sums do not depend on the groups before.

        >>> pool = _Pool(np.array([0, 3]), np.array([0, 0, 0, 1, 1]), np.array([1.0, 1.0, 1.0, 2.0, 2.0]))
        >>> pool.middle(np.array([1.0, 90.0, 2.0, 3.0, 5.0]))
        array([2., 4.])
        """
        order, weight = np.lexsort((values, self.group)), np.rint(self.worth * 2.0**20).astype(np.int64)
        up_to, total = np.cumsum(weight[order]), np.add.reduceat(weight, self.starts)
        before = np.cumsum(total) - total
        halves = (before + (total + 1) // 2, before + total // 2 + 1)
        low, high = (values[order[np.minimum(np.searchsorted(up_to, at), len(order) - 1)]] for at in halves)
        return np.where(total > 0, 0.5 * low + 0.5 * high, 0.0)

    def of_heaviest(self, values: Array) -> Array:
        """The value of the member with the greatest weight, the first of equal ones."""
        heaviest = np.maximum.reduceat(self.worth, self.starts)
        rows = np.flatnonzero(self.worth == heaviest[self.group])
        return values[rows[np.searchsorted(self.group[rows], np.arange(len(self.starts)))]]

    def shrunk(self, guess: Array | float, found: Array) -> Array:
        """What is found among the members beside a guess that is worth one difference between two of them."""
        differences = np.maximum(self.members - 1, 0.0)
        return (guess + differences * found) / (1 + differences)


def _worth(pool: _Pool, strength: Array) -> Array:
    """How many values of as many replicas would say as much of the next one as those of the members do, shape (g,).

    Values of one replica are alike: of many values of few replicas it is known how much values vary, and little of how
    much replicas do. Source: the design effect of clusters, L. Kish, Survey Sampling (1965), 8.2.

    >>> pool = _Pool(np.array([0]), np.zeros(6, np.int64), np.full(6, 200.0))
    >>> [_worth(pool, np.array([strength])).round()[0] for strength in (1e-9, 1.0, 50.0)]
    [np.float64(6.0), np.float64(12.0), np.float64(245.0)]
    """
    own = strength / np.maximum(pool.total, SMALLEST)
    return np.where(pool.total > 0, (1 + strength) / (1 / np.maximum(pool.members, SMALLEST) + own), 0.0)


def _level(pool: _Pool, mean: Array, squares: Array, count: Array) -> Priors:
    """The prior of a level by the members' statistics, as `models.families.hierarchy.Peers`, also of a single one."""
    own = squares / np.maximum(count - 1.5, 1.0)
    moving = _Pool(pool.starts, pool.group, np.where(own > 0, pool.worth, 0.0))
    logs = np.log(np.where(own > 0, own, 1.0))
    within = np.where(moving.total > 0, np.exp(moving.mean(logs)), 0.0)
    centre = pool.mean(mean)
    unbiased = pool.members / np.maximum(pool.members - 1, 0.5)
    apart = pool.mean((mean - centre[pool.group]) ** 2) * unbiased - pool.mean(own / np.maximum(count, 1.0))
    between = pool.shrunk(_LIKE * within, np.maximum(apart, 0.0))
    unlike = moving.mean((logs - moving.mean(logs)[pool.group]) ** 2)
    unlike = unlike * unbiased - moving.mean(2 / np.maximum(count - 1, 1.0))
    shape = 1 / moving.shrunk(1 / _SHAPE, np.maximum(unlike, 0.0))
    strength = np.clip(within / np.maximum(between, SMALLEST), _LEAST_STRENGTH, _MOST_STRENGTH)
    return Priors(centre, strength, np.maximum(np.minimum(shape, 0.5 * pool.total), 0.5), within)


def _hours(hour: Rows, centre: Array, starts: Ints, group: Ints, recent: Array) -> Columns:
    """The members' hours of the day as one, as distances from their level."""
    counts = hour["count"].astype(np.float64) * recent[:, None]
    means = hour["anchor"][:, None] + hour["mean"] - centre[group, None]
    count = np.add.reduceat(counts, starts, axis=0)
    mean = np.add.reduceat(counts * means, starts, axis=0) / np.maximum(count, SMALLEST)
    squares = recent[:, None] * hour["squares"] + counts * (means - mean[group]) ** 2
    left = np.minimum(_VALUES / np.maximum(count, SMALLEST), 1.0)
    pool = np.add.reduceat(recent * hour["pool_count"], starts)
    pool_left = np.minimum(_POOL / np.maximum(pool, SMALLEST), 1.0)
    return {
        "hour.anchor": centre,
        "hour.count": (count * left).astype(np.float32).reshape(-1, BINS),
        "hour.mean": mean.astype(np.float32),
        "hour.squares": (np.add.reduceat(squares, starts, axis=0) * left).astype(np.float32),
        "hour.pool_count": pool * pool_left,
        "hour.pool_squares": np.add.reduceat(recent * hour["pool_squares"], starts) * pool_left,
    }


def _families(state: Columns, rows: Ints, starts: Ints, recent: Array, pool: _Pool) -> Columns:
    """The family that most members have, and what they learned of counts and ratios."""
    has = state["family.family"][rows][:, None] == np.arange(len(Family))
    votes = np.add.reduceat(pool.worth[:, None] * has, starts, axis=0)
    columns: Columns = {"family.family": votes.argmax(axis=1).astype(np.int8)}
    for name in (*_FLAGS, "likelihood"):
        columns[f"family.{name}"] = pool.mean(_numbers(state, f"family.{name}", rows))
    for family, names in _FAMILIES.items():
        windows = np.add.reduceat(recent * _numbers(state, f"{family}windows", rows), starts)
        left = np.minimum(_VALUES / np.maximum(windows, SMALLEST), 1.0)
        columns[f"{family}windows"] = windows * left
        for name in names:
            columns[family + name] = np.add.reduceat(recent * _numbers(state, family + name, rows), starts) * left
    return columns

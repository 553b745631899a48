"""The hour of the day: the value is around where it was at this time on the working days, or weekends, before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.arrays import SMALLEST, Array, Columns, Ints, Rows, cells, clamp
from models.experts.base import Expert, Lesson, Step
from models.experts.level import shorten
from models.experts.wall_clock import is_weekend, local_ms
from models.families.base import Predictive
from models.families.normal_inverse_gamma import NormalInverseGamma, Prior
from models.families.student_t import StudentT

HOURS = 24
BINS = 2 * HOURS
REFERENCE_GAP = 300_000.0
"""The step length, in milliseconds, for which the forgetting a visit is stated."""

POOL_FORGET = 1 / 4000
POOL_SHAPE = 2.0


@dataclass(frozen=True)
class _Bin:
    index: Ints
    share: Array
    count: Array
    mean: Array
    squares: Array


class _Memo(NamedTuple):
    bins: tuple[_Bin, _Bin]
    known: NormalInverseGamma
    pool_count: Array
    pool_squares: Array


class HourOfDay(Expert):
    """24 normal-inverse-gammas on a circle, with linear interpolation between the two nearest centres; two circles.

    One is of working days, one of Saturdays and Sundays.

    The prior of each hour is hierarchical: its mean is the level's, its variance what is left of the variance, over all
    hours, once the hour is known. An hour not visited yet predicts what the level predicts.

    Args:
        forget: Share of an hour's statistics forgotten a visit, for visits five minutes apart; in proportion to the
            time between visits, so that the memory is the same number of days whatever the step length.
        most: Upper bound of that share, for long steps.
        zone: IANA name of the time zone in which hours are counted.
    """

    name = "hour"

    def __init__(self, forget: float, most: float, zone: str) -> None:
        self.forget, self.most, self.zone = forget, most, zone

    def new_state(self, n: int) -> Columns:
        """See `Expert`."""
        bins: Columns = {"count": cells(n, BINS, np.float32)} | {name: cells(n, BINS) for name in ("mean", "squares")}
        return bins | {"pool_count": np.zeros(n), "pool_squares": np.zeros(n)}

    def predict(self, state: Rows, step: Step, level: Predictive | None) -> tuple[StudentT, _Memo]:
        """See `Expert`."""
        assert isinstance(level, StudentT)
        near, far = self._bins(state, step)
        weight_near, weight_far = near.share * near.count, far.share * far.count
        count = weight_near + weight_far
        tilt = weight_far / np.maximum(count, 1e-12)
        mean = np.where(count > 0, near.mean + tilt * (far.mean - near.mean), level.location)
        known = NormalInverseGamma(count, mean, near.share * near.squares + far.share * far.squares)

        broad = np.maximum(level.scale * level.scale, SMALLEST * SMALLEST)
        pool_count, pool_squares = state["pool_count"], state["pool_squares"]
        within = (POOL_SHAPE * broad + 0.5 * pool_squares) / (POOL_SHAPE + 0.5 * pool_count)
        within = np.maximum(within, SMALLEST * SMALLEST)
        prior = Prior(level.location, clamp(within / broad, 1e-3, 1.0), POOL_SHAPE, within)
        return known.predictive(prior, step.resolution), _Memo((near, far), known, pool_count, pool_squares)

    def learn(self, state: Rows, step: Step, lesson: Lesson, memo: _Memo) -> None:
        """See `Expert`."""
        gap = np.where(step.gap > 0, step.gap, REFERENCE_GAP)
        forget = np.minimum(self.forget * gap / REFERENCE_GAP, self.most)
        error = lesson.value - memo.known.mean
        visited = memo.known.count > 0.5
        for bin_ in memo.bins:
            weight = lesson.weight * bin_.share
            faded = bin_.count * (1 - forget * bin_.share)
            count = faded + weight
            gain = weight / np.maximum(count, 1e-12)
            mean = bin_.mean + gain * (lesson.value - bin_.mean)
            squares = bin_.squares * (1 - forget * bin_.share) + faded * gain * (error * error)
            state.set_cell("count", bin_.index, count)
            state.set_cell("mean", bin_.index, mean)
            state.set_cell("squares", bin_.index, squares)
        counted = np.where(visited, lesson.weight, 0.0)
        state["pool_count"] = memo.pool_count * (1 - POOL_FORGET) + counted
        state["pool_squares"] = memo.pool_squares * (1 - POOL_FORGET) + counted * (error * error)

    def shift(self, state: Rows, offset: Array, few: float) -> None:
        """See `Expert`."""
        state["mean"] = np.where(state["count"] > 0, state["mean"] + offset[:, None], state["mean"])
        shorten(state, few)

    def _bins(self, state: Rows, step: Step) -> tuple[_Bin, _Bin]:
        local = local_ms(step.time, self.zone)
        place = (local % 86_400_000) / 3_600_000.0 - 0.5
        below = np.floor(place)
        share = place - below
        off = is_weekend(local) if step.day_off is None else is_weekend(local) | step.day_off
        hour, circle = below.astype(np.int64) % HOURS, HOURS * off
        first, second = hour + circle, (hour + 1) % HOURS + circle
        return self._bin(state, first, 1 - share), self._bin(state, second, share)

    def _bin(self, state: Rows, index: Ints, share: Array) -> _Bin:
        count, mean = state.cell("count", index), state.cell("mean", index)
        return _Bin(index, share, count, mean, state.cell("squares", index))

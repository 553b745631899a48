"""Change evidence: how rare is the step from the value before, given where values are expected?"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from models.config import DetectorConfig
from models.experts.level import SHAPE, vague
from models.families.student_t import StudentT, square
from models.kernels import kernel, within
from models.numbers.arrays import LARGEST, SMALLEST, Columns
from models.numbers.normal import log_beyond
from models.records import Record

_LN2 = math.log(2.0)


class Jump(NamedTuple):
    """A step from the value before.

    Args:
        surprise: -ln of the two-sided tail probability of the innovation.
        deviation: Of the value from what is typical.
        innovation: The part of it that the deviation before does not explain.
        scale: What is usual of that.
    """

    surprise: float
    deviation: float
    innovation: float
    scale: float


def new_state(n: int) -> Columns:
    """The columns for n series of which nothing is known."""
    sums: Columns = {name: np.zeros(n) for name in ("before", "cross", "power", "squares")}
    return sums | {"count": np.zeros(n, np.float32)}


@kernel
def jump(change: Record, deviation: float, size: float, seen: float, floor: float) -> Jump:
    """The step by a first-order autoregression of deviations from what is typical; its innovations follow a Student-t.

    It is evidence of its own, not an expert: in the mixture it would make any lasting shift unsurprising at once.

    Args:
        change: The columns of this evidence.
        deviation: Of the value from what is typical.
        size: Magnitude of the values.
        seen: Values learned so far.
        floor: Smallest scale.

    Source: M. West, J. Harrison, Bayesian Forecasting and Dynamic Models (1997), chapter 9.
    """
    phi = within(change.cross / max(change.power, SMALLEST), 0.0, 1.0)
    innovation = deviation - phi * change.before
    prior = vague(0.0, size, seen)
    shape = SHAPE + 0.5 * change.count
    rate = SHAPE * prior.variance + 0.5 * change.squares
    scale = max(math.sqrt(rate / shape * (1 + 1 / max(change.count, 0.5))), floor)
    t = StudentT(0.0, scale, 2 * shape, 0.0)
    beyond = log_beyond(square(t, within(innovation / scale, -LARGEST, LARGEST)))
    return Jump(max(-_LN2 - beyond, 0.0), deviation, innovation, scale)


@kernel
def learn_jump(config: DetectorConfig, change: Record, step: Jump, seen: float, most: float, floor: float) -> None:
    """Adds the step, brought within reach.

    Args:
        config: The constants.
        change: The columns; changed.
        step: As from `jump`.
        seen: Values learned before; of the first one there is no step.
        most: A step of more scales than this is learned as one of so many.
        floor: Smallest scale. A smaller deviation counts as none, as it is rounding: the first value of a series is
            what is typical then, and the next would be set in proportion to the last bit of the difference.
    """
    reach, before = most * step.scale, change.before
    deviation = within(step.deviation, -reach - abs(before), reach + abs(before))
    innovation = within(step.innovation, -reach, reach)
    keep, linked = 1 - config.forget, 1.0 if seen > 0 else 0.0
    change.cross = keep * change.cross + linked * deviation * before
    change.power = keep * change.power + linked * before * before
    change.count = keep * change.count + linked
    change.squares = keep * change.squares + linked * innovation * innovation
    change.before = deviation if abs(deviation) > floor else 0.0

"""What operators say of a series' alarms, and what follows for it: worth of its evidence, and acceptance of a level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from models.constant import Constant
from models.kernels import kernel
from models.numbers.arrays import Array, Columns, Flags, Rows
from models.records import Record

FEW = 20.0
"""Values that an expert's knowledge is worth once a new level was accepted: soon outweighed."""


@dataclass(frozen=True)
class Feedback:
    """How much the evidence of a series is worth, and how far its values have been from what is typical of late.

    The chance that an alarm of the series is true has a Beta(1, 1) prior. Evidence is weighed by the posterior mean
    over the prior one, 2 (1 + true) / (2 + true + false): 1 without labels, 2/3 after a false alarm, 4/3 after a true
    one. What was said fades with the values that follow.

    Args:
        forget: Share of what was said that is forgotten per step.
        least: Evidence is never worth less: no series is silenced for good.
        pace: Weight of the newest deviation in the offset.

    Source: the beta-binomial conjugate pair, e.g. A. Gelman et al., Bayesian Data Analysis (2013), 2.4.

    >>> feedback, rows = Feedback(), np.array([0, 1])
    >>> view = Rows(feedback.new_state(2), rows, "")
    >>> feedback.learn_label(view, np.array([True, False]))
    >>> feedback.worth(view).round(2)
    array([1.33, 0.67])
    """

    forget: Annotated[float, Constant("share per value", 0, 0.5, "chosen by hand", off=0)] = 1 / 20_000
    least: Annotated[float, Constant("1", 0, 1, "chosen by hand, so that no series is silenced for good", off=0)] = 0.25
    pace: Annotated[float, Constant("weight", 0.01, 1, "chosen by hand")] = 0.3

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing was said."""
        return {"true": np.zeros(n, np.float32), "false": np.zeros(n, np.float32), "offset": np.zeros(n)}

    def worth(self, state: Rows) -> Array:
        """What a nat of evidence counts, shape (n,)."""
        true, false = (state[name].astype(np.float64) for name in ("true", "false"))
        return np.maximum(2 * (1 + true) / (2 + true + false), self.least)

    def learn_label(self, state: Rows, true: Flags) -> None:
        """Learns one label each: an alarm was true, or false."""
        state["true"] = state["true"] + true
        state["false"] = state["false"] + ~true

    def fade(self, state: Rows, valid: Flags) -> None:
        """Forgets a little of what was said, where a value came."""
        keep = np.where(valid, 1 - self.forget, 1.0)
        state["true"], state["false"] = state["true"] * keep, state["false"] * keep

    def accept(self, state: Rows) -> Array:
        """How far the present level lies from what is typical, shape (n,); from now on that is typical."""
        offset = state["offset"]
        state["offset"] = np.zeros(len(offset))
        return offset


@kernel
def worth_of(config: Feedback, feedback: Record) -> float:
    """What a nat of evidence of a series counts, as `Feedback.worth`."""
    return max(2 * (1 + float(feedback.true)) / (2 + float(feedback.true) + feedback.false), config.least)


@kernel
def fade(config: Feedback, feedback: Record) -> None:
    """Forgets a little of what was said of a series, as `Feedback.fade`."""
    keep = 1 - config.forget
    feedback.true, feedback.false = feedback.true * keep, feedback.false * keep


@kernel
def learn_feedback(config: Feedback, feedback: Record, deviation: float) -> None:
    """Fades what was said, and follows the deviation from what is typical."""
    fade(config, feedback)
    feedback.offset += config.pace * (deviation - feedback.offset)

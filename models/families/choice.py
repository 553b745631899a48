"""Which family suits a series: from what kind of metric it is, what values it takes, and what predicted it best."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

import numpy as np

from models.constant import Constant
from models.kernels import kernel, within
from models.numbers.arrays import Columns
from models.records import Record


class Family(IntEnum):
    """Families that a series may have; the code stands for it in arrays."""

    MIXTURE = 0
    """Real values: the experts, normal, log-normal and by the hour, weighed by how well they predict."""
    COUNT = 1
    RATIO = 2
    CATEGORICAL = 3


class MetricKind(IntEnum):
    """What kind of quantity a metric is; the code stands for it in arrays."""

    GAUGE = 0
    COUNTER = 1
    RATE = 2
    COUNT = 3
    LATENCY = 4
    RATIO = 5


NONE = -1
"""No family is prescribed."""

_WHOLE = 1e-6
"""What is no further from a whole number is one."""

_MIXTURE, _COUNT, _RATIO, _CATEGORICAL = (family.value for family in Family)
_COUNTS, _RATIOS = MetricKind.COUNT.value, MetricKind.RATIO.value
_FLAGS = ("fractions", "negatives", "above_one")


@dataclass(frozen=True)
class Choice:
    """Chooses by evidence among the families that the kind and the support admit.

    A family that assigns no value outside its support is ruled out by one value there, for a long time but not for
    ever: what has been seen fades like everything else. The evidence is the faded log likelihood of what each family
    predicted, over that of the mixture; a family that leads by less than ``lead`` nats does not replace the one in use.

    Args:
        lead: Nats by which another family has to be better.
        settled: Steps before which nothing but kind and support decides, as the families are still learning.
        most: One value moves the evidence between two families by at most this.
        enough: Values that a family has learned before it speaks.

    Source: A. Raftery, M. Kárný, P. Ettler, Online prediction under model uncertainty via dynamic model averaging,
    Technometrics 52 (2010).
    """

    lead: Annotated[float, Constant("nats", 0, 100, "chosen by hand", off=0)] = 5.0
    settled: Annotated[int, Constant("values", 1, 1000, "chosen by hand", off=1)] = 20
    most: Annotated[float, Constant("nats per value", 0.1, 100, "chosen by hand", off=1000000.0)] = 2.0
    enough: Annotated[float, Constant("values", 1, 1000, "chosen by hand", off=1)] = 5.0

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        flags: Columns = {name: np.zeros(n, np.float32) for name in _FLAGS}
        return flags | {"family": np.zeros(n, np.int8), "likelihood": np.zeros((n, len(Family)), np.float32)}


@kernel
def is_possible(choice: Record, family: int, kind: int, prescribed: int) -> bool:
    """Whether the kind and the values so far admit a family; that which the user prescribes always is possible.

    Args:
        choice: The columns.
        family: Code of the `Family`.
        kind: Code of the `MetricKind`.
        prescribed: The family that the user wants, or `NONE`.
    """
    if family in (prescribed, _MIXTURE):
        return True
    if family == _COUNT:
        return kind == _COUNTS and choice.negatives < 0.5 and choice.fractions < 0.5
    if family == _RATIO:
        return kind == _RATIOS and choice.negatives < 0.5 and choice.above_one < 0.5
    return False


@kernel
def note_support(choice: Record, value: float, forget: float) -> None:
    """Remembers what values a series takes: fractions, below 0, above 1; and forgets a share of what it took before."""
    keep = 1 - forget
    choice.fractions = max(choice.fractions * keep, 1.0 if abs(value - np.rint(value)) > _WHOLE else 0.0)
    choice.negatives = max(choice.negatives * keep, 1.0 if value < 0 else 0.0)
    choice.above_one = max(choice.above_one * keep, 1.0 if value > 1 else 0.0)


@kernel
def prefer(
    config: Choice, choice: Record, family: int, able: bool, seen: float, log_ratio: float, forget: float
) -> None:
    """Adds to the evidence for a family what it thought of a value.

    Args:
        config: The constants.
        choice: The columns; changed.
        family: Code of the `Family`.
        able: Whether it is possible, and has learned enough to speak.
        seen: Values learned so far.
        log_ratio: Log of the probability that it gave the value, less that of the mixture on the same interval.
        forget: Share of the evidence so far that is forgotten.
    """
    news = within(log_ratio, -config.most, config.most) if seen >= config.settled else 0.0
    choice.likelihood[family] = choice.likelihood[family] * (1 - forget) + news if able else 0.0


@kernel
def choose(config: Choice, choice: Record, seen: float, able: tuple[bool, bool, bool, bool], prescribed: int) -> None:
    """Chooses the family.

    Args:
        config: The constants.
        choice: The columns; changed.
        seen: Values learned so far.
        able: Of each family whether it is possible, and has learned enough to speak.
        prescribed: The family that the user wants, or `NONE`.
    """
    if prescribed != NONE:
        choice.family = prescribed if able[prescribed] else _MIXTURE
    elif seen < config.settled:
        choice.family = _RATIO if able[2] else _COUNT if able[1] else _CATEGORICAL if able[3] else _MIXTURE
    else:
        best, present = _MIXTURE, int(choice.family)
        for family in range(1, len(able)):
            if able[family] and choice.likelihood[family] > choice.likelihood[best]:
                best = family
        lead = choice.likelihood[best] - choice.likelihood[present]
        if not able[present] or lead >= config.lead:
            choice.family = best

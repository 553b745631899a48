"""Which family suits a series: from what kind of metric it is, what values it takes, and what predicted it best."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from models.arrays import Array, Columns, Flags, Ints, Rows


class Family(IntEnum):
    """Families that a series may have; the code stands for it in arrays."""

    NORMAL = 0
    LOG_NORMAL = 1
    COUNT = 2
    RATIO = 3
    CATEGORICAL = 4


class MetricKind(IntEnum):
    """What kind of quantity a metric is; the code stands for it in arrays."""

    GAUGE = 0
    COUNTER = 1
    RATE = 2
    RATIO = 3


NONE = -1
"""No family is prescribed."""

_BY_KIND = {
    MetricKind.GAUGE: (Family.NORMAL, Family.LOG_NORMAL, Family.COUNT, Family.RATIO, Family.CATEGORICAL),
    MetricKind.COUNTER: (Family.COUNT, Family.LOG_NORMAL, Family.NORMAL),
    MetricKind.RATE: (Family.LOG_NORMAL, Family.NORMAL, Family.COUNT, Family.CATEGORICAL),
    MetricKind.RATIO: (Family.RATIO, Family.NORMAL, Family.CATEGORICAL),
}


@dataclass(frozen=True)
class Choice:
    """Chooses by evidence among the families that the kind and the support admit.

    A family that assigns no value outside its support is ruled out by one value there, for a long time but not for
    ever: what has been seen fades like everything else. The evidence is the faded log likelihood of what each family
    predicted; a family that leads by less than ``lead`` nats does not replace the one in use.

    Args:
        slots: Distinct values with which a series may still be called quantised.
        forget: Share of the evidence forgotten a step.
        lead: Nats by which another family has to be better.
        settled: Steps before which nothing but the support decides.
        most: One value moves the evidence between two families by at most this.

    Source: A. Raftery, M. Kárný, P. Ettler, Online prediction under model uncertainty via dynamic model averaging,
    Technometrics 52 (2010).

    >>> choice, rows = Choice(), np.arange(3)
    >>> state = choice.new_state(3)
    >>> kind, free = np.full(3, MetricKind.GAUGE), np.full(3, NONE)
    >>> for value in ([0.0, 0.25, 7.0], [3.0, 0.5, 7.0], [1.0, 0.7, 7.0]):
    ...     choice.learn(Rows(state, rows, ""), np.array(value), np.array([3, 3, 1]), np.zeros((5, 3)), kind, free)
    >>> [Family(code).name for code in state["family"]]
    ['COUNT', 'RATIO', 'CATEGORICAL']
    """

    slots: int = 6
    forget: float = 1 / 2000
    lead: float = 5.0
    settled: int = 20
    most: float = 10.0

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        return {
            "seen": np.zeros(n),
            "family": np.full(n, int(Family.NORMAL), np.int64),
            "fractions": np.zeros(n),
            "negatives": np.zeros(n),
            "above_one": np.zeros(n),
            "likelihood": np.zeros((n, len(Family))),
        }

    def admissible(self, state: Rows, distinct: Ints, kind: Ints) -> Flags:
        """Which families are possible, shape (families, n).

        Args:
            state: The columns.
            distinct: Distinct values remembered of each series, shape (n,).
            kind: Codes of `MetricKind`, shape (n,).
        """
        natural = (state["fractions"] < 0.5) & (state["negatives"] < 0.5)
        unit = (state["above_one"] < 0.5) & (state["negatives"] < 0.5)
        few = distinct <= np.minimum(self.slots, np.maximum(state["seen"] / 4, 1.0))
        allowed = np.array([[family in _BY_KIND[k] for k in MetricKind] for family in Family])[:, kind]
        support = np.array([np.ones_like(unit), state["negatives"] < 0.5, natural, unit, few])
        flags: Flags = allowed & support
        flags[Family.NORMAL] |= ~flags.any(axis=0)
        return flags

    def learn(
        self, state: Rows, value: Array, distinct: Ints, log_likelihood: Array, kind: Ints, prescribed: Ints
    ) -> None:
        """Adds a value to the evidence and chooses.

        Args:
            state: The columns.
            value: Finite, shape (n,).
            distinct: Distinct values remembered, the present one among them, shape (n,).
            log_likelihood: What each family thought of the value beforehand: its log density, or its log probability
                over the step between values; shape (families, n).
            kind: Codes of `MetricKind`, shape (n,).
            prescribed: The family that the user wants, or `NONE`, shape (n,).
        """
        keep, seen = 1 - self.forget, state["seen"]
        state["seen"] = seen + 1
        for name, broken in (
            ("fractions", value != np.round(value)),
            ("negatives", value < 0),
            ("above_one", value > 1),
        ):
            state[name] = np.maximum(state[name] * keep, broken)
        told = np.maximum(log_likelihood - log_likelihood.max(axis=0), -self.most).T
        likelihood = state["likelihood"] * keep + told
        state["likelihood"] = likelihood
        possible = self.admissible(state, distinct, kind)
        state["family"] = np.where(
            prescribed == NONE, self._choose(state["family"].astype(np.int64), seen, likelihood.T, possible), prescribed
        )

    def _choose(self, present: Ints, seen: Array, likelihood: Array, possible: Flags) -> Ints:
        order = (Family.CATEGORICAL, Family.COUNT, Family.RATIO, Family.NORMAL, Family.LOG_NORMAL)
        rank = np.array([float(order.index(family)) for family in Family])[:, None]
        start = np.where(possible, rank, np.inf).argmin(axis=0)
        scores = np.where(possible, likelihood, -np.inf)
        best = scores.argmax(axis=0)
        columns = np.arange(len(present))
        holds = possible[present, columns] & (scores[best, columns] < scores[present, columns] + self.lead)
        return np.where(seen < self.settled, start, np.where(holds, present, best))

"""Which family suits a series: from what kind of metric it is, what values it takes, and what predicted it best."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from models.arrays import Array, Columns, Flags, Ints, Rows


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

_BY_KIND = {MetricKind.COUNT: Family.COUNT, MetricKind.RATIO: Family.RATIO}
"""Beside the mixture, which is always possible; the others are for those who prescribe them."""

_ALLOWED = np.array([[family in (Family.MIXTURE, _BY_KIND.get(kind)) for kind in MetricKind] for family in Family])
_FLAGS = ("fractions", "negatives", "above_one", "varied")


@dataclass(frozen=True)
class Choice:
    """Chooses by evidence among the families that the kind and the support admit.

    A family that assigns no value outside its support is ruled out by one value there, for a long time but not for
    ever: what has been seen fades like everything else. The evidence is the faded log likelihood of what each family
    predicted, over that of the mixture; a family that leads by less than ``lead`` nats does not replace the one in use.

    Args:
        slots: Distinct values with which a series may still be called quantised.
        forget: Share of the evidence forgotten a step.
        lead: Nats by which another family has to be better.
        settled: Steps before which nothing but kind and support decides, as the families are still learning.
        most: One value moves the evidence between two families by at most this.

    Source: A. Raftery, M. Kárný, P. Ettler, Online prediction under model uncertainty via dynamic model averaging,
    Technometrics 52 (2010).

    >>> choice, rows, free = Choice(), np.arange(3), np.full(3, NONE)
    >>> state, kind = choice.new_state(3), np.array([MetricKind.COUNT, MetricKind.RATIO, MetricKind.GAUGE])
    >>> for step, value in enumerate(np.array([[0.0, 0.25, 0.7], [3.0, 0.5, 0.2], [1.0, 0.7, 0.3]])):
    ...     view = Rows(state, rows, "")
    ...     possible = choice.possible(view, kind)
    ...     choice.learn(view, value, step * np.ones(3), possible, np.zeros((4, 3)), free)
    >>> [Family(code).name for code in state["family"]]
    ['COUNT', 'RATIO', 'MIXTURE']
    """

    slots: int = 6
    forget: float = 1 / 2000
    lead: float = 5.0
    settled: int = 20
    most: float = 2.0

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        flags: Columns = {name: np.zeros(n, np.float32) for name in _FLAGS}
        return flags | {"family": np.zeros(n, np.int8), "likelihood": np.zeros((n, len(Family)), np.float32)}

    def possible(self, state: Rows, kind: Ints, wanted: Flags | None = None) -> Flags:
        """Which families the kind and the values so far admit, shape (families, n).

        Args:
            state: The columns.
            kind: Codes of `MetricKind`, shape (n,).
            wanted: Families that are possible whatever was seen, shape (families, n).
        """
        above = state["negatives"] < 0.5
        natural = above & (state["fractions"] < 0.5)
        support = np.array([np.ones_like(above), natural, above & (state["above_one"] < 0.5), state["varied"] < 0.5])
        flags: Flags = _ALLOWED[:, kind] & support
        return flags if wanted is None else flags | wanted

    def learn(
        self, state: Rows, value: Array, seen: Array, possible: Flags, likelihood: Array, prescribed: Ints
    ) -> None:
        """Adds a value to the evidence and chooses.

        Args:
            state: The columns; `varied` is the caller's to set.
            value: Finite, by the samples of the window, shape (n,).
            seen: Values learned so far, shape (n,).
            possible: As from `possible`; a family that has not learned enough yet to speak is not; (families, n).
            likelihood: What each family thought of the value beforehand: log of its probability, less that of the
                mixture's on the same interval; shape (families, n).
            prescribed: The family that the user wants, or `NONE`, shape (n,).
        """
        keep = 1 - self.forget
        for name, broken in (
            ("fractions", np.abs(value - np.round(value)) > 1e-6),
            ("negatives", value < 0),
            ("above_one", value > 1),
        ):
            state[name] = np.maximum(state[name] * keep, broken)
        state["varied"] = state["varied"] * keep
        if not possible[1:].any():
            state["likelihood"], state["family"] = np.zeros(likelihood.T.shape), np.zeros(len(seen))
            return
        news = np.where(seen >= self.settled, np.clip(likelihood, -self.most, self.most), 0.0)
        told = np.where(possible, state["likelihood"].T * keep + news, 0.0)
        state["likelihood"] = told.T
        free = self._choose(state["family"].astype(np.int64), seen, told, possible)
        wanted = np.maximum(prescribed, 0)
        able = possible[wanted, np.arange(len(wanted))]
        state["family"] = np.where(prescribed == NONE, free, np.where(able, wanted, Family.MIXTURE))

    def _choose(self, present: Ints, seen: Array, likelihood: Array, possible: Flags) -> Ints:
        columns = np.arange(len(present))
        scores = np.where(possible, likelihood, -np.inf)
        best = scores.argmax(axis=0)
        holds = possible[present, columns] & (scores[best, columns] < scores[present, columns] + self.lead)
        start = np.where(possible, np.array([-1, 2, 3, 1])[:, None], -2).argmax(axis=0)
        return np.where(seen < self.settled, start, np.where(holds, present, best))

"""Each series by the family that suits it: counts, ratios and few distinct values in place of the mixture's view."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Array, Columns, Flags, Ints, Rows, clamp, prefixed
from models.experts.base import Lesson, Step
from models.families.choice import NONE, Choice, Family
from models.families.series import Counts, Foreseen, Levels, Ratios, SeriesFamily
from models.mixture import Mixture

_ENOUGH = 5.0
"""Values that a family has learned before it speaks."""


@dataclass(frozen=True)
class About:
    """What is known beforehand of n series and their window.

    Args:
        kind: Codes of `MetricKind`, shape (n,).
        family: Codes of the `Family` that the user prescribes, or `NONE`, shape (n,).
        samples: Samples that the value is the mean of, where they are of use: for counts; else 1; shape (n,).
    """

    kind: Ints
    family: Ints
    samples: Array

    @classmethod
    def unknown(cls, n: int) -> About:
        """Gauges of one sample each, whose family is free."""
        return cls(np.zeros(n, np.int64), np.full(n, NONE, np.int64), np.ones(n))

    def part(self, rows: slice | Ints) -> About:
        """That of some of the series."""
        return About(self.kind[rows], self.family[rows], self.samples[rows])


class Suited:
    """Follows the families that are possible for a series and lets the chosen one speak; holds no state.

    Only series of such a family, or of which it is still possible, cost anything.

    Args:
        choice: Chooses.
        ends: Standard normal places of lower end, middle and upper end of the band, shape (3, 1).
        forget: Share of the statistics forgotten a step.
        hurry: Share forgotten a step when what was is over.
    """

    def __init__(self, choice: Choice, ends: Array, forget: float, hurry: float) -> None:
        self.choice, self.ends, self.forget, self.hurry = choice, ends, forget, hurry
        self.levels = Levels()
        self.families: dict[Family, SeriesFamily] = {
            Family.COUNT: Counts(),
            Family.RATIO: Ratios(),
            Family.CATEGORICAL: self.levels,
        }

    @property
    def names(self) -> list[str]:
        """Names of the families beside the mixture, in the order of their codes."""
        return [family.name.lower() for family in self.families]

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        columns = self.choice.new_state(n)
        for family, model in self.families.items():
            columns |= prefixed(f"{family.name.lower()}.", model.new_state(n))
        return columns

    def foresee(self, state: Rows, value: Array, about: About) -> tuple[Ints, Foreseen] | None:
        """What the chosen families say of those values whose series has one; and which they are; pure.

        Args:
            state: The columns.
            value: Finite, shape (n,).
            about: Of the same series.

        Returns:
            The places of m values, and what is thought of them, shape (m,); ``None`` if the mixture has them all.
        """
        chosen = state["family"]
        here = np.flatnonzero(chosen)
        if not len(here):
            return None
        told = np.empty((4, len(value)))
        for family, model in self.families.items():
            at = np.flatnonzero(chosen == family)
            if len(at):
                part = model.foresee(self._of(state, at, family), value[at], about.samples[at], self.ends)
                upper = np.maximum(part.lower, part.upper)
                told[:, at] = part.surprise, part.lower, clamp(part.typical, part.lower, upper), upper
        return here, Foreseen(*told[:, here])

    def learn(self, state: Rows, step: Step, lesson: Lesson, mixture: Mixture, about: About) -> None:
        """Adds a value each to the families that are possible, and chooses anew.

        Args:
            state: The columns.
            step: The values, and how many there were.
            lesson: What is to be learned from them.
            mixture: What the experts predicted.
            about: Of the same series.
        """
        value, seen = lesson.value, step.seen
        forget = self.forget + self.hurry * lesson.haste
        wanted = about.family == np.arange(len(Family))[:, None] if (about.family != NONE).any() else None
        possible = self.choice.possible(state, about.kind, wanted)
        likelihood = np.zeros(possible.shape)
        for family, model in self.families.items():
            at = np.flatnonzero(possible[family])
            if len(at):
                part, samples = self._of(state, at, family), about.samples[at]
                mass, width = model.log_mass(part, value[at], samples)
                likelihood[family, at] = mass - mixture.part(at).log_mass(value[at], width)
                model.learn(part, value[at], samples, lesson.weight[at], forget[at])
                possible[family, at] = model.worth(part) >= _ENOUGH
        self._count(state, seen, possible)
        self.choice.learn(state, step.value * about.samples, seen, possible, likelihood, about.family)

    def shift(self, state: Rows, offset: Array, few: float) -> None:
        """Moves what was learned by an offset, shape (n,), and lets it count as few values.

        Args:
            state: The columns.
            offset: By how much the level has changed.
            few: How many.
        """
        for family, model in self.families.items():
            model.shift(self._of(state, np.arange(len(offset)), family), offset, few)

    def _count(self, state: Rows, seen: Array, possible: Flags) -> None:
        """Distinct values: few, or more than can be followed, which rules them out for a while."""
        at = np.flatnonzero(possible[Family.CATEGORICAL])
        if len(at):
            distinct = self.levels.distinct(self._of(state, at, Family.CATEGORICAL))
            possible[Family.CATEGORICAL, at] = distinct <= np.maximum(seen[at] / 4, 1.0)
            many = at[distinct > self.choice.slots]
            if len(many):
                Rows(state.state, state.rows[many], state.prefix)["varied"] = np.ones(len(many))
                possible[Family.CATEGORICAL, many] = False
                self.levels.forget_all(self._of(state, many, Family.CATEGORICAL))

    @staticmethod
    def _of(state: Rows, at: Ints, family: Family) -> Rows:
        return Rows(state.state, state.rows[at], f"{state.prefix}{family.name.lower()}.")

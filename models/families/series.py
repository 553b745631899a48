"""Families for counts, ratios and few distinct values as columns of a series, judging a value of its window each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from models.arrays import Array, Columns, Rows, clamp
from models.families.beta_binomial import BetaBinomial
from models.families.categorical import SLOTS, Categorical
from models.families.gamma_poisson import GammaPoisson

_LN2 = float(np.log(2.0))
_MOST = 1e15


@dataclass(frozen=True)
class Foreseen:
    """What a family says of n values: surprise in nats, at least 0, and the band; all of shape (n,)."""

    surprise: Array
    lower: Array
    typical: Array
    upper: Array


class SeriesFamily(ABC):
    """A family whose sufficient statistics are columns; ``samples`` are those that the window's mean is of."""

    @abstractmethod
    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""

    @abstractmethod
    def worth(self, state: Rows) -> Array:
        """Values that what is known is worth, shape (n,)."""

    @abstractmethod
    def foresee(self, state: Rows, value: Array, samples: Array, ends: Array) -> Foreseen:
        """What is thought of the values.

        Args:
            state: The columns.
            value: Finite; what lies outside of the support is judged as its end, shape (n,).
            samples: At least 1, shape (n,).
            ends: Standard normal places of lower end, middle, upper end; (3, 1).
        """

    @abstractmethod
    def log_mass(self, state: Rows, value: Array, samples: Array) -> tuple[Array, Array]:
        """Log of the probability of a value, and the length of the interval round it that it stands for."""

    @abstractmethod
    def learn(self, state: Rows, value: Array, samples: Array, weight: Array, forget: Array) -> None:
        """Adds a value each.

        Args:
            state: The columns.
            value: Finite; what lies outside of the support is learned as its end, shape (n,).
            samples: At least 1, shape (n,).
            weight: What it counts, in [0, 1], shape (n,).
            forget: Share of the statistics forgotten, shape (n,).
        """

    def shift(self, state: Rows, offset: Array, few: float) -> None:  # noqa: B027
        """Moves the level, if it has one, by an offset, shape (n,), and lets what was learned count as few values."""


@dataclass(frozen=True)
class Counts(SeriesFamily):
    """Gamma-Poisson of the events of a window, which are its mean by its samples; at most 1e15."""

    def new_state(self, n: int) -> Columns:
        """See `SeriesFamily`."""
        return {name: np.zeros(n, np.float32) for name in ("events", "exposure", "windows", "excess")}

    def worth(self, state: Rows) -> Array:
        """See `SeriesFamily`."""
        return state["windows"]

    def foresee(self, state: Rows, value: Array, samples: Array, ends: Array) -> Foreseen:
        """See `SeriesFamily`; the surprise is that of mid-p."""
        ahead = self._known(state).predictive(samples)
        below, above = ahead.log_mid_tails(_events(value, samples))
        lower, typical, upper = ahead.quantile(ends * np.ones_like(value))
        surprise = np.maximum(-_LN2 - np.minimum(below, above), 0.0)
        return Foreseen(surprise, np.floor(lower) / samples, typical / samples, np.ceil(upper) / samples)

    def log_mass(self, state: Rows, value: Array, samples: Array) -> tuple[Array, Array]:
        """See `SeriesFamily`."""
        return self._known(state).predictive(samples).log_density(_events(value, samples)), 1 / samples

    def learn(self, state: Rows, value: Array, samples: Array, weight: Array, forget: Array) -> None:
        """See `SeriesFamily`."""
        after = self._known(state).learn(clamp(value * samples, 0.0, _MOST), samples, weight, forget)
        state["events"], state["exposure"] = after.events, after.exposure
        state["windows"], state["excess"] = after.windows, after.excess

    def shift(self, state: Rows, offset: Array, few: float) -> None:
        """See `SeriesFamily`."""
        exposure, left = state["exposure"], _left(state["windows"], few)
        state["events"] = np.maximum(state["events"] + offset * exposure, 0.0) * left
        for name in ("exposure", "windows", "excess"):
            state[name] = state[name] * left

    def _known(self, state: Rows) -> GammaPoisson:
        return GammaPoisson(state["events"], state["exposure"], state["windows"], state["excess"])


def _left(windows: Array, few: float) -> Array:
    """The share of what was learned that is left when it is to count as few windows."""
    return np.minimum(windows, few) / np.maximum(windows, 1e-12)


def _events(value: Array, samples: Array) -> Array:
    return np.round(clamp(value * samples, 0.0, _MOST))


@dataclass(frozen=True)
class Ratios(SeriesFamily):
    """Beta-binomial.

    Args:
        trials: What each ratio is a share of, assumed.
    """

    trials: float = 1000.0

    def new_state(self, n: int) -> Columns:
        """See `SeriesFamily`."""
        return {name: np.zeros(n, np.float32) for name in ("successes", "failures", "windows", "excess")}

    def worth(self, state: Rows) -> Array:
        """See `SeriesFamily`."""
        return state["windows"]

    def foresee(self, state: Rows, value: Array, samples: Array, ends: Array) -> Foreseen:
        """See `SeriesFamily`; the surprise is that of mid-p."""
        ahead = self._known(state).predictive(np.full(len(value), self.trials))
        below, above = ahead.log_mid_tails(clamp(value, 0.0, 1.0) * self.trials)
        lower, typical, upper = (np.minimum(ahead.quantile(end) / self.trials, 1.0) for end in ends)
        return Foreseen(np.maximum(-_LN2 - np.minimum(below, above), 0.0), lower, typical, upper)

    def log_mass(self, state: Rows, value: Array, samples: Array) -> tuple[Array, Array]:
        """See `SeriesFamily`."""
        ahead = self._known(state).predictive(np.full(len(value), self.trials))
        return ahead.log_density(clamp(value, 0.0, 1.0) * self.trials), np.full(len(value), 1 / self.trials)

    def learn(self, state: Rows, value: Array, samples: Array, weight: Array, forget: Array) -> None:
        """See `SeriesFamily`."""
        share, trials = clamp(value, 0.0, 1.0), np.full(len(value), self.trials)
        after = self._known(state).learn(share, trials, weight, forget)
        state["successes"], state["failures"] = after.successes, after.failures
        state["windows"], state["excess"] = after.windows, after.excess

    def shift(self, state: Rows, offset: Array, few: float) -> None:
        """See `SeriesFamily`."""
        successes, left = state["successes"], _left(state["windows"], few)
        total = successes + state["failures"]
        moved = clamp(successes + offset * total, 0.0, total)
        state["successes"], state["failures"] = moved * left, (total - moved) * left
        for name in ("windows", "excess"):
            state[name] = state[name] * left

    def _known(self, state: Rows) -> BetaBinomial:
        return BetaBinomial(state["successes"], state["failures"], state["windows"], state["excess"])


@dataclass(frozen=True)
class Levels(SeriesFamily):
    """A few distinct values; the surprise is that of a value at most as likely."""

    def new_state(self, n: int) -> Columns:
        """See `SeriesFamily`."""
        return {"places": np.zeros((n, SLOTS)), "counts": np.zeros((n, SLOTS), np.float32), "strangers": np.zeros(n)}

    def worth(self, state: Rows) -> Array:
        """See `SeriesFamily`."""
        worth: Array = state["counts"].astype(np.float64).sum(axis=1)
        return worth

    def foresee(self, state: Rows, value: Array, samples: Array, ends: Array) -> Foreseen:
        """See `SeriesFamily`."""
        ahead = self._known(state).predictive()
        lower, typical, upper = (ahead.quantile(end) for end in ends)
        return Foreseen(-ahead.log_rarity(value), lower, typical, upper)

    def log_mass(self, state: Rows, value: Array, samples: Array) -> tuple[Array, Array]:
        """See `SeriesFamily`."""
        ahead = self._known(state).predictive()
        return ahead.log_density(value) + np.log(ahead.step), ahead.step

    def learn(self, state: Rows, value: Array, samples: Array, weight: Array, forget: Array) -> None:
        """See `SeriesFamily`."""
        self._write(state, self._known(state).learn(value, weight, forget))

    def distinct(self, state: Rows) -> Array:
        """How many values are remembered, shape (n,)."""
        return self._known(state).distinct().astype(np.float64)

    def forget_all(self, state: Rows) -> None:
        """Begins anew."""
        self._write(state, Categorical.empty(len(state.rows)))

    def _write(self, state: Rows, known: Categorical) -> None:
        state["places"], state["counts"], state["strangers"] = known.places, known.counts, known.strangers

    def _known(self, state: Rows) -> Categorical:
        return Categorical(state["places"], state["counts"].astype(np.float64), state["strangers"])

"""One family alone judging a series: for counts, ratios and quantised values, where a mixture of levels does not fit.

A small detector with the columns of its family, a calibration and nothing else; kinds, seasons and incidents are not
its business.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from models.arrays import LARGEST, Array, Columns, Flags, Ints, Rows, clamp, prefixed
from models.evidence.combine import score
from models.evidence.point import compress, nats_calibration
from models.evidence.repeats import NEVER
from models.families.beta_binomial import BetaBinomial
from models.families.categorical import SLOTS, Categorical
from models.families.gamma_poisson import GammaPoisson
from models.verdicts import Kind, Verdicts

_LN2 = float(np.log(2.0))


@dataclass(frozen=True)
class Foreseen:
    """What a family says of n values: surprise in nats, at least 0, and the band; all of shape (n,)."""

    surprise: Array
    lower: Array
    typical: Array
    upper: Array


class SeriesFamily(ABC):
    """A family whose sufficient statistics are columns."""

    @abstractmethod
    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""

    @abstractmethod
    def admits(self, value: Array) -> Flags:
        """Whether a value can be judged, shape (n,)."""

    @abstractmethod
    def foresee(self, state: Rows, value: Array, ends: Array) -> Foreseen:
        """What is thought of the values; ``ends``: standard normal places of lower end, middle, upper end; (3, 1)."""

    @abstractmethod
    def learn(self, state: Rows, value: Array, forget: float) -> None:
        """Adds a value each."""


@dataclass(frozen=True)
class Counts(SeriesFamily):
    """Gamma-Poisson, each window of the same exposure; larger counts than 1e15 are judged as that."""

    def new_state(self, n: int) -> Columns:
        """See `SeriesFamily`."""
        return {name: np.zeros(n) for name in ("events", "exposure", "windows", "excess")}

    def admits(self, value: Array) -> Flags:
        """See `SeriesFamily`."""
        return np.isfinite(value) & (value >= 0)

    def foresee(self, state: Rows, value: Array, ends: Array) -> Foreseen:
        """See `SeriesFamily`; the surprise is that of mid-p."""
        ahead = self._known(state).predictive(np.ones(len(value)))
        below, above = ahead.log_mid_tails(np.minimum(value, 1e15))
        lower, typical, upper = (ahead.quantile(end) for end in ends)
        surprise = np.maximum(-_LN2 - np.minimum(below, above), 0.0)
        return Foreseen(surprise, np.floor(lower), typical, np.ceil(upper))

    def learn(self, state: Rows, value: Array, forget: float) -> None:
        """See `SeriesFamily`."""
        after = self._known(state).learn(value, np.ones(len(value)), 1.0, forget)
        state["events"], state["exposure"] = after.events, after.exposure
        state["windows"], state["excess"] = after.windows, after.excess

    def _known(self, state: Rows) -> GammaPoisson:
        return GammaPoisson(state["events"], state["exposure"], state["windows"], state["excess"])


@dataclass(frozen=True)
class Ratios(SeriesFamily):
    """Beta-binomial.

    Args:
        trials: What each ratio is a share of, assumed.
    """

    trials: float = 1000.0

    def new_state(self, n: int) -> Columns:
        """See `SeriesFamily`."""
        return {name: np.zeros(n) for name in ("successes", "failures", "windows", "excess")}

    def admits(self, value: Array) -> Flags:
        """See `SeriesFamily`."""
        return (value >= 0) & (value <= 1)

    def foresee(self, state: Rows, value: Array, ends: Array) -> Foreseen:
        """See `SeriesFamily`; the surprise is that of mid-p."""
        ahead = self._known(state).predictive(np.full(len(value), self.trials))
        below, above = ahead.log_mid_tails(value * self.trials)
        lower, typical, upper = (np.minimum(ahead.quantile(end) / self.trials, 1.0) for end in ends)
        return Foreseen(np.maximum(-_LN2 - np.minimum(below, above), 0.0), lower, typical, upper)

    def learn(self, state: Rows, value: Array, forget: float) -> None:
        """See `SeriesFamily`."""
        after = self._known(state).learn(value, np.full(len(value), self.trials), 1.0, forget)
        state["successes"], state["failures"] = after.successes, after.failures
        state["windows"], state["excess"] = after.windows, after.excess

    def _known(self, state: Rows) -> BetaBinomial:
        return BetaBinomial(state["successes"], state["failures"], state["windows"], state["excess"])


@dataclass(frozen=True)
class Levels(SeriesFamily):
    """A few distinct values; the surprise is that of a value at most as likely."""

    def new_state(self, n: int) -> Columns:
        """See `SeriesFamily`."""
        return {"places": np.zeros((n, SLOTS)), "counts": np.zeros((n, SLOTS)), "strangers": np.zeros(n)}

    def admits(self, value: Array) -> Flags:
        """See `SeriesFamily`."""
        return np.isfinite(value)

    def foresee(self, state: Rows, value: Array, ends: Array) -> Foreseen:
        """See `SeriesFamily`."""
        ahead = self._known(state).predictive()
        lower, typical, upper = (ahead.quantile(end) for end in ends)
        return Foreseen(-ahead.log_rarity(value), lower, typical, upper)

    def learn(self, state: Rows, value: Array, forget: float) -> None:
        """See `SeriesFamily`."""
        after = self._known(state).learn(value, 1.0, forget)
        state["places"], state["counts"], state["strangers"] = after.places, after.counts, after.strangers

    def _known(self, state: Rows) -> Categorical:
        return Categorical(state["places"], state["counts"], state["strangers"])


@dataclass(frozen=True)
class _Judgement:
    verdicts: Verdicts
    valid: Flags
    memo: Any


class Single:
    """Judges one value each of any number of series by one family, then learns from it.

    Args:
        family: The family.
        forget: Share of its statistics forgotten a step.
        warm_up: Values before a series is judged.
        threshold: record_score from which a value is an anomaly.
        calibrated: Whether surprise is measured against the series' own history of it; not for values of which there
            are but a few different ones.

    >>> detector, row = Single(Counts()), np.array([0])
    >>> state = detector.new_state(1)
    >>> for count in [*np.random.default_rng(0).poisson(3, 300), 25]:
    ...     verdict = detector.step(state, row, row, np.array([float(count)]))
    >>> verdict.record_score.round(), verdict.lower, verdict.upper
    (array([67.]), array([0.]), array([10.]))
    """

    def __init__(
        self,
        family: SeriesFamily,
        forget: float = 1 / 6000,
        warm_up: int = 10,
        threshold: float = 50.0,
        calibrated: bool = True,
    ) -> None:
        self.family, self.forget, self.warm_up, self.threshold = family, forget, warm_up, threshold
        self.calibration, self.calibrated = nats_calibration(1 / 5000), calibrated
        self._ends = ndtri(np.array([[0.0005], [0.5], [0.9995]]))

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        own = {"seen": np.zeros(n)} | prefixed("family.", self.family.new_state(n))
        return own | prefixed("point.", self.calibration.new_state(n))

    def score(self, state: Columns, rows: Ints, time: Ints, value: Array) -> Verdicts:
        """Verdicts on one value each of some series; pure. Arguments as of `models.detector.Detector.score`."""
        return self._judge(state, rows, time, value).verdicts

    def learn(self, state: Columns, rows: Ints, time: Ints, value: Array) -> None:
        """Learns from one value each. Arguments as of `score`."""
        self._learn(state, rows, value, self._judge(state, rows, time, value))

    def step(self, state: Columns, rows: Ints, time: Ints, value: Array) -> Verdicts:
        """`score`, then `learn`, at the cost of one. Arguments as of `score`."""
        judged = self._judge(state, rows, time, value)
        self._learn(state, rows, value, judged)
        return judged.verdicts

    def _judge(self, state: Columns, rows: Ints, time: Ints, value: Array) -> _Judgement:
        seen, valid = Rows(state, rows, "")["seen"], self.family.admits(value)
        told = self.family.foresee(Rows(state, rows, "family."), _bounded(value, valid), self._ends)
        calibrated, memo = self.calibration.evidence(Rows(state, rows, "point."), compress(told.surprise))
        trust = np.where(valid, np.minimum(seen / self.warm_up, 1.0), 0.0)
        point = (calibrated if self.calibrated else told.surprise) * trust
        points = score(point, 8.0)
        kind = np.where(points >= self.threshold, Kind.ANOMALY.code, Kind.NORMAL.code)
        kind = np.where(seen < self.warm_up, Kind.LEARNING.code, kind)
        since = np.where(kind == Kind.ANOMALY.code, time, NEVER)
        known = seen > 0
        typical = clamp(told.typical, told.lower, told.upper)
        lower, typical, upper = (np.where(known, edge, np.nan) for edge in (told.lower, typical, told.upper))
        return _Judgement(
            Verdicts(points, np.exp(-point), typical, lower, upper, kind, since, {"point": point}), valid, memo
        )

    def _learn(self, state: Columns, rows: Ints, value: Array, judged: _Judgement) -> None:
        blank = rows[~judged.valid]
        saved = {name: column[blank] for name, column in state.items()} if len(blank) else {}
        own = Rows(state, rows, "")
        self.family.learn(Rows(state, rows, "family."), _bounded(value, judged.valid), self.forget)
        self.calibration.learn(Rows(state, rows, "point."), judged.memo, own["seen"] >= self.warm_up)
        own["seen"] = own["seen"] + 1
        for name, column in saved.items():
            state[name][blank] = column


def _bounded(value: Array, valid: Flags) -> Array:
    return clamp(np.where(valid, value, 0.0), -LARGEST, LARGEST)

"""One machine's metrics judged together, window by window; vectorised over machines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.arrays import LARGEST, Array, Columns, Flags, Ints, Rows, clamp, prefixed
from models.evidence.combine import score
from models.evidence.mean import mean_surprise
from models.evidence.point import compress, nats_calibration
from models.evidence.repeats import NEVER
from models.multivariate.conditional import Conditional, Expectation
from models.multivariate.config import MultivariateConfig
from models.multivariate.moments import Moments, Window
from models.multivariate.tail import PowerTail
from models.verdicts import Kind, Verdicts

_TAIL_SCALE, _TAIL_STRENGTH = 0.3, 20.0

_STEP_PACE = 0.05
"""How fast the usual time between two windows follows."""

_DISTANCE_SHARE = 0.05
"""What is believed beforehand of an anomaly: that it breaks no correlation, and only lies far out."""


@dataclass(frozen=True)
class MachineVerdicts(Verdicts):
    """Verdicts on n machines and what each of their metrics contributed.

    As `Verdicts`; typical, lower and upper are NaN. The evidence channels are ``residual`` (metrics that are not what
    the others say: Q, or SPE, in process control) and ``distance`` (all of them far out together: Hotelling's T²).

    Args:
        shares: Of each metric, its share of the residual evidence; they add up to 1, or are all 0; shape (n, w).
        expected: What was expected of each metric given the others, in its own units; shape (n, w).
        mean: Residual evidence averaged over metrics and the last windows, 1 in the long run: for ranking; shape (n,).
    """

    shares: Array
    expected: Array
    mean: Array


@dataclass(frozen=True)
class _Judgement:
    verdicts: MachineVerdicts
    valid: Flags
    window: Window
    expectation: Expectation
    residual: Any
    distance: Any


class Multivariate:
    """Judges one window each of any number of machines with up to w metrics, then learns from it.

    Args:
        config: The constants.
        width: Metrics a machine has at most, w; machines of like width go together.

    >>> model, rows = Multivariate(MultivariateConfig(), 3), np.array([0])
    >>> state, rng = model.new_state(1), np.random.default_rng(0)
    >>> for minute in range(500):
    ...     load = np.sin(minute / 30)
    ...     value = np.array([[load, 2 * load, -load]]) + rng.normal(0, 0.05, 3)
    ...     if minute == 499:
    ...         value[0, 1] = -2 * load  # as it has often been, but not with these others
    ...     verdict = model.step(state, rows, np.array([minute * 60_000]), value)
    >>> verdict.record_score.round(), verdict.shares.round(2)
    (array([65.]), array([[0.13, 0.75, 0.12]]))
    """

    def __init__(self, config: MultivariateConfig, width: int) -> None:
        self.config, self.width = config, width
        self.moments = Moments(width, config.forget, config.clip)
        self.conditional = Conditional(self.moments, config.noise, config.prior, config.refresh)
        self.tail = PowerTail(_TAIL_SCALE, _TAIL_STRENGTH, config.tail_forget)
        self.calibration = nats_calibration(config.calibration_forget)

    def new_state(self, n: int) -> Columns:
        """The columns for n machines of which nothing is known; the first axis is the machine."""
        columns: Columns = {"seen": np.zeros(n), "time": np.zeros(n, np.int64), "step": np.zeros(n)}
        columns |= self.moments.new_state(n) | self.conditional.new_state(n)
        columns |= prefixed("tail.", self.tail.new_state(n, self.width))
        columns |= prefixed("residual.", self.calibration.new_state(n)) | {"residual.mean": np.ones(n)}
        return columns | prefixed("distance.", self.calibration.new_state(n))

    def score(self, state: Columns, rows: Ints, time: Ints, value: Array) -> MachineVerdicts:
        """Verdicts on one window each of some machines; pure.

        Args:
            state: As from `new_state`.
            rows: Distinct rows of the state, shape (n,).
            time: End of the window, epoch milliseconds, shape (n,).
            value: A column a metric, the same metric always in the same one; NaN or infinite: missing; shape (n, w).
        """
        return self._judge(state, rows, time, value).verdicts

    def learn(self, state: Columns, rows: Ints, time: Ints, value: Array, weight: Array | None = None) -> None:
        """Learns from one window each; changes those rows of the state.

        Args:
            state: As of `score`, like ``rows``, ``time`` and ``value``.
            rows: See `score`.
            time: See `score`.
            value: See `score`.
            weight: What each window counts, in [0, 1], e.g. 0 while an outage lasts; ``None``: 1; shape (n,).
        """
        self._learn(state, rows, time, self._judge(state, rows, time, value), weight)

    def step(
        self, state: Columns, rows: Ints, time: Ints, value: Array, weight: Array | None = None
    ) -> MachineVerdicts:
        """`score`, then `learn`, at the cost of one. Arguments as of `learn`."""
        judged = self._judge(state, rows, time, value)
        self._learn(state, rows, time, judged, weight)
        return judged.verdicts

    def shift(self, state: Columns, rows: Ints, column: Ints, offset: Array) -> None:
        """Moves what is typical of one metric each of some machines by an offset; changes those rows of the state.

        Args:
            state: As of `score`.
            rows: Its row of each machine, shape (n,); a machine may stand several times, with distinct columns.
            column: The metric's column, shape (n,).
            offset: By how much its level has changed, shape (n,).
        """
        mean = Rows(state, rows, "")
        mean.set_cell("mean", column, mean.cell("mean", column) + offset)

    def _judge(self, state: Columns, rows: Ints, time: Ints, value: Array) -> _Judgement:
        own = Rows(state, rows, "")
        present = np.isfinite(value)
        valid: Flags = present.max(axis=1)
        seen, usual = own["seen"], own["step"]
        standard = self.moments.standard(own)
        count, mean, scale = standard
        known = np.where(present, clamp(np.where(present, value, 0.0), -LARGEST, LARGEST), mean)
        judgeable = present & (count > 0)
        gap = (time - own["time"]).astype(np.float64)
        linked = ((seen > 1) & (gap > 0) & (gap <= self.config.stale * usual)).astype(np.float64)
        before = own["before"]
        expectation = self.conditional.expect(own, self.moments.standardise(standard, known), judgeable, before, linked)

        pieces = judgeable.sum(axis=1)
        evidence = self.tail.evidence(Rows(state, rows, "tail."), expectation.residual)
        evidence = np.where(judgeable, evidence, 0.0)
        total = evidence.sum(axis=1)
        so_far = Rows(state, rows, "residual.")["mean"]
        average = so_far + self.config.pace * (total / np.maximum(pieces, 1) - so_far)
        average = np.where(pieces > 0, average, so_far)
        worth = np.maximum(pieces, 1) * (2 - self.config.pace) / self.config.pace
        residual, residual_memo = self.calibration.evidence(
            Rows(state, rows, "residual."), compress(mean_surprise(average, worth))
        )
        squared = self.conditional.distance(own, np.where(judgeable, expectation.z, 0.0)) / np.maximum(pieces, 1)
        distance, distance_memo = self.calibration.evidence(
            Rows(state, rows, "distance."), compress(mean_surprise(squared, 0.5 * np.maximum(pieces, 1)))
        )

        trust = np.where(pieces > 0, np.minimum(seen / self.config.warm_up, 1.0), 0.0)
        channels = {"residual": residual * trust, "distance": distance * trust}
        both = _combine(residual * trust, distance * trust)
        points = score(both, self.config.half)
        kind = np.where(points >= self.config.threshold, Kind.ANOMALY.code, Kind.NORMAL.code)
        kind = np.where(seen < self.config.warm_up, Kind.LEARNING.code, kind)
        unknown = np.full(len(rows), np.nan)
        since = np.where(kind == Kind.ANOMALY.code, time, NEVER)
        shares = evidence / np.where(total > 0, total, 1.0)[:, None]
        expected = mean + expectation.expected * scale
        window = Window(known, present, expectation.z, before, linked, np.ones(len(rows)))
        return _Judgement(
            verdicts=MachineVerdicts(
                points,
                np.exp(-both),
                unknown,
                unknown,
                unknown,
                kind,
                since,
                channels,
                shares,
                expected,
                average,
            ),
            valid=valid,
            window=window,
            expectation=expectation,
            residual=residual_memo,
            distance=distance_memo,
        )

    def _learn(self, state: Columns, rows: Ints, time: Ints, judged: _Judgement, weight: Array | None) -> None:
        blank = rows[~judged.valid]
        saved = {name: column[blank] for name, column in state.items()} if len(blank) else {}
        self._learn_all(state, rows, time, judged, np.ones(len(rows)) if weight is None else weight)
        for name, column in saved.items():
            state[name][blank] = column

    def _learn_all(self, state: Columns, rows: Ints, time: Ints, judged: _Judgement, weight: Array) -> None:
        own = Rows(state, rows, "")
        window, seen, usual = judged.window, own["seen"], own["step"]
        counted = window.present & (own["count"] > 0)
        self.moments.learn(own, replace(window, weight=weight))
        self.conditional.learn(own, seen + 1)
        self.tail.learn(Rows(state, rows, "tail."), judged.expectation.residual, counted, weight)
        warm = (seen >= self.config.warm_up) & (weight > 0)
        residual = Rows(state, rows, "residual.")
        self.calibration.learn(residual, judged.residual, warm)
        self.calibration.learn(Rows(state, rows, "distance."), judged.distance, warm)
        residual["mean"] = judged.verdicts.mean
        gap = np.maximum(time - own["time"], 0).astype(np.float64)
        surprised = np.where(usual > 0, np.minimum(gap, self.config.stale * usual), gap)
        own["step"] = np.where(seen > 0, np.where(usual > 0, usual + _STEP_PACE * (surprised - usual), gap), 0.0)
        own["seen"], own["time"] = seen + 1, time


def _combine(residual: Array, distance: Array) -> Array:
    """Weighted harmonic mean of the two probabilities (Wilson 2019), in nats: valid however they depend."""
    joined: Array = np.logaddexp(residual + np.log(1 - _DISTANCE_SHARE), distance + np.log(_DISTANCE_SHARE))
    both: Array = np.maximum(joined, 0.0)
    return both

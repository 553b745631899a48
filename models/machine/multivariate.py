"""One machine's metrics judged together, window by window. Compiled; the model runs over any number of machines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.config import DetectorConfig
from models.evidence.mean import mean_surprise_of
from models.evidence.point import compressed, nats_calibration
from models.evidence.repeats import NEVER
from models.evidence.score import is_alarm, scored
from models.kernels import kernel, within
from models.machine import conditional, moments
from models.machine.conditional import expect, learn_regressions
from models.machine.config import MultivariateConfig
from models.machine.moments import learn_moments, scale_of, standardised
from models.machine.state import MATRICES, VECTORS, Machine, Window, machine_at
from models.machine.tail import PowerTail, learn_power, power_evidence
from models.numbers.arrays import LARGEST, Array, Columns, Ints, Rows, prefixed
from models.numbers.calibration import learn_tail, tail_evidence
from models.records import Layout, Record, Table, constants, record_type
from models.verdicts import Kind, Verdicts, without_band

_NORMAL, _ANOMALY, _LEARNING = Kind.NORMAL.code, Kind.ANOMALY.code, Kind.LEARNING.code

_FLOATS = ("record_score", "probability", "residual", "mean")
VERDICT = record_type([*((name, np.float64) for name in _FLOATS), ("kind", np.int64), ("since", np.int64)])
"""A verdict on a machine as a record; the fields are those of `MachineVerdicts`, and its evidence."""


@dataclass(frozen=True)
class MachineVerdicts(Verdicts):
    """Verdicts on n machines and what each of their metrics contributed.

    As `Verdicts`; typical, lower and upper are NaN. The evidence is ``residual``: metrics that are not what the others
    say (Q, or SPE, in process control).

    Args:
        shares: Of each metric, its share of the residual evidence; they add up to 1, or are all 0; shape (n, w).
        expected: What was expected of each metric given the others, in its own units; shape (n, w).
        mean: Residual evidence averaged over metrics and the last windows, 1 in the long run: for ranking; shape (n,).
    """

    shares: Array
    expected: Array
    mean: Array


class Multivariate:
    """Judges one window each of any number of machines with up to w metrics, then learns from it.

    Args:
        config: The constants.
        width: Metrics a machine has at most, w; machines of like width go together.
        learning: Windows of a machine before it is judged, as for series.

    >>> model, rows = Multivariate(MultivariateConfig(), 3), np.array([0])
    >>> state, rng = model.new_state(1), np.random.default_rng(0)
    >>> for minute in range(500):
    ...     load = np.sin(minute / 30)
    ...     value = np.array([[load, 2 * load, -load]]) + rng.normal(0, 0.05, 3)
    ...     if minute == 499:
    ...         value[0, 1] = -2 * load  # as it has often been, but not with these others
    ...     verdict = model.step(state, rows, np.array([minute * 60_000]), value)
    >>> verdict.record_score.round(), verdict.shares.round(2)
    (array([65.]), array([[0.13, 0.74, 0.12]]))
    """

    def __init__(self, config: MultivariateConfig, width: int, learning: int = DetectorConfig.learning) -> None:
        self.config, self.width = config, width
        self.tail = PowerTail(config.tail_scale, config.tail_strength, config.forget)
        self.calibration = nats_calibration(config.forget)
        self._layout = Layout(self._own(0))
        self._constants = constants(config=config, tail=self.tail, calibration=self.calibration, learning=learning)

    def new_state(self, n: int) -> Columns:
        """The columns for n machines of which nothing is known; the first axis is the machine."""
        columns = self._layout.joined(self._own(n)) | moments.new_state(n, self.width)
        columns |= conditional.new_state(n, self.width, self.config.noise) | {"residual.mean": np.ones(n)}
        return columns | prefixed("tail.", self.tail.new_state(n, self.width))

    def _own(self, n: int) -> Columns:
        columns: Columns = {"seen": np.zeros(n), "time": np.zeros(n, np.int64), "step": np.zeros(n), "age": np.zeros(n)}
        return columns | prefixed("residual.", self.calibration.new_state(n))

    def score(self, state: Columns, rows: Ints, time: Ints, value: Array) -> MachineVerdicts:
        """Verdicts on one window each of some machines; pure.

        Args:
            state: As from `new_state`.
            rows: Rows of the state, shape (n,).
            time: End of the window, epoch milliseconds, shape (n,).
            value: A column a metric, the same metric always in the same one; NaN or infinite: missing; shape (n, w).
        """
        return self._run(state, rows, time, value, value, np.full(len(rows), -1.0))

    def learn(self, state: Columns, rows: Ints, time: Ints, value: Array, weight: Array | None = None) -> None:
        """Learns from one window each; changes those rows of the state. See `step` for the arguments."""
        self.step(state, rows, time, value, weight)

    def step(
        self,
        state: Columns,
        rows: Ints,
        time: Ints,
        value: Array,
        weight: Array | None = None,
        learned: Array | None = None,
    ) -> MachineVerdicts:
        """`score`, then `learn`, at the cost of one.

        Args:
            state: As of `score`, like ``rows``, ``time`` and ``value``; a row may stand several times: each verdict is
                by what was learned from those before.
            rows: See `score`.
            time: See `score`.
            value: See `score`.
            weight: What each window counts, in [0, 1], e.g. 0 while an outage lasts; ``None``: 1; shape (n,).
            learned: What is learned in place of ``value``; ``None``: the same; shape (n, w).
        """
        weight = np.ones(len(rows)) if weight is None else weight
        return self._run(state, rows, time, value, value if learned is None else learned, weight)

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

    def widen(self, state: Columns, rows: Ints, narrower: Columns, width: int) -> None:
        """Takes over what a narrower model knows of some machines: metrics keep their columns, others are unknown.

        Args:
            state: As for `score`; those rows are changed.
            rows: Distinct rows that are as in `new_state`, shape (n,).
            narrower: The columns of that model for these machines, in this order.
            width: Its width.
        """
        for name, column in narrower.items():
            if name in MATRICES:
                whole = state[name][rows].reshape(-1, self.width, self.width)
                whole[:, :width, :width] = column.reshape(-1, width, width)
                state[name][rows] = whole.reshape(-1, self.width**2)
            elif column.ndim == 2:
                state[name][rows, :width] = column
            else:
                state[name][rows] = column

    def _run(
        self, state: Columns, rows: Ints, time: Ints, value: Array, learned: Array, weight: Array
    ) -> MachineVerdicts:
        """Judges windows one after the other, and learns from each; a weight below 0: nothing is learned."""
        own = self._layout.records(state)
        if own is None:  # columns that were copied: some that share memory are made of them, and written back
            distinct, places = np.unique(rows, return_inverse=True)
            part = {name: column[distinct] for name, column in state.items()}
            part |= self._layout.joined(part)
            verdicts = self._run(part, places, time, value, learned, weight)
            if (weight >= 0).any():
                for name, column in part.items():
                    state[name][distinct] = column
            return verdicts
        n = len(rows)
        records, by_metric = np.zeros(n, VERDICT), np.empty((2, n, self.width))
        values = np.ascontiguousarray(value, np.float64), np.ascontiguousarray(learned, np.float64)
        machines = self._machines(state, own)
        run(self._constants, machines, rows, time, *values, value is not learned, weight, records, by_metric)
        evidence = {"residual": records["residual"]}
        return MachineVerdicts(*without_band(records), evidence, by_metric[0], by_metric[1], records["mean"])

    def machines(self, state: Columns) -> Machine:
        """The state as kernels take it: columns as from `new_state`, which share memory with what is returned.

        Raises:
            ValueError: The columns are copies.
        """
        own = self._layout.records(state)
        if own is None:
            raise ValueError("the columns of the machines are copies of those that were made for them")
        return self._machines(state, own)

    def _machines(self, state: Columns, own: Table) -> Machine:
        return Machine(own, *(state[name] for name in (*VECTORS, *MATRICES)))  # type: ignore[arg-type]


class Judgement(NamedTuple):
    """All that learning wants of the way to a verdict."""

    window: Window
    valid: bool
    residual: float
    mean: float


@kernel
def run(
    constants: Record,
    machines: Machine,
    rows: Ints,
    time: Ints,
    value: Array,
    learned: Array,
    differs: bool,
    weight: Array,
    verdicts: Table,
    by_metric: Array,
) -> None:
    """Judges windows one after the other, and learns from each before the next.

    Args:
        constants: Those of the model.
        machines: The state; changed where a weight is not below 0.
        rows: Row of the machine of each window, shape (n,).
        time: Its end, epoch milliseconds, shape (n,).
        value: What is judged, shape (n, w).
        learned: What is learned, shape (n, w).
        differs: Whether that is something else in some window.
        weight: What a window counts; below 0: nothing is learned from it; shape (n,).
        verdicts: Records of `VERDICT`, shape (n,); written.
        by_metric: Written: shares and what was expected, shape (2, n, w).
    """
    nothing, nowhere = np.zeros(1, VERDICT), np.empty((2, 1, value.shape[1]))
    for i in range(len(rows)):
        machine = machine_at(machines, rows[i])
        judgement = judge_window(constants, machine, time[i], value[i], verdicts[i], by_metric[:, i])
        if weight[i] < 0:
            continue
        if differs and not _alike(value[i], learned[i]):  # what was found before may fade with what is not learned
            machine.average[0] = min(machine.average[0], judgement.mean)
            judgement = judge_window(constants, machine, time[i], learned[i], nothing[0], nowhere[:, 0])
        if judgement.valid:
            learn_window(constants, machine, time[i], judgement, weight[i])


@kernel
def _alike(one: Array, other: Array) -> bool:
    """Whether two windows have the same values, and lack the same."""
    same = True
    for i in range(len(one)):
        same &= one[i] == other[i] or (math.isnan(one[i]) and math.isnan(other[i]))
    return same


@kernel
def judge_window(
    constants: Record, machine: Machine, time: int, value: Array, verdict: Record, by_metric: Array
) -> Judgement:
    """Judges a window; changes nothing but the verdict.

    Args:
        constants: Those of the model.
        machine: The machine.
        time: End of the window, epoch milliseconds.
        value: The values, NaN or infinite where missing, shape (w,).
        verdict: A record of `VERDICT`; written.
        by_metric: Written: the share of each metric, and what was expected of it; shape (2, w).
    """
    config, own, width = constants.config, machine.own[0], len(value)
    filled, z, scale = np.empty(width), np.empty(width), np.empty(width)
    present, judgeable = np.zeros(width, np.bool_), np.zeros(width, np.bool_)
    valid, pieces = False, 0.0
    for i in range(width):
        present[i] = math.isfinite(value[i])
        judgeable[i] = present[i] and machine.held[i] > 0
        valid |= present[i]
        pieces += judgeable[i]
        scale[i] = scale_of(machine.mean[i], machine.variance[i])
        filled[i] = within(value[i], -LARGEST, LARGEST) if present[i] else machine.mean[i]
        z[i] = standardised(machine.held[i], machine.mean[i], scale[i], filled[i])
    gap = float(time - own.time)
    linked = 1.0 if 0 < gap < 2 * own.step else 0.0  # no window was missed in between
    residual, expected = np.empty(width), np.empty(width)
    expect(config, machine, z, judgeable, linked, (residual, expected))

    total = 0.0
    for i in range(width):
        shares = power_evidence(machine.shape[i], machine.rate[i], residual[i]) if judgeable[i] else 0.0
        by_metric[0, i], by_metric[1, i] = shares, machine.mean[i] + expected[i] * scale[i]
        total += shares
    for i in range(width):
        by_metric[0, i] /= total if total > 0 else 1.0
    counted = max(pieces, 1.0)
    mean = machine.average[0]
    if pieces > 0:
        mean += config.pace * (total / counted - mean)
    lasting = compressed(mean_surprise_of(mean, counted * (2 - config.pace) / config.pace))
    trust = min(own.seen / constants.learning, 1.0) if pieces > 0 else 0.0
    verdict.residual = tail_evidence(constants.calibration, own.residual, lasting) * trust
    verdict.record_score, verdict.probability = scored(verdict.residual, config.half), math.exp(-verdict.residual)
    verdict.mean = mean
    verdict.kind = _ANOMALY if is_alarm(verdict.record_score, config.threshold) else _NORMAL
    if own.seen < constants.learning:
        verdict.kind = _LEARNING
    verdict.since = time if verdict.kind == _ANOMALY else NEVER
    return Judgement(Window(filled, present, judgeable, z, residual, expected, linked), valid, lasting, mean)


@kernel
def learn_window(constants: Record, machine: Machine, time: int, judgement: Judgement, weight: float) -> None:
    """Learns from a window in which there is a value.

    Args:
        constants: Those of the model.
        machine: The machine; changed.
        time: End of the window, epoch milliseconds.
        judgement: As from `judge_window`.
        weight: What it counts, in [0, 1].
    """
    config, own, window = constants.config, machine.own[0], judgement.window
    learn_moments(config, machine, window, weight)
    learn_regressions(config, machine, window.present)
    for i in range(len(window.z)):
        if window.judgeable[i]:
            learn_power(constants.tail, machine.shape, machine.rate, i, window.residual[i], weight)
    if own.seen >= constants.learning and weight > 0:
        learn_tail(constants.calibration, own.residual, judgement.residual)
    machine.average[0] = judgement.mean
    own.step = float(max(time - own.time, 0)) if own.seen > 0 else 0.0
    own.seen, own.time = own.seen + 1, time

"""Contracts that every detector keeps: a list of functions, each run on any model by `tests/models/test_contracts.py`.

A model is anything with ``new_state(n)``, ``score``, ``learn`` and ``step`` as `models.detector.Detector` has them.
Values have the shape (steps, series); of models of several metrics at once (steps, machines, metrics).
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Protocol

import numpy as np
import pyarrow as pa

from models.numbers.arrays import Array, Columns, Flags, Ints
from models.verdicts import Kind, Verdicts

STEP = 300_000
"""Milliseconds between two values of the series that the contracts use."""

_STUCK = 13.0
"""Nats of exact repeats that are told of at a threshold of 50."""

MOST_BYTES = 1649
"""State of one series is at most so large."""


class Model(Protocol):
    """What a detector looks like."""

    def new_state(self, n: int) -> Columns:
        """The columns for n series."""

    def score(self, state: Columns, rows: Ints, time: Ints, value: Array) -> Verdicts:
        """Pure."""

    def learn(self, state: Columns, rows: Ints, time: Ints, value: Array) -> None:
        """Changes those rows of the state."""

    def step(self, state: Columns, rows: Ints, time: Ints, value: Array) -> Verdicts:
        """`score`, then `learn`."""


def run(model: Model, values: Array, state: Columns | None = None, start: int = 0) -> tuple[list[Verdicts], Columns]:
    """Steps through values of shape (steps, series, ...); the verdicts of each step and the state after them."""
    n = values.shape[1]
    columns = model.new_state(n) if state is None else state
    times = (start + np.arange(len(values), dtype=np.int64)) * STEP
    rows = np.arange(n)
    return [model.step(columns, rows, np.full(n, t), row) for t, row in zip(times, values, strict=True)], columns


def same(one: Verdicts, other: Verdicts, pick: Ints | None = None) -> None:
    """Raises `AssertionError` unless two verdicts are equal bit for bit (``pick``: rows of the first to compare)."""
    others = other.arrays()
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array if pick is None else array[pick], others[name], err_msg=name)


def same_state(one: Columns, other: Columns) -> None:
    """Raises `AssertionError` unless two states are equal bit for bit."""
    assert one.keys() == other.keys()
    for name, column in one.items():
        assert column.dtype == other[name].dtype, name
        np.testing.assert_array_equal(column, other[name], err_msg=name)


def prefix_invariant(model: Model, values: Array) -> None:
    """A verdict does not depend on anything later."""
    whole, half = run(model, values)[0], run(model, values[: len(values) // 2])[0]
    for one, other in zip(whole[: len(half)], half, strict=True):
        same(one, other)


def replay_deterministic(model: Model, values: Array) -> None:
    """The same values give the same verdicts and the same state."""
    (one, state), (other, again) = run(model, values), run(model, values)
    for first, second in zip(one, other, strict=True):
        same(first, second)
    same_state(state, again)


def batch_is_one_at_a_time(model: Model, values: Array) -> None:
    """A series is judged the same whichever other series are in the call."""
    together, state = run(model, values)
    for series in range(values.shape[1]):
        alone, own = run(model, np.ascontiguousarray(values[:, [series]]))
        for one, other in zip(together, alone, strict=True):
            same(one, other, np.array([series]))
        same_state({name: column[[series]] for name, column in state.items()}, own)


def order_of_rows_is_irrelevant(model: Model, values: Array) -> None:
    """The order of the rows of one call changes no verdict."""
    n = values.shape[1]
    forward, backward = model.new_state(n), model.new_state(n)
    rows, turned = np.arange(n), np.arange(n)[::-1].copy()
    for index, row in enumerate(values):
        time = np.full(n, index * STEP)
        same(model.step(forward, rows, time, row), model.step(backward, turned, time, row[turned]), turned)
    same_state(forward, backward)


def scoring_is_pure(model: Model, values: Array) -> None:
    """`score` changes nothing and agrees with `step`; `score` then `learn` leaves the state that `step` leaves."""
    state, n = run(model, values[:-1])[1], values.shape[1]
    rows, time = np.arange(n), np.full(n, len(values) * STEP)
    before = {name: column.copy() for name, column in state.items()}
    scored = model.score(state, rows, time, values[-1])
    same_state(before, state)
    model.learn(state, rows, time, values[-1])
    same(scored, model.step(before, rows, time, values[-1]))
    same_state(before, state)


def state_survives_arrow(model: Model, values: Array) -> None:
    """State written as Arrow columns to bytes and read back goes on with the same verdicts."""
    half = len(values) // 2
    state = run(model, values[:half])[1]
    columns = {
        name: pa.array(column)
        if column.ndim == 1
        else pa.FixedSizeListArray.from_arrays(pa.array(column.reshape(-1)), column.shape[1])
        for name, column in state.items()
    }
    buffer = io.BytesIO()
    table = pa.table(columns)
    with pa.ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table)
    read = pa.ipc.open_stream(buffer.getvalue()).read_all()
    restored: Columns = {}
    for name, column in state.items():
        flat = read.column(name).combine_chunks()
        flat = flat.flatten() if column.ndim > 1 else flat
        restored[name] = np.array(flat.to_numpy(zero_copy_only=False)).reshape(column.shape)
    on, again = run(model, values[half:], state, half)[0], run(model, values[half:], restored, half)[0]
    for one, other in zip(on, again, strict=True):
        same(one, other)


def missing_teaches_nothing(model: Model, values: Array) -> None:
    """NaN and infinities score 0 and leave the state as it was."""
    state, n = run(model, values)[1], values.shape[1]
    rows, time = np.arange(n), np.full(n, len(values) * STEP)
    for missing in (np.nan, np.inf, -np.inf):
        before = {name: column.copy() for name, column in state.items()}
        verdict = model.step(state, rows, time, np.full(values.shape[1:], missing))
        same_state(before, state)
        assert (verdict.record_score == 0).all()
        assert set(verdict.kind.tolist()) <= {Kind.NORMAL.code, Kind.LEARNING.code}


def nothing_is_out_of_bounds(model: Model, values: Array) -> None:
    """Scores lie in 0..100, probabilities in 0..1; all finite; no warning is given.

    Where a band is known, lower ≤ typical ≤ upper. It is known where what is typical is, from the
    time on that two values of the series were learned.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        verdicts, state = run(model, values)
    present: Flags = np.isfinite(values).reshape(*values.shape[:2], -1).max(axis=2)
    learned: Ints = np.cumsum(present, axis=0) - present
    for index, verdict in enumerate(verdicts):
        for name, array in verdict.arrays().items():
            may_be_unknown = name in {"typical", "lower", "upper"} or name.startswith("context.")
            assert np.isfinite(array).all() or may_be_unknown, name
        assert ((verdict.record_score >= 0) & (verdict.record_score <= 100)).all()
        assert ((verdict.probability >= 0) & (verdict.probability <= 1)).all()
        banded = ~np.isnan(verdict.lower)
        assert (banded == ~np.isnan(verdict.upper)).all()
        assert (banded == (~np.isnan(verdict.typical) & (learned[index] >= 2))).all()
        assert (verdict.lower[banded] <= verdict.typical[banded]).all()
        assert (verdict.typical[banded] <= verdict.upper[banded]).all()
    for name, column in state.items():
        assert np.isfinite(column).all(), name


def input_is_not_changed(model: Model, values: Array) -> None:
    """Rows, times and values that are handed in stay as they are."""
    n = values.shape[1]
    state, rows, time = run(model, values)[1], np.arange(n), np.full(n, len(values) * STEP)
    inputs = (rows, time, values[-1].copy())
    for array in inputs:
        array.flags.writeable = False
    model.step(state, *inputs)


def state_is_bounded(model: Model, values: Array) -> None:
    """The state of a series has a fixed and small size."""
    state = run(model, values)[1]
    fresh = model.new_state(values.shape[1])
    assert {k: (v.shape, v.dtype) for k, v in state.items()} == {k: (v.shape, v.dtype) for k, v in fresh.items()}
    series = int(np.prod(values.shape[2:], dtype=np.int64))
    assert sum(column[:1].nbytes for column in state.values()) <= MOST_BYTES * series


def learning_comes_first(model: Model, values: Array) -> None:
    """The first eight values (or windows with any value) of a series are *learning*, and no later one is."""
    present: Flags = np.isfinite(values).reshape(*values.shape[:2], -1).max(axis=2)
    for index, verdict in enumerate(run(model, values)[0]):
        learned = present[:index].sum(axis=0)
        np.testing.assert_array_equal(verdict.kind == Kind.LEARNING.code, learned < 8)


def unusual_kinds_have_evidence_of_their_own(model: Model, values: Array) -> None:
    """What is called an anomaly or a change of state lies outside its band, scores 50, or repeats itself exactly."""
    for verdict, value in zip(run(model, values)[0], values, strict=True):
        called = np.isin(verdict.kind, (Kind.ANOMALY.code, Kind.STATE_CHANGE.code))
        own = verdict.record_score >= 50
        if value.ndim == 1:
            own |= (value < verdict.lower) | (value > verdict.upper)
            own |= verdict.evidence["frozen"] >= _STUCK
        assert own[called].all()


CONTRACTS: list[Callable[[Model, Array], None]] = [
    prefix_invariant,
    replay_deterministic,
    batch_is_one_at_a_time,
    order_of_rows_is_irrelevant,
    scoring_is_pure,
    state_survives_arrow,
    missing_teaches_nothing,
    nothing_is_out_of_bounds,
    input_is_not_changed,
    state_is_bounded,
    learning_comes_first,
    unusual_kinds_have_evidence_of_their_own,
]
"""All contracts; each takes a model and values of shape (steps, series), and raises `AssertionError`."""

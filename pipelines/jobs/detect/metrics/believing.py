"""What is believed of series and machines after a step of judging, said where it has changed."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import polars as pl

from models.arrays import Array, Flags, Ints, Rows
from models.course import Course
from models.joined import JoinedVerdicts
from models.regimes.kept import SLOTS
from models.verdicts import Kind, SeriesVerdicts, Standing
from pipelines.contracts.records.novelty import JOINED
from pipelines.jobs.detect.beliefs import SCHEMA, Belief, Said, changed
from pipelines.jobs.detect.metrics.state import DetectionState


class _Step(Protocol):
    """The windows of a step; see `Detection`."""

    @property
    def series(self) -> Ints: ...
    @property
    def time(self) -> Ints: ...
    @property
    def end(self) -> Ints: ...
    @property
    def value(self) -> Array: ...


def believe_series(
    state: DetectionState, step: _Step, verdicts: SeriesVerdicts, standing: Standing, back: Flags
) -> None:
    """Collects what is believed of the series of a step, where it has changed.

    Args:
        state: The state; changed.
        step: The windows.
        verdicts: The verdicts on them.
        standing: How the series stand after them.
        back: True for windows that end an absence, shape (n,).
    """
    columns, ends = state.series.columns, back & (verdicts.kind == Kind.NORMAL.code)
    kind = np.where(ends, Kind.RECOVERED.code, verdicts.kind)
    incident = np.where(ends, Course.CLOSED.code, verdicts.incident)
    belief = Belief(
        step.time, step.end, kind, incident, verdicts.since, verdicts.record_score, step.value,
        verdicts.typical, verdicts.lower, verdicts.upper,
        standing.values, standing.regime, back,
    )  # fmt: skip
    at = changed(columns, step.series, belief)
    if len(at):
        rows = step.series[at]
        some, names = belief.at(at), state.series.names_of(rows)
        state.said.append(Said([(entity, metric) for entity, metric in names], some, standing.levels[at]))


def believe_machines(state: DetectionState, made: JoinedVerdicts, start: Ints, end: Ints, came_back: Ints) -> None:
    """Collects what is believed of the machines of a step, where it has changed.

    Args:
        state: The state after the step; changed.
        made: The joined verdicts.
        start: First instant of each machine's window, epoch milliseconds.
        end: End of each machine's window, epoch milliseconds.
        came_back: Rows of the machines whose absence these windows end.
    """
    columns, verdicts = state.entities.columns, made.verdicts
    none = np.full(len(start), np.nan)
    back = np.isin(made.entities, came_back) if len(came_back) else np.zeros(len(start), np.bool_)
    belief = Belief(
        start, end, verdicts.kind, made.incident, verdicts.since, verdicts.record_score, none, none, none, none,
        Rows(columns, made.entities, "")["seen"], np.zeros(len(start), np.int64), back,
    )  # fmt: skip
    at = changed(columns, made.entities, belief)
    if len(at):
        names = state.entities.names_of(made.entities[at])
        state.said.append(
            Said([(entity, JOINED) for (entity,) in names], belief.at(at), np.full((len(at), SLOTS), np.nan))
        )


def believed_absent(verdicts: pl.DataFrame) -> pl.DataFrame:
    """The beliefs that go with verdicts of absence."""
    there = [name for name in SCHEMA if name in verdicts.columns]
    missing = [pl.lit(None, kind).alias(name) for name, kind in SCHEMA.items() if name not in there]
    return (
        verdicts.select(*there, *missing)
        .select(*SCHEMA)
        .cast(pl.Schema(SCHEMA))
        .with_columns(pl.col("values").fill_null(0))
    )

"""What is believed of series and machines after a step of judging, said where it has changed."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import polars as pl

from models.evidence.repeats import NEVER
from models.numbers.arrays import Array, Flags, Ints
from models.regimes.kept import SLOTS
from models.series.course import Course
from models.verdicts import Kind, SeriesVerdicts, Standing
from pipelines.contracts.records.novelty import JOINED
from pipelines.jobs.detectors.beliefs import SCHEMA, Belief, SeriesBeliefs, changed
from pipelines.jobs.detectors.metrics.filling import Outlook
from pipelines.jobs.detectors.metrics.judging_order import steps
from pipelines.jobs.detectors.metrics.state import DetectionState
from pipelines.jobs.detectors.metrics.verdict_frames import JoinedWindows


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
    state: DetectionState, step: _Step, verdicts: SeriesVerdicts, standing: Standing, back: Flags, ahead: Outlook
) -> None:
    """Collects what is believed of the series of a step, where it has changed.

    Args:
        state: The state; changed.
        step: The windows.
        verdicts: The verdicts on them.
        standing: How the series stand after them.
        back: True for windows that end an absence, shape (n,).
        ahead: When they are full.
    """
    columns, ends = state.series.columns, back & (verdicts.kind == Kind.NORMAL.code)
    kind = np.where(ends, Kind.RECOVERED.code, verdicts.kind)
    incident = np.where(ends, Course.CLOSED.code, verdicts.incident)
    belief = Belief(
        step.time, step.end, kind, incident, verdicts.since, verdicts.record_score, step.value,
        verdicts.typical, verdicts.lower, verdicts.upper,
        standing.values, standing.regime, back | ahead.told, ahead.earliest, ahead.median, ahead.latest, ahead.slope,
    )  # fmt: skip
    at = changed(columns, step.series, belief)
    if len(at):
        rows = step.series[at]
        names = [(entity, metric) for entity, metric in state.series.names_of(rows)]
        state.changed.append(SeriesBeliefs(names, belief.at(at), standing.levels[at]))


def believe_machines(state: DetectionState, joined: JoinedWindows, step: Ints, end: Ints, back: Ints) -> None:
    """Collects what is believed of the machines of a frame, step by step, where it has changed.

    Args:
        state: The state; changed.
        joined: The joined verdicts.
        step: The number of the step of each row of the frame.
        end: End of the window of each row, epoch milliseconds.
        back: For each row the start of the absence of its whole machine that it ends; -1 if there was none.
    """
    judgement, verdicts, machine = joined.judgement, joined.judgement.verdicts, joined.windows.entity
    if not len(machine):
        return
    none, never = np.full(len(machine), np.nan), np.full(len(machine), NEVER)
    came_back = np.logical_or.reduceat(back[joined.rows] != NEVER, joined.windows.first[:-1])
    belief = Belief(
        joined.windows.time, end[joined.first], verdicts.kind, judgement.incident, verdicts.since,
        verdicts.record_score, none, none, none, none, judgement.seen, np.zeros(len(machine), np.int64), came_back,
        never, never, never, none,
    )  # fmt: skip
    for part in steps(step[joined.first]):
        places = np.arange(part.start, part.stop)
        at = places[changed(state.entities.columns, machine[part], belief.at(places))]
        if len(at):
            names = [(entity, JOINED) for (entity,) in state.entities.names_of(machine[at])]
            state.changed.append(SeriesBeliefs(names, belief.at(at), np.full((len(at), SLOTS), np.nan)))


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

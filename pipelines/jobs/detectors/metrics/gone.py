"""Gone: what has sent nothing for a day is no longer believed to have an incident, or to be absent.

A deleted VM, or a metric that is no more, would be absent for ever, and an incident that it had would stay open for
ever. So a day after its silence was certain the belief says `absence`, with an incident that is `closed`. What reports
at irregular times, and is never missed, is gone a day after its last window. The next window is believed as any other.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from models.evidence.repeats import NEVER
from models.numbers.arrays import Columns, Flags, Ints
from models.regimes.absence import SEVERAL
from models.regimes.silence import NEVER_DUE
from models.series.course import Course
from models.verdicts import Kind
from pipelines.contracts.records.novelty import ALARM_KINDS, JOINED
from pipelines.jobs.detectors.beliefs import code
from pipelines.jobs.detectors.metrics.state import DetectionState

AFTER = 86_400_000
"""How long something must have sent nothing, event time in milliseconds: as long as the default `incidents.longest`."""

WINDOWS = 10
"""What has one window per day or fewer must be missing for so many of them."""

_GONE = code(Kind.ABSENCE.code, Course.CLOSED.code, 0)
_LASTS = np.array([c == Course.OPEN.code or k in ALARM_KINDS for c in range(4) for k in [*Kind, ""]])
"""Whether what was said last must end, by `code` without the regime: it was an open incident, or news."""
_LASTS[_GONE] = False


def is_lasting(codes: Ints) -> Flags:
    """Whether what was said last must end, by its code."""
    flags: Flags = _LASTS[codes & (len(_LASTS) - 1)] & (codes >= 0)
    return flags


def is_open(codes: Ints) -> Flags:
    """Whether what was said last was an open incident, by its code."""
    flags: Flags = ((codes >> 3) & 3 == Course.OPEN.code) & (codes >= 0)
    return flags


def is_over(codes: Ints) -> Flags:
    """Whether what was said last is that something is no longer expected, by its code."""
    flags: Flags = codes == _GONE
    return flags


def gone(state: DetectionState, least_votes: float, now: int) -> pl.DataFrame:
    """What is believed of series and machines that are gone at a watermark; of each it is said once.

    Args:
        state: The state; changed, so that it holds what was said.
        least_votes: See `Silence.majority`.
        now: The watermark, epoch milliseconds.

    Returns:
        The columns of `SeriesState` that are known; a frame without rows if nothing is gone.
    """
    (series, series_end), (machines, machines_end) = _when(state, least_votes)
    gone_series, gone_machines = series_end <= now, machines_end <= now
    return over(
        state, series[gone_series], series_end[gone_series], machines[gone_machines], machines_end[gone_machines]
    )


def over(state: DetectionState, series: Ints, series_end: Ints, machines: Ints, machines_end: Ints) -> pl.DataFrame:
    """What is believed of series and machines that are no longer expected.

    Args:
        state: The state; changed, so that it holds what was said.
        series: Rows of series, shape (n,).
        series_end: Since when they are not expected, epoch milliseconds, shape (n,).
        machines: Rows of machines, shape (m,).
        machines_end: Likewise, shape (m,).

    Returns:
        The columns of `SeriesState` that are known; a frame without rows if there are none.
    """
    if not len(series) + len(machines):
        return pl.DataFrame()
    end = np.concatenate([series_end, machines_end])
    names = [*state.series.names_of(series), *((entity, JOINED) for (entity,) in state.entities.names_of(machines))]
    tables = (state.series, series), (state.entities, machines)
    for table, rows in tables:
        table.columns["said.what"][rows] = _GONE
        table.touch(rows)

    def both(column: str) -> Ints:
        return np.concatenate([table.columns[f"heard.{column}"][rows] for table, rows in tables])

    return pl.DataFrame(
        {
            "entity": [entity for entity, _ in names],
            "metric": [metric for _, metric in names],
            "window_start": end - both("length"),
            "window_end": end,
            "kind": Kind.ABSENCE.value,
            "record_score": 0.0,
            "since": both("last"),
            "incident_state": Course.CLOSED.value,
        }
    )


def next_gone(state: DetectionState, least_votes: float) -> int:
    """The earliest watermark at which `gone` finds something; `NEVER_DUE`: at none."""
    return int(min(end.min(initial=NEVER_DUE) for _, end in _when(state, least_votes)))


def _when(state: DetectionState, least_votes: float) -> list[tuple[Ints, Ints]]:
    """Of series and of machines: the rows of which something is believed that must end, and when they are gone."""
    machine, series = state.entities.columns, state.series.columns
    announced = machine["heard.told"][: len(state.entities)].astype(np.bool_)
    only = machine["heard.only"][: len(state.entities)].astype(np.int64)
    # the silence of a machine with one metric is reported as that of the metric
    alone = only[announced & (only >= 0)]
    alone = alone[series["said.what"][alone] != _GONE]
    machines = _lasting(machine, announced & (only == SEVERAL))
    rows = np.union1d(_lasting(series, series["heard.told"][: len(state.series)].astype(np.bool_)), alone)
    owner = series["heard.owner"][rows].astype(np.int64)
    of_owner = np.where(owner < 0, NEVER_DUE, _end(machine, np.maximum(owner, 0), least_votes))
    ends = np.minimum(_end(series, rows, least_votes), of_owner)
    return [(rows, ends), (machines, _end(machine, machines, least_votes))]


def _lasting(columns: Columns, absent: Flags) -> Ints:
    """The rows that are reported as absent, or of which an open incident or news was said last.

    Args:
        columns: The state of series or machines.
        absent: Which of the rows in use are reported as absent.
    """
    codes = columns["said.what"][: len(absent)].astype(np.int64)
    return np.flatnonzero(is_lasting(codes) | (absent & (codes != _GONE)))


def _end(columns: Columns, rows: Ints, least_votes: float) -> Ints:
    """A day or ten windows after a silence began; of what reports at irregular times, a day after its last window."""
    last, usual, votes = (columns[f"heard.{name}"][rows].astype(np.int64) for name in ("last", "usual", "votes"))
    regular = (votes >= least_votes) & (usual > 0)
    end = last + np.where(regular, usual + np.maximum(AFTER, WINDOWS * usual), AFTER)
    never = (regular & ~columns["heard.told"][rows].astype(np.bool_)) | (last == NEVER)
    return np.where(never, NEVER_DUE, end)

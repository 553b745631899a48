"""Gone: what has sent nothing for a day is no longer believed to have an incident, or to be absent.

A deleted VM, or a metric that is no more, would be absent for ever, and an incident that it had would stay open for
ever. So a day after its silence was certain the belief says `absence`, with an incident that is `closed`. What reports
at irregular times, and is never missed, is gone a day after its last window. The next window is believed as any other.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from models.arrays import Columns, Flags, Ints
from models.course import Course
from models.evidence.repeats import NEVER
from models.regimes.absence import SEVERAL
from models.regimes.silence import NEVER_DUE
from models.verdicts import Kind
from pipelines.contracts.records.novelty import ALARM_KINDS, JOINED
from pipelines.jobs.detect.beliefs import code
from pipelines.jobs.detect.metrics.state import DetectionState

AFTER = 86_400_000
"""How long something must have sent nothing, event time in milliseconds: as long as the default `incidents.longest`."""

_SAID = code(Kind.ABSENCE.code, Course.CLOSED.code, 0)
_ALARMS = [kind.code for kind in Kind if kind.value in ALARM_KINDS]


def gone(state: DetectionState, known: float, now: int) -> pl.DataFrame:
    """What is believed of series and machines that are gone at a watermark; of each it is said once.

    Args:
        state: The state; changed, so that it holds what was said.
        known: See `Silence.known`.
        now: The watermark, epoch milliseconds.

    Returns:
        The columns of `SeriesState` that are known; a frame without rows if nothing is gone.
    """
    of_series, of_machines = _when(state, known)
    series, machines = np.flatnonzero(of_series <= now), np.flatnonzero(of_machines <= now)
    names = [*state.series.names_of(series), *((entity, JOINED) for (entity,) in state.entities.names_of(machines))]
    tables = (state.series, series), (state.entities, machines)
    for table, rows in tables:
        table.columns["said.what"][rows] = _SAID
        table.touch(rows)

    def both(column: str) -> Ints:
        return np.concatenate([table.columns[f"heard.{column}"][rows] for table, rows in tables])

    end = np.concatenate([of_series[series], of_machines[machines]])
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


def next_gone(state: DetectionState, known: float) -> int:
    """The earliest watermark at which `gone` finds something; `NEVER_DUE`: at none."""
    return int(min(instants.min(initial=NEVER_DUE) for instants in _when(state, known)))


def _when(state: DetectionState, known: float) -> tuple[Ints, Ints]:
    """When each series and each machine is gone of which something is believed that must end; else `NEVER_DUE`."""
    machine, series = (_first(table.columns, len(table)) for table in (state.entities, state.series))
    silent, only = machine["heard.told"], machine["heard.only"]
    at_machine, at = _at(machine, known), _at(series, known)
    owner = series["heard.owner"]
    owned = owner >= 0
    alone = np.zeros(len(owner), np.bool_)  # the silence of a machine with one metric is told as that of the metric
    alone[owned] = silent[owner[owned]] & (only[owner[owned]] != SEVERAL)
    at[owned] = np.minimum(at[owned], at_machine[owner[owned]])
    lasts = _lasts(series) | ((series["heard.told"] | alone) & (series["said.what"] != _SAID))
    lasts_machine = _lasts(machine) | (silent & (only == SEVERAL) & (machine["said.what"] != _SAID))
    return np.where(lasts, at, NEVER_DUE), np.where(lasts_machine, at_machine, NEVER_DUE)


def _first(columns: Columns, n: int) -> Columns:
    """The columns that are needed, of the rows that are in use."""
    names = ("told", "last", "usual", "votes", "owner", "only", "length")
    wanted = ["said.what", *(f"heard.{name}" for name in names)]
    return {name: columns[name][:n] for name in wanted if name in columns}


def _at(heard: Columns, known: float) -> Ints:
    """A day after the silence was certain; of what reports at irregular times, a day after its last window."""
    last, usual = heard["heard.last"], heard["heard.usual"]
    regular = (heard["heard.votes"] >= known) & (usual > 0)
    at = last + np.where(regular, usual, 0) + AFTER
    return np.where((regular & ~heard["heard.told"]) | (last == NEVER), NEVER_DUE, at)


def _lasts(said: Columns) -> Flags:
    """Whether the last belief was news or an open incident."""
    what = said["said.what"]
    kind, course = what % 8, what // 8 % 4
    return (what >= 0) & (what != _SAID) & ((course == Course.OPEN.code) | np.isin(kind, _ALARMS))

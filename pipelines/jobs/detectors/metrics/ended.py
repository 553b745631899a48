"""Ended on purpose: a machine that is silent because somebody ended it is neither absent nor an incident.

Its silence is not announced when its absence would have been certain. At the next instant of a grid, if it has sent
nothing since, its incidents are closed, and the belief says that it is no longer expected. Both depend on event time
only. If it sends again, it is a machine like any other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from engine.spec.duration import END_OF_TIME
from models.evidence.repeats import NEVER
from models.numbers.arrays import Columns, Ints
from models.records import Table
from models.regimes.absence import SEVERAL
from models.regimes.silence import NEVER_DUE
from models.series.course import Course
from models.verdicts import Kind
from pipelines.contracts.records.novelty import JOINED, PEERS
from pipelines.jobs.detectors.beliefs import code
from pipelines.jobs.detectors.metrics.gone import is_lasting, is_open, is_over, over
from pipelines.jobs.detectors.metrics.state import DetectionState

EVERY = 900_000
"""The grid on which incidents of what has ended are closed, milliseconds."""

OnPurpose = Callable[[str, int, int, int], bool]
"""Whether a machine was ended on purpose: its name, the end of its last window, when its absence is certain, and its
usual time between two windows; milliseconds."""

Release = Callable[[DetectionState, Ints], Ints]
"""See `pipelines.jobs.detectors.metrics.fleet.Fleet.release`."""

_COLUMN = "ends.on_purpose"
_ABSENT = code(Kind.ABSENCE.code, Course.OPEN.code, 0)


def new_machines(n: int) -> Columns:
    """The column for n machines: when the absence of one that was ended would have been certain; -1: it was not."""
    return {_COLUMN: np.full(n, NEVER, np.int64)}


def arrived(state: DetectionState, machines: Ints) -> None:
    """Machines that send have not ended."""
    state.entities.columns[_COLUMN][machines] = NEVER


def unexpected(state: DetectionState, absences: Table, on_purpose: OnPurpose | None, lasting: bool) -> Table:
    """The absences without those of machines that were ended on purpose.

    Args:
        state: The state; changed, so that the others are closed.
        absences: Records of `models.regimes.absence.ABSENCE`.
        on_purpose: Says which were; ``None``: none.
        lasting: False if the machines have sent again.
    """
    if on_purpose is None or not len(absences):
        return absences
    only = state.entities.columns["heard.only"][absences["entity"]]
    whole = np.flatnonzero((absences["series"] < 0) | (only == absences["series"]))
    names = [name for (name,) in state.entities.names_of(absences["entity"][whole])]
    times = zip(names, *(absences[column][whole].tolist() for column in ("last", "due", "onset")), strict=True)
    was = np.array([on_purpose(name, last, due, onset - last) for name, last, due, onset in times], np.bool_)
    ended = whole[was]
    if lasting:
        state.entities.columns[_COLUMN][absences["entity"][ended]] = absences["due"][ended]
    return np.delete(absences, ended)


def reconsider(state: DetectionState, on_purpose: OnPurpose, now: int) -> None:
    """Of machines that were announced as absent, those are to be closed that were ended, as is known only now.

    Those that are closed already stay so.

    Args:
        state: The state; changed.
        on_purpose: Says it of a machine, with ``now`` as when its absence is certain.
        now: The watermark, epoch milliseconds.
    """
    columns = state.entities.columns
    told = np.flatnonzero(columns["heard.told"][: len(state.entities)].astype(np.bool_))
    single: Ints = columns["heard.only"][told].astype(np.int64)
    said = np.where(single >= 0, state.series.columns["said.what"][np.maximum(single, 0)], columns["said.what"][told])
    told = told[~is_over(said.astype(np.int64))]
    times = (columns[f"heard.{name}"][told].tolist() for name in ("last", "usual"))
    names = (name for (name,) in state.entities.names_of(told))
    was = [on_purpose(name, end, now, usual) for name, end, usual in zip(names, *times, strict=True)]
    rows = told[np.array(was, np.bool_)]
    columns[_COLUMN][rows] = now
    state.entities.touch(rows)
    only = columns["heard.only"][rows].astype(np.int64)
    for table, absent in ((state.series, only[only >= 0]), (state.entities, rows[only == SEVERAL])):
        table.columns["said.what"][absent] = _ABSENT
        table.touch(absent)


def next_due(state: DetectionState) -> int:
    """The earliest instant of the grid at which `close` finds something; `NEVER_DUE`: at none."""
    since = state.entities.columns[_COLUMN][: len(state.entities)].astype(np.int64)
    first = int(since[since != NEVER].min(initial=NEVER_DUE))
    return first if first == NEVER_DUE else -(-first // EVERY) * EVERY


def times(state: DetectionState, frame: pl.DataFrame, after: int, until: int, end: int, said: int) -> list[int]:
    """The instants of the grid in (after, until] at which something may be closed, epoch milliseconds.

    Args:
        state: The state after the windows up to ``after``.
        frame: The windows that end in (after, until].
        after: Epoch milliseconds.
        until: Epoch milliseconds.
        end: Nothing is closed later, epoch milliseconds.
        said: The earliest end of a machine that is not reconsidered yet, epoch milliseconds.
    """
    last = int(frame["window_end"].to_numpy().max()) if frame.height else NEVER
    until = min(last if until >= END_OF_TIME else until, end)
    first = int(frame["window_end"].to_numpy().min()) if frame.height else NEVER_DUE
    begin = max(after // EVERY + 1, min(first, next_due(state), said) // EVERY)
    found = [number * EVERY for number in range(begin, until // EVERY + 1)] if begin <= until // EVERY else []
    return sorted({*(time for time in found if time <= last), *found[-1:]})


def close(state: DetectionState, now: int, release: Release | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Closes what machines that were ended still had.

    Args:
        state: The state; changed.
        now: One of `times`.
        release: Ends what some series had beside their peers, and says which had something; ``None``: that stays.

    Returns:
        The beliefs on machines and series that are no longer expected; and for each incident that ends thus the columns
        of a verdict that are known, in place of the second window that did not come: the first one may be an absence.
    """
    machine, series = state.entities.columns, state.series.columns
    since: Ints = machine[_COLUMN][: len(state.entities)].astype(np.int64)
    ended = np.flatnonzero((since != NEVER) & (since <= now))
    if not len(ended):
        return pl.DataFrame(), pl.DataFrame()
    machine[_COLUMN][ended] = NEVER
    state.entities.touch(ended)
    only: Ints = machine["heard.only"][ended].astype(np.int64)
    owner: Ints = series["heard.owner"][: len(state.series)].astype(np.int64)
    every = np.flatnonzero(np.isin(owner, ended))
    mine = np.union1d(every[is_lasting(series["said.what"][every].astype(np.int64))], only[only >= 0])
    whole = ended[only == SEVERAL]
    open_series = mine[is_open(series["said.what"][mine].astype(np.int64))]
    open_machines = whole[is_open(machine["said.what"][whole].astype(np.int64))]
    names = state.series.names_of(open_series)
    names += [(name, JOINED) for (name,) in state.entities.names_of(open_machines)]
    unlike = release(state, every) if release else every[:0]
    names += [(name, PEERS + metric) for name, metric in state.series.names_of(unlike)]
    rows = np.concatenate([owner[open_series], open_machines, owner[unlike]])
    onset = (machine["heard.last"][rows] + machine["heard.usual"][rows]).astype(np.int64)
    verdicts = pl.DataFrame(
        {
            "entity": [entity for entity, _ in names],
            "metric": [metric for _, metric in names],
            "window_start": onset,
            "window_end": onset + machine["heard.length"][rows].astype(np.int64),
        },
        {"entity": pl.String, "metric": pl.String, "window_start": pl.Int64, "window_end": pl.Int64},
    )
    return over(state, mine, since[owner[mine]], whole, since[whole]), verdicts

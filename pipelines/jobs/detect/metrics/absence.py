"""Absence: finds series and machines that no longer send windows, and those that send again.

A series is absent if its windows are missing while its machine still sends windows of other metrics. A machine is
absent if the watermark has passed the time at which its next window was expected. An absent machine gets one verdict,
with the metric `_machine`, or with its only metric if it has just one. Event time alone decides both, so that the
boundaries of micro-batches make no difference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from models.arrays import Array, Columns, Ints, Rows, prefixed
from models.evidence.combine import score
from models.evidence.repeats import NEVER
from models.regimes.silence import NEVER_DUE, Silence
from pipelines.jobs.detect.metrics.state import DetectionState

_PREFIX = "heard."
_NONE, _SEVERAL = -1, -2

HALF = 10.0
"""The evidence of absence, in nats, that gets a score of 50."""

KNOWN, FORGET = 10.0, 1 / 5000
"""How many windows must have arrived at the usual interval before one can be absent, and the share of that count that
is forgotten with each window."""


class Absences(NamedTuple):
    """Absences to announce; all arrays have shape (n,).

    Attributes:
        series: Row of the series in the state; -1 if the whole machine is absent.
        entity: Row of the machine in the state.
        onset: End of the first missing window, epoch milliseconds.
        length: Length of a window, milliseconds.
        evidence: Evidence of the absence, nats.
    """

    series: Ints
    entity: Ints
    onset: Ints
    length: Ints
    evidence: Array


class EndedAbsences(NamedTuple):
    """The absences that the windows of one step end, and those that they reveal.

    Attributes:
        series: For each window the start of the absence of its series, which the window ends, epoch milliseconds; -1 if
            the series was not absent; shape (n,).
        machine: The same for the absence of its whole machine, shape (n,).
        absences: Absences that became certain because other windows arrived.
    """

    series: Ints
    machine: Ints
    absences: list[Absences]


class AbsenceWatch:
    """Learns at which intervals windows arrive, and finds missing windows.

    Args:
        threshold: The lowest record_score of an absence that is announced.
        end: Event time from which on no windows are expected, epoch milliseconds, as what judges them ends there; no
            machine is absent because of that. ``None``: windows go on.
    """

    def __init__(self, threshold: float, end: int | None = None) -> None:
        self.end = NEVER_DUE - 1 if end is None else end
        share = min(max(threshold, 1.0), 99.0) / 100
        self.silence = Silence(KNOWN, FORGET, HALF * share / (1 - share))

    def new_series(self, n: int) -> Columns:
        """The state columns that absence needs for n series."""
        own = {"owner": np.full(n, _NONE, np.int64), "length": np.zeros(n, np.int64)}
        return prefixed(_PREFIX, self.silence.new_state(n) | own)

    def new_entities(self, n: int) -> Columns:
        """The state columns that absence needs for n machines."""
        own = {"only": np.full(n, _NONE, np.int64), "length": np.zeros(n, np.int64)}
        return prefixed(_PREFIX, self.silence.new_state(n) | own)

    def arrived(self, state: DetectionState, series: Ints, owner: Ints, time: Ints, length: Ints) -> EndedAbsences:
        """Learns from windows that arrived with a value: one window of each series, one window end of each machine.

        Args:
            state: The state; the rows of these series and machines are changed.
            series: Row of each series, shape (n,).
            owner: Row of the machine of each series; rows of one machine are adjacent, shape (n,).
            time: End of each window, epoch milliseconds, shape (n,).
            length: Length of each window, milliseconds, shape (n,).
        """
        entities, first, place = np.unique(owner, return_index=True, return_inverse=True)
        machines = Rows(state.entities.columns, entities, _PREFIX)
        own = Rows(state.series.columns, series, _PREFIX)
        self._introduce(machines, own, series, owner, place)
        now, before = time[first], machines["last"].astype(np.int64)

        gone = self.silence.due(machines) < now  # the machine was absent, and is back before that was announced
        away = gone | (machines["told"] > 0)
        missing = own["told"] > 0
        lost = (self.silence.due(own) <= np.minimum(before, now)[place]) & ~away[place]
        absences = [self._machines(state, entities[gone]), self._series(state, series[lost])]
        since = np.where(away, self.silence.missing(machines) - machines["length"].astype(np.int64), NEVER)
        absent = np.where(missing | lost, self.silence.missing(own) - own["length"].astype(np.int64), NEVER)
        absent = np.where((machines["only"] >= 0)[place], since[place], absent)

        self.silence.learn(machines, now, np.zeros(len(entities), np.bool_))
        machines["length"] = length[first]
        self.silence.learn(own, time, away[place])
        own["length"] = length
        return EndedAbsences(absent, since[place], absences)

    def overdue(self, state: DetectionState, now: int | None) -> list[Absences]:
        """The absences that are certain at a watermark, and were not announced before.

        Args:
            state: The state; changed, so that each absence is announced once.
            now: The watermark, epoch milliseconds; ``None`` if it is not known: then only series can be absent.
        """
        absences: list[Absences] = []
        if now is not None:
            machines = Rows(state.entities.columns, np.arange(len(state.entities)), _PREFIX)
            gone = np.flatnonzero(self.silence.due(machines) <= min(now, self.end))
            if len(gone):
                absences.append(self._machines(state, gone))
                state.entities.columns[_PREFIX + "told"][gone] = True
        rows = np.arange(len(state.series))
        own = Rows(state.series.columns, rows, _PREFIX)
        clock: Ints = state.entities.columns[_PREFIX + "last"][own["owner"].astype(np.int64)]  # type: ignore[assignment]
        lost = np.flatnonzero(self.silence.due(own) <= clock)
        if len(lost):
            absences.append(self._series(state, lost))
            state.series.columns[_PREFIX + "told"][lost] = True
        return absences

    def next_due(self, state: DetectionState) -> int:
        """The earliest watermark at which `overdue` finds the absence of a machine."""
        machines = Rows(state.entities.columns, np.arange(len(state.entities)), _PREFIX)
        due = int(self.silence.due(machines).min(initial=NEVER_DUE))
        return due if due <= self.end else NEVER_DUE

    def verdicts(self, absences: list[Absences], state: DetectionState, joined: str) -> pl.DataFrame:
        """The verdicts on absences, with the columns that are known here; without columns if there are none.

        Args:
            absences: The absences to announce.
            state: The state, which holds the names of series and machines.
            joined: Metric name of a verdict on a whole machine.
        """
        parts = [part for part in absences if len(part.onset)]
        if not parts:
            return pl.DataFrame()
        series, entity, onset, length, evidence = (np.concatenate(column) for column in zip(*parts, strict=True))
        metrics, machines = state.series.keys(), state.entities.keys()
        return pl.DataFrame(
            {
                "entity": [machines[row][0] for row in entity],
                "metric": [metrics[row][1] if row >= 0 else joined for row in series],
                "window_start": onset - length,
                "window_end": onset,
                "since": onset - length,
                "record_score": score(evidence, HALF),
                "probability": np.exp(-evidence),
                "absence": evidence,
            }
        )

    def _introduce(self, machines: Rows, own: Rows, series: Ints, owner: Ints, place: Ints) -> None:
        new = np.flatnonzero(own["owner"] == _NONE)
        if not len(new):
            return
        own["owner"] = owner
        only = machines["only"].astype(np.int64)
        for index in new.tolist():  # not a loop over all records: each series is new only once
            machine = place[index]
            only[machine] = series[index] if only[machine] == _NONE else _SEVERAL
        machines["only"] = only

    def _machines(self, state: DetectionState, entities: Ints) -> Absences:
        machines = Rows(state.entities.columns, entities, _PREFIX)
        only = machines["only"].astype(np.int64)
        return Absences(
            np.maximum(only, _NONE), entities, self.silence.missing(machines),
            machines["length"].astype(np.int64), self.silence.evidence(machines),
        )  # fmt: skip

    def _series(self, state: DetectionState, series: Ints) -> Absences:
        own = Rows(state.series.columns, series, _PREFIX)
        return Absences(
            series, own["owner"].astype(np.int64), self.silence.missing(own),
            own["length"].astype(np.int64), self.silence.evidence(own),
        )  # fmt: skip

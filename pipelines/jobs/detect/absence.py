"""Who has fallen silent: absence of series and of whole machines, and that they are back.

A series' clock is its machine: it is absent if its machine still sends other windows. A machine's clock is the
watermark: if all of it is silent, that is one absence, of metric `_machine` (of its only metric if it has but one),
however many metrics it has. Both are decided by event time alone, so that it makes no difference how the stream is cut
into batches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from models.arrays import Array, Columns, Ints, Rows, prefixed
from models.evidence.combine import score
from models.evidence.repeats import NEVER
from models.regimes.silence import NEVER_DUE, Silence
from pipelines.jobs.detect.state import DetectionState

_PREFIX = "heard."
_NONE, _SEVERAL = -1, -2

HALF = 10.0
"""Evidence of absence, in nats, that scores 50."""

KNOWN, FORGET = 10.0, 1 / 5000
"""Windows that must have come at the usual time before any is missed; what is forgotten of that a window."""


class Silent(NamedTuple):
    """Absences: of series, by their rows, and of machines, by theirs; onset, length of a window, evidence in nats.

    Rows of machines stand in ``entity``, with -1 in ``series`` for metric `_machine`.
    """

    series: Ints
    entity: Ints
    onset: Ints
    length: Ints
    evidence: Array


class Heard(NamedTuple):
    """What one turn says: since when the series, or all of the machine, of each row had been absent; -1: it was not."""

    series: Ints
    machine: Ints
    silent: list[Silent]


class Hearing:
    """Counts the windows that come, and tells which do not.

    Args:
        threshold: record_score from which an absence is announced.
    """

    def __init__(self, threshold: float) -> None:
        share = min(max(threshold, 1.0), 99.0) / 100
        self.silence = Silence(KNOWN, FORGET, HALF * share / (1 - share))

    def new_series(self, n: int) -> Columns:
        """Further columns of n series."""
        own = {"owner": np.full(n, _NONE, np.int64), "length": np.zeros(n, np.int64)}
        return prefixed(_PREFIX, self.silence.new_state(n) | own)

    def new_entities(self, n: int) -> Columns:
        """Further columns of n machines."""
        own = {"only": np.full(n, _NONE, np.int64), "length": np.zeros(n, np.int64)}
        return prefixed(_PREFIX, self.silence.new_state(n) | own)

    def hear(self, state: DetectionState, series: Ints, owner: Ints, time: Ints, length: Ints) -> Heard:
        """Windows with a value have come, one a series and one instant a machine.

        Args:
            state: Its rows of these series and machines are changed.
            series: Row of each series, shape (n,).
            owner: Row of its machine; those of one machine stand together, shape (n,).
            time: End of the window, epoch milliseconds, shape (n,).
            length: Of the window, milliseconds, shape (n,).
        """
        entities, first, place = np.unique(owner, return_index=True, return_inverse=True)
        machines = Rows(state.entities.columns, entities, _PREFIX)
        own = Rows(state.series.columns, series, _PREFIX)
        self._introduce(machines, own, series, owner, place)
        at, before = time[first], machines["last"].astype(np.int64)

        gone = self.silence.due(machines) < at  # the window with which it would have been told came after all
        away = gone | (machines["told"] > 0)
        missing = own["told"] > 0
        lost = (self.silence.due(own) <= np.minimum(before, at)[place]) & ~away[place]
        silent = [self._machines(state, entities[gone]), self._series(state, series[lost])]
        since = np.where(away, self.silence.missing(machines) - machines["length"].astype(np.int64), NEVER)
        absent = np.where(missing | lost, self.silence.missing(own) - own["length"].astype(np.int64), NEVER)
        absent = np.where((machines["only"] >= 0)[place], since[place], absent)

        self.silence.learn(machines, at, np.zeros(len(entities), np.bool_))
        machines["length"] = length[first]
        self.silence.learn(own, time, away[place])
        own["length"] = length
        return Heard(absent, since[place], silent)

    def wait(self, state: DetectionState, now: int | None) -> list[Silent]:
        """Who is silent at the watermark ``now``; ``None``: machines are not judged."""
        silent: list[Silent] = []
        if now is not None:
            machines = Rows(state.entities.columns, np.arange(len(state.entities)), _PREFIX)
            gone = np.flatnonzero(self.silence.due(machines) <= now)
            if len(gone):
                silent.append(self._machines(state, gone))
                state.entities.columns[_PREFIX + "told"][gone] = True
        rows = np.arange(len(state.series))
        own = Rows(state.series.columns, rows, _PREFIX)
        clock: Ints = state.entities.columns[_PREFIX + "last"][own["owner"].astype(np.int64)]  # type: ignore[assignment]
        lost = np.flatnonzero(self.silence.due(own) <= clock)
        if len(lost):
            silent.append(self._series(state, lost))
            state.series.columns[_PREFIX + "told"][lost] = True
        return silent

    def due(self, state: DetectionState) -> int:
        """The earliest watermark at which `wait` has a machine to tell of."""
        machines = Rows(state.entities.columns, np.arange(len(state.entities)), _PREFIX)
        return int(self.silence.due(machines).min(initial=NEVER_DUE))

    def verdicts(self, silent: list[Silent], state: DetectionState, joined: str) -> pl.DataFrame:
        """Absences as verdicts: the columns that are known of them. ``joined``: the metric of all of a machine."""
        parts = [part for part in silent if len(part.onset)]
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
        for index in new.tolist():  # a series is new once
            machine = place[index]
            only[machine] = series[index] if only[machine] == _NONE else _SEVERAL
        machines["only"] = only

    def _machines(self, state: DetectionState, entities: Ints) -> Silent:
        machines = Rows(state.entities.columns, entities, _PREFIX)
        only = machines["only"].astype(np.int64)
        return Silent(
            np.maximum(only, _NONE), entities, self.silence.missing(machines),
            machines["length"].astype(np.int64), self.silence.evidence(machines),
        )  # fmt: skip

    def _series(self, state: DetectionState, series: Ints) -> Silent:
        own = Rows(state.series.columns, series, _PREFIX)
        return Silent(
            series, own["owner"].astype(np.int64), self.silence.missing(own),
            own["length"].astype(np.int64), self.silence.evidence(own),
        )  # fmt: skip

"""Absence: finds series and machines that no longer send windows, and those that send again.

A series is absent if its windows are missing while its machine still sends windows of other metrics. A machine is
absent if the watermark has passed the time at which its next window was expected. An absent machine gets one verdict,
with the metric `_machine`, or with its only metric if it has just one. Event time alone decides both, so that the
boundaries of micro-batches make no difference.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from models.evidence.score import score
from models.numbers.arrays import Columns, Ints
from models.records import Table
from models.regimes.absence import Absence, Heard
from models.regimes.silence import NEVER_DUE, Silence
from pipelines.jobs.detectors.metrics.gone import gone, next_gone
from pipelines.jobs.detectors.metrics.state import DetectionState

HALF = 10.0
"""The evidence of absence, in nats, that gets a score of 50."""

KNOWN, FORGET = 10.0, 1 / 5000
"""How many windows must have arrived at the usual interval before one can be absent, and the share of that count that
is forgotten with each window."""


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
        self.absence = Absence(Silence(KNOWN, FORGET, HALF * share / (1 - share)))

    def new_series(self, n: int) -> Columns:
        """The state columns that absence needs for n series."""
        return self.absence.new_series(n)

    def new_entities(self, n: int) -> Columns:
        """The state columns that absence needs for n machines."""
        return self.absence.new_machines(n)

    def arrived(self, state: DetectionState, series: Ints, owner: Ints, step: Ints, time: Ints, length: Ints) -> Heard:
        """Learns from windows that arrived with a value; arguments as for `Absence.hear`, with the whole state."""
        return self.absence.hear(state.series.columns, state.entities.columns, series, owner, step, time, length)

    def overdue(self, state: DetectionState, now: int | None) -> Table:
        """The absences that are certain at a watermark, and were not announced before.

        Args:
            state: The state; changed, so that each absence is announced once.
            now: The watermark, epoch milliseconds; ``None`` if it is not known: then only series can be absent.

        Returns:
            Records of `models.regimes.absence.ABSENCE`.
        """
        sizes = len(state.series), len(state.entities)
        until = None if now is None else min(now, self.end)
        absences = self.absence.overdue(state.series.columns, state.entities.columns, sizes, until)
        state.series.touch(absences["series"][absences["series"] >= 0])
        state.entities.touch(absences["entity"])
        return absences

    def gone(self, state: DetectionState, now: int) -> pl.DataFrame:
        """What is believed of what is gone at a watermark, see `pipelines.jobs.detectors.metrics.gone`."""
        return gone(state, KNOWN, min(now, self.end))

    def next_due(self, state: DetectionState) -> int:
        """The earliest watermark at which `overdue` finds the absence of a machine, or `gone` finds something."""
        due = min(self.absence.first_due(state.entities.columns, len(state.entities)), next_gone(state, KNOWN))
        return due if due <= self.end else NEVER_DUE

    def verdicts(self, absences: Table, state: DetectionState, joined: str) -> pl.DataFrame:
        """The verdicts on absences, with the columns that are known here; without columns if there are none.

        Args:
            absences: The absences to announce, records of `models.regimes.absence.ABSENCE`.
            state: The state, which holds the names of series and machines.
            joined: Metric name of a verdict on a whole machine.
        """
        if not len(absences):
            return pl.DataFrame()
        onset, length, evidence = absences["onset"], absences["length"], absences["evidence"]
        series, points = absences["series"], score(evidence, HALF)
        metrics = iter(state.series.names_of(series[series >= 0]))
        return pl.DataFrame(
            {
                "entity": [name for (name,) in state.entities.names_of(absences["entity"])],
                "metric": [next(metrics)[1] if row >= 0 else joined for row in series.tolist()],
                "window_start": onset - length,
                "window_end": onset,
                "since": onset - length,
                "record_score": points,
                "state_score": points,
                "probability": np.exp(-evidence),
                "absence": evidence,
            }
        )

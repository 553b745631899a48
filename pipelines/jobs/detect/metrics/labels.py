"""Applies operators' labels to the models of a series, or of a machine as a whole."""

from __future__ import annotations

import numpy as np

from models.numbers.arrays import Ints
from pipelines.contracts.records import Label
from pipelines.contracts.records.novelty import JOINED
from pipelines.jobs.detect.metrics.detection import Detection
from pipelines.jobs.detect.metrics.state import DetectionState


def apply_label(detection: Detection, state: DetectionState, label: Label) -> None:
    """Applies a label to the state; a label on an unknown series changes nothing.

    - ``false_alarm`` and ``true``: from now on, evidence of that series (with the metric `_machine`: of the joined
      verdict) counts less, or more.
    - ``expected_change`` and ``new_normal``: the present level becomes typical, and the incident is closed; with the
      metric `_machine` this applies to all metrics of the machine.
    """
    machine = state.entities.find([(label.entity,)])
    series = _series(state, label)
    state.entities.touch(machine)
    state.series.touch(series)
    if label.verdict in ("false_alarm", "true"):
        whole = label.metric == JOINED
        rows, judge = (machine, detection.joined) if whole else (series, detection.detector)
        columns = (state.entities if whole else state.series).columns
        judge.told(columns, rows, np.full(len(rows), label.verdict == "true"))
        return
    offset = detection.detector.accept(state.series.columns, series)
    detection.machines.shift(state, np.repeat(machine, len(series) if len(machine) else 0), series, offset)
    detection.joined.accept(state.entities.columns, machine)


def _series(state: DetectionState, label: Label) -> Ints:
    if label.metric != JOINED:
        return state.series.find([(label.entity, label.metric)])
    return state.series.rows_of([label.entity])

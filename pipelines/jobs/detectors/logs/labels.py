"""Applies operators' labels to the models of machines' logs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.numbers.arrays import Flags, Ints, Rows
from models.series.feedback import Feedback
from models.templates.model import Templates
from models.templates.phases import Phases
from pipelines.contracts.records import Label
from pipelines.contracts.records.novelty import JOINED
from pipelines.jobs.detectors.logs.state import METRIC, SEVERITIES, TEMPLATES, LogState, view_of

_ALL = (METRIC, JOINED)


@dataclass(frozen=True)
class LogLabels:
    """Applies labels; a label on an unknown machine, template or severity changes nothing.

    - ``false_alarm`` and ``true``, with the metric `logs`: from now on, evidence of the machine's log counts less, or
      more.
    - ``expected_change`` and ``new_normal``: the present rates become typical, and the incident is closed. The metric
      says which rates: `logs` or `_machine` those of all templates and severities; ``log.template.<id>`` that of this
      template and those of all severities (as lines of the template have severities); ``log.severity.<name>`` that of
      this severity.

    Args:
        model: The model of templates and severities.
        phases: The model of incidents.
        feedback: The model of operators' feedback.
    """

    model: Templates
    phases: Phases
    feedback: Feedback

    def apply(self, state: LogState, label: Label) -> None:
        """Applies one label to the state."""
        machine = state.machines.find([(label.entity,)])
        if label.verdict in ("false_alarm", "true"):
            if label.metric == METRIC:
                true = np.full(len(machine), label.verdict == "true")
                self.feedback.learn_label(Rows(state.machines.columns, machine, "feedback."), true)
            return
        named = self._named(state, label)
        if not len(machine) or not named.any():
            return
        owner: Ints = state.pairs.columns["owner"][: len(state.pairs)].astype(np.int64)
        rows = np.unique(owner[named])
        pairs = np.flatnonzero(np.isin(owner, rows))
        self.model.accept(state.tables(), rows, pairs, np.searchsorted(rows, owner[pairs]), named[pairs])
        self.phases.close(Rows(state.machines.columns, machine, ""))

    def _named(self, state: LogState, label: Label) -> Flags:
        """Flags the pairs of machine and metric to which a label applies."""
        keys = state.pairs.keys()
        of_machine, metrics = [entity == label.entity for entity, _ in keys], [metric for _, metric in keys]
        if label.metric in _ALL:
            return np.array(of_machine, np.bool_)
        named: Flags = np.array(of_machine, np.bool_) & np.array([name == label.metric for name in metrics], np.bool_)
        if named.any() and view_of(label.metric) == TEMPLATES:
            named |= np.array(of_machine) & np.array([view_of(name) == SEVERITIES for name in metrics])
        return named

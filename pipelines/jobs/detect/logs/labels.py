"""How a label changes what is believed of a machine's log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Flags, Ints, Rows
from models.feedback import Feedback
from models.templates.model import Templates
from models.templates.phases import Phases
from pipelines.contracts.records import Label
from pipelines.contracts.records.novelty import JOINED
from pipelines.jobs.detect.logs.state import METRIC, SEVERITIES, TEMPLATES, LogState, view_of

_ALL = (METRIC, JOINED)


@dataclass(frozen=True)
class LogLabels:
    """Applies labels; of a machine, template or severity that has not been met a label changes nothing.

    - ``false_alarm``, ``true``, with metric `logs`: the evidence of the machine's log is worth less, or more.
    - ``expected_change``, ``new_normal``: the present rates are typical from now on and the incident is closed. With
      metric `logs` or `_machine` those of all templates and severities; with ``log.template.<id>`` that of this
      template, and those of all severities, as its lines have one; with ``log.severity.<name>`` that of this severity.

    Args:
        model: Learns.
        phases: The incidents.
        feedback: What alarms are worth.
    """

    model: Templates
    phases: Phases
    feedback: Feedback

    def apply(self, state: LogState, label: Label) -> None:
        """Applies one label; changes the state."""
        machine = state.machines.find([(label.entity,)])
        if label.verdict in ("false_alarm", "true"):
            if label.metric == METRIC:
                true = np.full(len(machine), label.verdict == "true")
                self.feedback.told(Rows(state.machines.columns, machine, "feedback."), true)
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
        """Flags the pairs of machine and metric that a label is about."""
        keys = state.pairs.keys()
        of_machine, metrics = [entity == label.entity for entity, _ in keys], [metric for _, metric in keys]
        if label.metric in _ALL:
            return np.array(of_machine, np.bool_)
        named: Flags = np.array(of_machine, np.bool_) & np.array([name == label.metric for name in metrics], np.bool_)
        if named.any() and view_of(label.metric) == TEMPLATES:
            named |= np.array(of_machine) & np.array([view_of(name) == SEVERITIES for name in metrics])
        return named

"""What kind of news a machine's log is: an anomaly that ends, a change of state that lasts, silence, recovery.

An anomaly opens an incident. If what is unusual persists, the incident turns out to be a change of state, which is said
of a window in which it was unusual, and once more the new normal when the model has learned it; if it ends before, the
log has recovered. A change may persist without any window that is an anomaly by itself.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from models.evidence.repeats import NEVER
from models.numbers.arrays import Array, Columns, Flags, Ints, Rows
from models.series.course import Course

CALM, OPEN, CHANGING, ABSENT, ACCEPTED = range(5)


class PhaseNews(NamedTuple):
    """What is reported of n incidents at a window; all of shape (n,).

    Args:
        kind: `Phases.KINDS` by name.
        since: Onset of the incident; -1: there is none.
        incident: Codes of `Course`: whether an incident goes on after the window, or ends with it.
        changes: Whether the incident turns out to be a change of state.
        began: When that began; -1: there is none.
    """

    kind: np.ndarray
    since: Ints
    incident: Ints
    changes: Flags
    began: Ints


class Phases:
    """The incident of each entity; columns ``phase``, ``onset``, ``rest``, ``began``, ``usual``.

    Args:
        calm: Windows without an alarm after which an incident is over.
        gap: Usual windows after which what was unusual before has ended.

    >>> phases, row = Phases(calm=2), np.array([0])
    >>> state, news = phases.new_state(1), []
    >>> for time, (alarm, persists) in enumerate([(0, 0), (1, 0), (1, 1), (1, 1), (0, 0), (1, 0), (0, 0), (0, 0)]):
    ...     alarms, no = np.array([bool(alarm)]), np.array([False])
    ...     flags = (alarms, alarms, no, np.array([float(persists)]), no)
    ...     news.append(phases.step(Rows(state, row, ""), np.array([time]), *flags))
    >>> [str(step.kind[0]) for step in news]
    ['normal', 'anomaly', 'anomaly', 'normal', 'new_normal', 'anomaly', 'normal', 'recovered']
    >>> [bool(step.changes[0]) for step in news], [int(step.incident[0]) for step in news]
    ([False, False, True, False, False, False, False, False], [0, 1, 1, 1, 2, 1, 1, 2])
    """

    KINDS: ClassVar[tuple[str, ...]] = (
        "normal",
        "anomaly",
        "new_normal",
        "absence",
        "recovered",
    )

    def __init__(self, calm: int = 6, gap: int = 3) -> None:
        self.calm, self.gap = calm, gap

    def new_state(self, n: int) -> Columns:
        """The columns for n entities without an incident."""
        columns: Columns = {"phase": np.zeros(n, np.int64), "rest": np.zeros(n), "usual": np.zeros(n)}
        return columns | {name: np.full(n, NEVER, np.int64) for name in ("onset", "began")}

    def close(self, state: Rows) -> None:
        """Ends the incidents, as an operator wants; the next window says so."""
        open_, onset = state["phase"] != CALM, state["onset"].astype(np.int64)
        for name, column in self.new_state(len(state.rows)).items():
            state[name] = column
        state["phase"], state["onset"] = np.where(open_, ACCEPTED, CALM), np.where(open_, onset, NEVER)

    def step(
        self, state: Rows, start: Ints, alarm: Flags, unusual: Flags, strange: Flags, persists: Array, absent: Flags
    ) -> PhaseNews:
        """What is reported of one window each.

        Args:
            state: The columns.
            start: Start of the window; of an absence: of its first window; epoch milliseconds, shape (n,).
            alarm: Whether the window is an alarm by itself.
            unusual: Whether the window is at least somewhat unusual.
            strange: Whether it holds a template never seen anywhere, which is news in a change of state too.
            persists: See `TemplateVerdicts`.
            absent: Whether the entity has been silent for long enough.
        """
        phase, onset, rest = state["phase"].astype(np.int64), state["onset"].astype(np.int64), state["rest"]
        accepted = phase == ACCEPTED
        back = (phase == ABSENT) & ~absent
        gone = absent & (phase != ABSENT) & ~accepted
        free = ~absent & ~back & ~accepted
        rest = np.where(alarm, 0.0, rest + 1)
        opens = free & (phase == CALM) & alarm
        usual = np.where(unusual, 0.0, state["usual"] + 1)
        began = state["began"].astype(np.int64)
        began = np.where(unusual & (began == NEVER), start, np.where(usual >= self.gap, NEVER, began))
        changes = free & (phase != CHANGING) & (persists >= 1)
        settled = free & (phase == CHANGING) & (persists <= 0) & ~alarm
        over = free & (phase == OPEN) & ~changes & (rest >= self.calm)
        onset = np.where(opens | gone, start, onset)
        dated = changes & (began != NEVER)
        onset = np.where(dated, np.where(onset == NEVER, began, np.minimum(onset, began)), onset)
        kind = np.where(free & alarm & ((phase != CHANGING) | strange), 1, 0)
        kind = np.select([gone, back | over, settled | accepted], [3, 4, 2], kind)
        ends = back | over | settled | accepted
        after = np.select([accepted, absent, changes, opens, ends], [CALM, ABSENT, CHANGING, OPEN, CALM], phase)
        incident = np.select([ends, after != CALM], [Course.CLOSED.code, Course.OPEN.code], Course.NONE.code)
        since = np.where(incident == Course.NONE.code, NEVER, onset)
        state["phase"], state["rest"] = after, rest
        state["usual"], state["began"] = usual, began
        state["onset"] = np.where(after == CALM, NEVER, onset)
        return PhaseNews(np.array(self.KINDS)[kind], since, incident, changes, began)

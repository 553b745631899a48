"""What kind of news a machine's log is: an anomaly that ends, a change of state that lasts, silence, recovery.

An anomaly opens an incident. If what is unusual persists, the incident is announced once as a change of state, and once
more as the new normal when the model has learned it; if it ends before, the log has recovered.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from models.arrays import Array, Columns, Flags, Ints, Rows

NEVER = -1
CALM, OPEN, CHANGING, ABSENT = 0, 1, 2, 3


class Phases:
    """The incident of each entity; columns ``phase``, ``onset``, ``rest``.

    Args:
        calm: Windows without an alarm after which an incident is over.

    >>> phases, row = Phases(calm=2), np.array([0])
    >>> state, told = phases.new_state(1), []
    >>> for time, (alarm, persists) in enumerate([(0, 0), (1, 0), (1, 1), (1, 1), (0, 0), (1, 0), (0, 0), (0, 0)]):
    ...     flags = (np.array([bool(alarm)]), np.array([False]), np.array([float(persists)]), np.array([False]))
    ...     told.append(phases.step(Rows(state, row, ""), np.array([time]), *flags)[0][0])
    >>> [str(kind) for kind in told]
    ['normal', 'anomaly', 'state_change', 'normal', 'new_normal', 'anomaly', 'normal', 'recovered']
    """

    KINDS: ClassVar[tuple[str, ...]] = (
        "normal",
        "anomaly",
        "state_change",
        "new_normal",
        "absence",
        "recovered",
    )

    def __init__(self, calm: int = 6) -> None:
        self.calm = calm

    def new_state(self, n: int) -> Columns:
        """The columns for n entities without an incident."""
        return {"phase": np.zeros(n, np.int64), "onset": np.full(n, NEVER, np.int64), "rest": np.zeros(n)}

    def step(
        self, state: Rows, start: Ints, alarm: Flags, strange: Flags, persists: Array, absent: Flags
    ) -> tuple[np.ndarray, Ints]:
        """Kinds of one window each, and the onset of the incident (-1: none).

        Args:
            state: The columns.
            start: Start of the window; of an absence: of its first window; epoch milliseconds, shape (n,).
            alarm: Whether the window is an alarm by itself.
            strange: Whether it holds a template never seen anywhere, which is news in a change of state too.
            persists: See `TemplateVerdicts`.
            absent: Whether the entity has been silent for long enough.
        """
        phase, onset, rest = state["phase"].astype(np.int64), state["onset"].astype(np.int64), state["rest"]
        back = (phase == ABSENT) & ~absent
        gone = absent & (phase != ABSENT)
        free = ~absent & ~back
        rest = np.where(alarm, 0.0, rest + 1)
        opens = free & (phase == CALM) & alarm
        changes = free & (phase == OPEN) & (persists >= 1)
        settled = free & (phase == CHANGING) & (persists <= 0) & ~alarm
        over = free & (phase == OPEN) & ~changes & (rest >= self.calm)
        onset = np.where(opens | gone, start, onset)
        told = np.where(free & alarm & ((phase != CHANGING) | strange), 1, 0)
        told = np.select([gone, back | over, changes, settled], [4, 5, 2, 3], told)
        since = np.where(told > 0, onset, NEVER)
        after = np.select([absent, opens, changes, back | over | settled], [ABSENT, OPEN, CHANGING, CALM], phase)
        state["phase"], state["rest"] = after, rest
        state["onset"] = np.where(after == CALM, NEVER, onset)
        return np.array(self.KINDS)[told], since

"""Repeats: while an incident is open, more of the same is less news; and since when it has been going on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Array, Columns, Flags, Ints, Rows

NEVER = -1
"""No onset."""


@dataclass(frozen=True)
class Repeats:
    """Damping of what does not exceed the strongest evidence of the last while, and the onset of the present unrest.

    No level of evidence opens an incident: the order of verdicts is the same wherever an alarm is drawn.

    Args:
        notable: Evidence, in nats, that begins an unrest, and keeps it up.
        rest: Steps for which the strongest evidence is remembered.
        damping: Share that is taken off evidence that does not exceed it.
        calm: Steps without notable evidence after which the unrest is over.
    """

    notable: float
    rest: int
    damping: float
    calm: int

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        counts: Columns = {name: np.zeros(n, np.float32) for name in ("rest", "quiet")}
        return counts | {"peak": np.zeros(n), "onset": np.full(n, NEVER, np.int64)}

    def close(self, state: Rows) -> None:
        """Ends the incident and the unrest."""
        for name, column in self.new_state(len(state.rows)).items():
            state[name] = column

    def damp(self, state: Rows, evidence: Array) -> Array:
        """The evidence; less the damping where it does not exceed the peak remembered.

        >>> repeats = Repeats(notable=7.5, rest=100, damping=0.4, calm=30)
        >>> columns = {"rest": np.array([0.0, 100.0, 50.0]), "peak": np.array([0.0, 20.0, 11.0])}
        >>> repeats.damp(Rows(columns, np.arange(3), ""), np.full(3, 12.0))
        array([12. ,  7.2, 12. ])
        """
        return np.where(evidence >= state["peak"], evidence, (1 - self.damping) * evidence)

    def onset(self, state: Rows, time: Ints) -> Ints:
        """When the present unrest began; the step itself if it begins now."""
        onset = state["onset"].astype(np.int64)
        return np.where(onset == NEVER, time, onset)

    def learn(self, state: Rows, evidence: Array, time: Ints, valid: Flags) -> None:
        """Remembers, counts down and forgets, by the evidence before damping."""
        rest, peak = state["rest"], state["peak"]
        quiet, onset = state["quiet"], state["onset"].astype(np.int64)
        exceeds = evidence >= peak
        notable = evidence >= self.notable
        calm = np.where(notable, 0.0, quiet + 1)
        since = np.where(notable & (onset == NEVER), time, onset)
        since = np.where(calm > self.calm, NEVER, since)
        left = np.where(exceeds, float(self.rest), np.maximum(rest - 1, 0.0))
        peak_now = np.where(left > 0, np.where(exceeds, evidence, peak), 0.0)
        state["rest"] = np.where(valid, left, rest)
        state["peak"] = np.where(valid, peak_now, peak)
        state["quiet"] = np.where(valid, calm, quiet)
        state["onset"] = np.where(valid, since, onset)

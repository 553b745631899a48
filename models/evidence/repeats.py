"""Repeats: while an incident is open, more of the same is less news; and since when it has been going on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Array, Columns, Flags, Ints, Rows

NEVER = -1
"""No onset."""


@dataclass(frozen=True)
class Repeats:
    """Damping of evidence after an alarm, and the onset of the present unrest.

    Args:
        alarm: Evidence, in nats, that opens an incident.
        rest: Steps for which repeats are damped, less and less.
        damping: Share of the evidence that is taken off right after the opening.
        calm: Steps without notable evidence after which the unrest is over.
    """

    alarm: float
    rest: int
    damping: float
    calm: int

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        return {"rest": np.zeros(n), "peak": np.zeros(n), "quiet": np.zeros(n), "onset": np.full(n, NEVER, np.int64)}

    def close(self, state: Rows) -> None:
        """Ends the incident and the unrest."""
        for name, column in self.new_state(len(state.rows)).items():
            state[name] = column

    def damp(self, state: Rows, evidence: Array) -> Array:
        """The evidence, less what an open incident takes off: of what exceeds its peak so far, nothing.

        >>> repeats = Repeats(alarm=10.0, rest=100, damping=0.4, calm=30)
        >>> columns = {"rest": np.array([0.0, 100.0, 50.0, 100.0]), "peak": np.array([0.0, 20.0, 20.0, 11.0])}
        >>> repeats.damp(Rows(columns, np.arange(4), ""), np.full(4, 12.0))
        array([12. ,  7.2,  9.6,  7.6])
        """
        return evidence - np.minimum(evidence, state["peak"]) * (self.damping * state["rest"] / self.rest)

    def onset(self, state: Rows, time: Ints) -> Ints:
        """When the present unrest began; the step itself if it begins now."""
        onset = state["onset"].astype(np.int64)
        return np.where(onset == NEVER, time, onset)

    def learn(self, state: Rows, evidence: Array, time: Ints, valid: Flags) -> None:
        """Opens, counts down and ends, by the evidence before damping."""
        rest, peak = state["rest"], state["peak"]
        quiet, onset = state["quiet"], state["onset"].astype(np.int64)
        opens = (evidence >= self.alarm) & ((rest <= 0) | (evidence > peak))
        notable = evidence >= 0.75 * self.alarm
        calm = np.where(notable, 0.0, quiet + 1)
        since = np.where(notable & (onset == NEVER), time, onset)
        since = np.where(calm > self.calm, NEVER, since)
        state["rest"] = np.where(valid, np.where(opens, float(self.rest), np.maximum(rest - 1, 0.0)), rest)
        state["peak"] = np.where(valid & opens, evidence, peak)
        state["quiet"] = np.where(valid, calm, quiet)
        state["onset"] = np.where(valid, since, onset)

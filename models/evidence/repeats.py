"""Repeats: while an incident is open, more of the same is less news; and since when it has been going on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.arrays import Array, Columns, Flags, Ints, Rows
from models.kernels import kernel
from models.records import Record

NEVER = -1
"""No onset."""

_ACCEPTED = -1.0
"""Stands for quiet steps where an operator has ended the unrest and the next verdict is to say so."""


class Unrest(NamedTuple):
    """What a step makes of the unrest of n series; all of shape (n,).

    Args:
        worst: Highest record_score of the unrest that goes on, this step among it.
        over: The same of the unrest before, where it ends with the step; else 0.
        accepted: The same of an unrest that an operator has ended since the step before; else 0.
        quiet: Quiet steps in a row.
        begun: Its onset, where that is known better than by the step at which it is noticed; else -1.
    """

    worst: Array
    over: Array
    accepted: Array
    quiet: Array
    begun: Ints


@dataclass(frozen=True)
class Repeats:
    """Damping of what does not exceed the strongest evidence of the last while, and the onset of the present unrest.

    No level of evidence opens an incident: the order of verdicts is the same wherever an alarm is drawn.

    Args:
        notable: Evidence, in nats, that begins an unrest, and keeps it up.
        rest: Steps for which the strongest evidence is remembered.
        damping: Share that is taken off evidence that does not exceed it.
        calm: Steps without notable evidence after which the unrest is over: that many, and one more.
    """

    notable: float
    rest: int
    damping: float
    calm: int

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        counts: Columns = {name: np.zeros(n, np.float32) for name in ("rest", "quiet")}
        return counts | {"worst": np.zeros(n, np.float32)} | {"peak": np.zeros(n), "onset": np.full(n, NEVER, np.int64)}

    def close(self, state: Rows, onset: Ints | None = None, worst: Array | float = 0.0) -> None:
        """Ends the unrest, as an operator wants; the next step says so, see `Unrest.accepted`.

        Args:
            state: The columns.
            onset: When it began, if that is known better than here; -1: it is not.
            worst: Highest record_score that was told of it, beside those known here.
        """
        own, worst = state["onset"].astype(np.int64), np.maximum(state["worst"], worst)
        for name, column in self.new_state(len(state.rows)).items():
            state[name] = column
        state["onset"] = own if onset is None else np.where(onset == NEVER, own, onset)
        state["worst"], state["quiet"] = worst, np.full(len(own), _ACCEPTED)

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

    def unrest(self, state: Rows, busy: Flags, told: Array, ends: Flags) -> Unrest:
        """What one more step makes of the unrest.

        Args:
            state: The columns.
            busy: Whether the step keeps the unrest up, shape (n,).
            told: The step's record_score, as far as it counts here, shape (n,).
            ends: Whether the unrest is over with the step, however few steps were quiet, shape (n,).
        """
        worst = state["worst"].astype(np.float64)
        accepted = state["quiet"] < 0
        quiet = np.where(busy, 0.0, np.maximum(state["quiet"], 0.0) + 1)
        over = ~accepted & (ends | (quiet > self.calm))
        left = np.where(accepted | over, 0.0, worst)
        return Unrest(
            worst=np.maximum(left, told),
            over=np.where(over, worst, 0.0),
            accepted=np.where(accepted, worst, 0.0),
            quiet=np.where(over & ~busy, self.calm + 1.0, quiet),
            begun=np.full(len(quiet), NEVER, np.int64),
        )

    def learn(self, state: Rows, evidence: Array, time: Ints, valid: Flags, unrest: Unrest) -> None:
        """Remembers, counts down and forgets, by the evidence before damping.

        Args:
            state: The columns.
            evidence: Before damping, in nats, shape (n,).
            time: When, epoch milliseconds, shape (n,).
            valid: Where there was a step at all, shape (n,).
            unrest: As from `unrest`.
        """
        rest, peak = state["rest"], state["peak"]
        onset = np.where(state["quiet"] < 0, NEVER, state["onset"].astype(np.int64))
        exceeds = evidence >= peak
        since = np.where((unrest.quiet == 0) & (onset == NEVER), time, onset)
        since = np.where(unrest.quiet > self.calm, NEVER, since)
        since = np.where(unrest.begun == NEVER, since, unrest.begun)
        left = np.where(exceeds, float(self.rest), np.maximum(rest - 1, 0.0))
        peak_now = np.where(left > 0, np.where(exceeds, evidence, peak), 0.0)
        state["rest"] = np.where(valid, left, rest)
        state["peak"] = np.where(valid, peak_now, peak)
        state["quiet"] = np.where(valid, np.minimum(unrest.quiet, self.calm + 1.0), state["quiet"])
        state["worst"] = np.where(valid, unrest.worst, state["worst"])
        state["onset"] = np.where(valid, since, state["onset"])


class UnrestStep(NamedTuple):
    """`Unrest` of one series."""

    worst: float
    over: float
    accepted: float
    quiet: float


@kernel
def damp(config: Repeats, repeats: Record, evidence: float) -> float:
    """The evidence; less the damping where it does not exceed the peak remembered."""
    return evidence if evidence >= repeats.peak else (1 - config.damping) * evidence


@kernel
def unrest(config: Repeats, repeats: Record, busy: bool, told: float, ends: bool) -> UnrestStep:
    """What one more step makes of the unrest, as `Repeats.unrest` of one series.

    Args:
        config: The constants.
        repeats: The columns.
        busy: Whether the step keeps the unrest up.
        told: The step's record_score, as far as it counts here.
        ends: Whether the unrest is over with the step, however few steps were quiet.
    """
    worst = float(repeats.worst)
    accepted = repeats.quiet < 0
    quiet = 0.0 if busy else max(float(repeats.quiet), 0.0) + 1
    over = not accepted and (ends or quiet > config.calm)
    if over and not busy:
        quiet = config.calm + 1.0
    left = 0.0 if accepted or over else worst
    return UnrestStep(max(left, told), worst if over else 0.0, worst if accepted else 0.0, quiet)


@kernel
def learn_repeats(config: Repeats, repeats: Record, evidence: float, time: int, course: UnrestStep, begun: int) -> None:
    """Remembers, counts down and forgets, by the evidence before damping, as `Repeats.learn` of one series.

    Args:
        config: The constants.
        repeats: The columns; changed.
        evidence: Before damping, in nats.
        time: When, epoch milliseconds.
        course: As from `unrest`.
        begun: Its onset, where that is known better than by the step at which it is noticed; else -1.
    """
    if repeats.quiet < 0:
        repeats.onset = NEVER
    if begun != NEVER:
        repeats.onset = begun
    elif course.quiet > config.calm:
        repeats.onset = NEVER
    elif course.quiet == 0 and repeats.onset == NEVER:
        repeats.onset = time
    if evidence >= repeats.peak:
        repeats.rest, repeats.peak = config.rest, evidence
    else:
        repeats.rest = max(repeats.rest - 1, 0.0)
    if repeats.rest == 0:
        repeats.peak = 0.0
    repeats.quiet, repeats.worst = min(course.quiet, config.calm + 1.0), course.worst

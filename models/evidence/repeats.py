"""Repeats: while an incident is open, more of the same is less news; and since when it has been going on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.kernels import kernel
from models.numbers.arrays import Array, Columns, Ints, Rows
from models.records import Record

NEVER = -1
"""No onset."""

_ACCEPTED = -1.0
"""Stands for quiet steps where an operator has ended the unrest and the next verdict is to say so."""


class Unrest(NamedTuple):
    """What a step makes of the unrest of a series.

    Args:
        worst: Highest record_score of the unrest that goes on, this step among it.
        over: The same of the unrest before, where it ends with the step; else 0.
        accepted: The same of an unrest that an operator has ended since the step before; else 0.
        quiet: Quiet steps in a row.
    """

    worst: float
    over: float
    accepted: float
    quiet: float


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
            worst: Highest record_score that was reported of it, beside those known here.
        """
        own, worst = state["onset"].astype(np.int64), np.maximum(state["worst"], worst)
        for name, column in self.new_state(len(state.rows)).items():
            state[name] = column
        state["onset"] = own if onset is None else np.where(onset == NEVER, own, onset)
        state["worst"], state["quiet"] = worst, np.full(len(own), _ACCEPTED)


@kernel
def damp(config: Repeats, repeats: Record, evidence: float) -> float:
    """The evidence; less the damping where it does not exceed the peak remembered.

    >>> from models.records import constants, record_of
    >>> repeats = Repeats(notable=7.5, rest=100, damping=0.4, calm=30)
    >>> given, state = constants(all=repeats).all, record_of(repeats.new_state(1))
    >>> state.peak = 20.0
    >>> round(damp(given, state, 12.0), 3), damp(given, state, 20.0)
    (7.2, 20.0)
    """
    return evidence if evidence >= repeats.peak else (1 - config.damping) * evidence


@kernel
def unrest(config: Repeats, repeats: Record, busy: bool, score: float, ends: bool) -> Unrest:
    """What one more step makes of the unrest of a series.

    Args:
        config: The constants.
        repeats: The columns.
        busy: Whether the step keeps the unrest up.
        score: The part of the step's record_score that counts here.
        ends: Whether the unrest is over with the step, however few steps were quiet.
    """
    worst = float(repeats.worst)
    accepted = repeats.quiet < 0
    quiet = 0.0 if busy else max(float(repeats.quiet), 0.0) + 1
    over = not accepted and (ends or quiet > config.calm)
    if over and not busy:
        quiet = config.calm + 1.0
    left = 0.0 if accepted or over else worst
    return Unrest(max(left, score), worst if over else 0.0, worst if accepted else 0.0, quiet)


@kernel
def learn_repeats(config: Repeats, repeats: Record, evidence: float, time: int, course: Unrest, begun: int) -> None:
    """Remembers, counts down and forgets, by the evidence before damping.

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


@kernel
def conclude(config: Repeats, repeats: Record, course: Unrest) -> None:
    """Lets an unrest come to its end at a step that must not be learned from; none begins, or becomes worse, with it.

    Args:
        config: The constants.
        repeats: The columns; changed where the step is quiet, or the unrest is over with it.
        course: As from `unrest`.
    """
    ended = repeats.quiet < 0 or course.quiet > config.calm
    if ended or course.quiet > 0 or course.over > 0:
        repeats.quiet = min(course.quiet, config.calm + 1.0)
        repeats.worst = 0.0 if ended or course.over > 0 else min(course.worst, float(repeats.worst))
        if ended:
            repeats.onset = NEVER

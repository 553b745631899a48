"""What the metrics of a machine say of one another's changes: most of what began together decides for the rest.

A release or a move of load touches several metrics of a machine. Each of them is asked by itself whether its new level
is a new normal, and the weakest answer comes late or never. Here a machine remembers how many incidents of its metrics
are open, and how many that began with them have ended in another regime. Once these are as many as those still open,
and two at least, the machine has changed: what is still open is accepted too. If most of them are back in a regime that
the machine left earlier, the metrics that left one at the same time are asked for that one first.

All counts are those at the end of the window before, so the order of a machine's metrics within a window is irrelevant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.evidence.repeats import NEVER
from models.kernels import kernel
from models.numbers.arrays import Columns
from models.records import Record

_FEW = 2.0
"""Metrics that have to agree before they say something of others."""

_NONE = -1.0
"""No regime is back."""


class Company(NamedTuple):
    """What the other metrics of its machine say of a value.

    Args:
        accepts: Whether most of the incidents that began with its own have ended in another regime.
        settles: Whether the machine has changed so lately, whichever metrics did.
        left: How many values ago the machine left the regime that it is back in; -1: it is back in none.
        since: When the change began that the machine is back from; -1: there is none.
    """

    accepts: bool
    settles: bool
    left: float
    since: int


def new_state(n: int) -> Columns:
    """The columns for n machines whose metrics are all as usual.

    ``time``: of the last window; ``onset``: when the first of the present incidents began; ``open``, ``settled``,
    ``back``: incidents that are open, that have ended in another regime, and in one known before; ``new.``: what the
    last window adds to these. Of the last time that most of them had: ``since``: when; ``began``: ``onset`` then;
    ``passed``: windows since then; ``left``: how many values before the regime known before had been left.
    """
    times: Columns = {name: np.full(n, NEVER, np.int64) for name in ("time", "onset", "since", "began")}
    counts = ("open", "settled", "back", "passed", "new.open", "new.begun", "new.settled", "new.back", "new.left")
    return times | {name: np.zeros(n, np.float32) for name in counts} | {"left": np.full(n, _NONE, np.float32)}


@kernel
def nobody() -> Company:
    """The company of a series without others on its machine."""
    return Company(False, False, _NONE, NEVER)


@kernel
def begin(machine: Record, time: int) -> None:
    """Counts what the window before has added, if this is a further window of the machine.

    Args:
        machine: The columns; changed.
        time: Of the window, epoch milliseconds.
    """
    if time <= machine.time:
        return
    new = machine.new
    if new.begun > 0 and (machine.open == 0 or machine.since >= machine.onset):
        machine.onset, machine.settled, machine.back = machine.time, 0.0, 0.0
    machine.open += new.open
    machine.settled += new.settled
    machine.back += new.back
    machine.passed += 1
    agreed = machine.settled >= _FEW and machine.settled >= machine.open
    if agreed and machine.since < machine.onset:
        machine.since, machine.began, machine.passed = machine.time, machine.onset, 1.0
        machine.left = new.left if 2 * machine.back >= machine.settled else _NONE
    new.open = new.begun = new.settled = new.back = 0.0
    machine.time = time


@kernel
def listen(machine: Record, onset: int, patience: float) -> Company:
    """What the machine says of a value.

    Args:
        machine: The columns, after `begin`.
        onset: When the incident began that is open in its series and began abruptly; -1: none is.
        patience: Windows after which a machine has settled.
    """
    accepts = onset != NEVER and machine.since >= machine.onset and machine.onset <= onset <= machine.since
    settles = machine.since != NEVER and machine.passed <= patience
    left, began = _NONE, NEVER
    if settles and machine.left >= 0:
        left, began = machine.left + machine.passed, machine.began
    return Company(accepts, settles, left, began)


@kernel
def count(machine: Record, was: bool, inside: bool, onset: int, switched: bool, left: float) -> None:
    """Counts what became of the incident of a series.

    Args:
        machine: The columns; changed.
        was: Whether an incident of the series was counted as open.
        inside: Whether one is open after the value.
        onset: When the incident began; -1: none was or is open.
        switched: Whether another regime holds from the next value on.
        left: If it is one that was known: how many values ago the series left it; else -1.
    """
    new = machine.new
    new.open += (1.0 if inside else 0.0) - (1.0 if was else 0.0)
    new.begun += 1.0 if inside and not was else 0.0
    if switched and onset != NEVER and onset >= machine.onset:
        new.settled += 1
        if left >= 0:
            new.left = max(left, new.left) if new.back > 0 else left
            new.back += 1

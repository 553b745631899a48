"""What becomes of an incident with a value: it goes on, an old regime is back, a new one holds, or it is given up."""

from __future__ import annotations

from typing import NamedTuple

from models.kernels import kernel
from models.records import Record
from models.regimes.company import Company
from models.regimes.config import RegimesConfig
from models.regimes.incident import CurrentValue, Incident, is_level
from models.regimes.kept import SLOTS, recall_gain
from models.regimes.reference import Expected

Recall = tuple[float, float, float, float]
"""One figure for each of the kept regimes."""


class Outcome(NamedTuple):
    """What becomes of an incident.

    Args:
        recalled: Whether a kept regime is back.
        accepted: Whether the level since the onset is another regime.
        changed: Whether the incident turns out to be a change of state.
        given_up: Whether it is over since it lasts too long.
        slot: The kept regime that is back, or that explains the values best.
        shift: Shift of the regime that holds once the incident is over.
    """

    recalled: bool
    accepted: bool
    changed: bool
    given_up: bool
    slot: int
    shift: float


@kernel
def recall_gains(config: RegimesConfig, regime: Record, current: CurrentValue, expected: Expected) -> Recall:
    """What the value says for each of the kept regimes."""
    return (
        current.counts * recall_gain(config, regime, 0, expected.off, expected.scale),
        current.counts * recall_gain(config, regime, 1, expected.off, expected.scale),
        current.counts * recall_gain(config, regime, 2, expected.off, expected.scale),
        current.counts * recall_gain(config, regime, 3, expected.off, expected.scale),
    )


@kernel
def recalled_so_far(regime: Record, was: bool, gains: Recall) -> Recall:
    """Logarithms of the Bayes factors of the kept regimes with this value; ``was``: the incident was open before it."""
    return (
        (float(regime.back[0]) if was else 0.0) + gains[0],
        (float(regime.back[1]) if was else 0.0) + gains[1],
        (float(regime.back[2]) if was else 0.0) + gains[2],
        (float(regime.back[3]) if was else 0.0) + gains[3],
    )


@kernel
def outcome_of(
    config: RegimesConfig,
    regime: Record,
    current: CurrentValue,
    company: Company,
    former: int,
    expected: Expected,
    incident: Incident,
    alive: bool,
    gains: Recall,
    back: Recall,
) -> Outcome:
    """What becomes of an incident with a value.

    Args:
        config: The constants.
        regime: The columns of regimes.
        current: What is known of the value.
        company: What the other metrics of the machine say.
        former: The kept regime that the machine returns to; -1: none.
        expected: What the reference expected.
        incident: The incident after the value.
        alive: As from `is_alive`.
        gains: As from `recall_gains`.
        back: As from `recalled_so_far`.
    """
    challenger, is_open = incident.challenger, incident.weight > 0
    best = 0
    for slot in range(1, SLOTS):
        if back[slot] > back[best]:
            best = slot
    present = float(regime.shift[regime.active])
    miss = abs(present + challenger.mean - float(regime.shift[best]))
    fits = miss <= config.recall_fit * expected.scale + config.tolerance * abs(challenger.mean)
    level = is_level(config, incident, expected)
    few = challenger.number * current.counts * config.recall_most < config.recall
    joins = company.accepts and incident.was and is_open and alive and level and not few
    likely = back[best] > 0 if joins else back[best] >= config.recall
    recalled = is_open and incident.abrupt and alive and fits and likely
    if former >= 0 and not recalled and alive and gains[former] > 0:
        best, recalled = former, True
    far = abs(challenger.mean) >= config.start * expected.scale
    settled = is_open and far and not recalled and alive and level and incident.weight >= config.change
    accepted = (settled and incident.announced) or (joins and not recalled)
    given_up = is_open and not (accepted or recalled) and alive and challenger.number >= config.patience
    shift = float(regime.shift[best]) if recalled else present + challenger.mean
    return Outcome(recalled, accepted, settled and not incident.announced, given_up, best, shift)

"""Constant and quantised series: a few distinct values with their probabilities, and a reserve for an unseen one.

Faded counts of the distinct values: Dirichlet with a reserve, as a Chinese restaurant keeps it. Half of the reserve
lies below all values and half above. The rarity of a value knows of no order: an unseen value between two others is as
rare as one outside.

Sources: the reserve as in W. Ewens, The sampling theory of selectively neutral alleles, Theoretical Population
Biology 3 (1972), its strength learned from how often a stranger came: I. Good, Biometrika 40 (1953).
"""

from __future__ import annotations

import math

import numpy as np

from models.kernels import kernel
from models.numbers import special
from models.numbers.arrays import SMALLEST, Columns
from models.records import Record

SLOTS = 7
"""Distinct values that are remembered; of more, the rarest is given up."""

_SAME = 1e-9
"""Values that differ by a smaller share are the same value."""

_FAINT = 1e-3
"""A value whose faded count is below this is as good as unseen."""


def new_state(n: int) -> Columns:
    """The columns for n series of which nothing is known.

    ``places``: distinct values; ``counts``: faded count of each, 0 of an empty slot; ``strangers``: faded number of
    values that were unseen when they came.
    """
    counts: Columns = {"counts": np.zeros((n, SLOTS), np.float32), "strangers": np.zeros(n, np.float32)}
    return counts | {"places": np.zeros((n, SLOTS))}


@kernel
def _live(state: Record, slot: int) -> float:
    return float(state.counts[slot]) if state.counts[slot] > _FAINT else 0.0


@kernel
def total(state: Record) -> float:
    """How many values the counts are worth."""
    worth = 0.0
    for slot in range(SLOTS):
        worth += state.counts[slot]
    return worth


@kernel
def distinct(state: Record) -> float:
    """How many values are remembered."""
    number = 0.0
    for slot in range(SLOTS):
        number += state.counts[slot] > _FAINT
    return number


@kernel
def _sure(state: Record) -> float:
    """Total of the counts that are remembered."""
    sure = 0.0
    for slot in range(SLOTS):
        sure += _live(state, slot)
    return sure


@kernel
def reserve(state: Record) -> float:
    """Probability of a value that was not seen yet."""
    sure = _sure(state)
    return min((0.5 + state.strangers) / (1.0 + sure), 1.0) if sure > 0 else 1.0


@kernel
def gap(state: Record) -> float:
    """Smallest difference between two of the values; of a single one, a millionth of it."""
    least, size = math.inf, 0.0
    for slot in range(SLOTS):
        if state.counts[slot] > _FAINT:
            size = max(size, abs(state.places[slot]))
            for other in range(slot):
                if state.counts[other] > _FAINT:
                    least = min(least, abs(state.places[slot] - state.places[other]))
    return least if least < math.inf else max(1e-6 * size, SMALLEST)


@kernel
def chance(state: Record, value: float) -> float:
    """Probability of a value; of an unseen one that of any."""
    own, sure, new = 0.0, _sure(state), reserve(state)
    for slot in range(SLOTS):
        if abs(state.places[slot] - value) <= _SAME * abs(state.places[slot]) and sure > 0:
            own += _live(state, slot) / sure * (1 - new)
    return own if own > 0 else new


@kernel
def rarity(state: Record, value: float) -> float:
    """-ln of the chance of a value that is at most as likely as this one: 0 for the likeliest."""
    own, rarer, sure, new = chance(state, value), 0.0, _sure(state), reserve(state)
    for slot in range(SLOTS):
        share = _live(state, slot) / (sure or 1.0) * (1 - new)
        if share <= own:
            rarer += share
    return -math.log(min(rarer + new, 1.0))


@kernel
def place_quantile(state: Record, z: float) -> float:
    """The smallest value with the mass at or below it that a standard normal has below z; in the reserve, outside."""
    target, sure, new, step = special.ndtr(z), _sure(state), reserve(state), gap(state)
    mass, place = 0.5 * new, -math.inf
    if target < mass:
        return _next_place(state, place) - step
    while True:
        after = _next_place(state, place)
        if after == math.inf:
            return place + step
        place = after
        for slot in range(SLOTS):
            if state.places[slot] == place:
                mass += _live(state, slot) / sure * (1 - new)
        if mass >= target:
            return place


@kernel
def _next_place(state: Record, place: float) -> float:
    """The smallest value above a place."""
    after = math.inf
    for slot in range(SLOTS):
        if state.counts[slot] > _FAINT and state.places[slot] > place:
            after = min(after, state.places[slot])
    return after


@kernel
def learn_place(state: Record, value: float, weight: float, forget: float) -> None:
    """Adds a value.

    Args:
        state: The columns; changed.
        value: Finite.
        weight: What it counts, in [0, 1].
        forget: Share of the old counts that is forgotten.

    >>> from models.records import record_of
    >>> known = record_of(new_state(1))
    >>> for value in (5.0,) * 98 + (7.0, 5.0):
    ...     learn_place(known, value, 1.0, 0.0)
    >>> distinct(known), gap(known), round(math.exp(-rarity(known, 6.0)), 4)  # 1.5 / 101, and the rarer 7
    (2.0, 2.0, 0.0247)
    """
    slot, rarest, others = -1, 0, 0.0
    for other in range(SLOTS):
        near = abs(state.places[other] - value) <= _SAME * abs(state.places[other])
        if slot < 0 and near and state.counts[other] > _FAINT:
            slot = other
        if state.counts[other] < state.counts[rarest]:
            rarest = other
    stranger = slot < 0
    if stranger:
        slot = rarest
    for other in range(SLOTS):
        if other != slot:
            state.counts[other] *= 1 - forget
            others += state.counts[other]
    before = state.counts[slot] * (1 - forget)
    if stranger and weight > 0:
        state.places[slot], before = value, 0.0
    first = others + before <= 0
    state.counts[slot] = before + weight
    state.strangers = state.strangers * (1 - forget) + (weight if stranger and not first else 0.0)


@kernel
def forget_places(state: Record) -> None:
    """Begins anew."""
    state.strangers = 0.0
    for slot in range(SLOTS):
        state.places[slot], state.counts[slot] = 0.0, 0.0

"""Evidence that a sensor is stuck: the same value over and over, where values used not to repeat."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from models.kernels import kernel, within
from models.numbers.arrays import Columns
from models.records import Record

_MOST = 1000.0
_SURE = 0.9999


@dataclass(frozen=True)
class Frozen:
    """Whether exact repeats are more than chance.

    A value repeats the one before with chance q₀ after a new value, q₁ after a repeat, a two-state Markov chain: k
    repeats in a row are -ln q₀ - (k - 1) ln q₁ nats. Both chances are learned, so that counts and what rests at night
    are not called stuck for long; a run of more than ``half`` nats teaches nothing.

    Args:
        half: Nats of a run that teaches nothing; `models.series.alarm.stuck_from` says what is reported.
        forget: Share of what is known of q₀ that is forgotten per value, at least.
        pace: Weight of the newest value in q₁.

    Sources: E. N. Gilbert, Capacity of a burst-noise channel, Bell System Technical Journal 39 (1960); R. E.
    Krichevsky, V. K. Trofimov, The performance of universal encoding, IEEE Trans. Inf. Theory 27 (1981).

    >>> from models.records import constants, record_of
    >>> config = Frozen(half=13.0, forget=1 / 500, pace=1 / 20)
    >>> given, row, told = constants(all=config).all, record_of(config.new_state(1)), []
    >>> for seen, same in enumerate([False] * 200 + [True] * 20):
    ...     nats = frozen_nats(given, row, same)
    ...     told.append(row.nats < config.half <= nats)
    ...     learn_frozen(given, row, same, float(seen), nats)
    >>> [place - 200 for place, flag in enumerate(told) if flag]
    [16]
    """

    half: float
    forget: float
    pace: float

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        chances: Columns = {name: np.full(n, 0.5, np.float32) for name in ("first", "again")}
        return chances | {"nats": np.zeros(n, np.float32)}


@kernel
def frozen_nats(config: Frozen, frozen: Record, same: bool) -> float:
    """Evidence of the run of repeats that a value ends; 0 if it is not the one before.

    What never happened in n values is taken for as likely as half a case in n [Krichevsky & Trofimov 1981].

    Args:
        config: The constants.
        frozen: The columns.
        same: Whether the value is the one before.
    """
    if not same:
        return 0.0
    chance, least = frozen.first, 0.5 * config.forget
    if frozen.nats > 0:
        chance, least = frozen.again, 0.5 * config.pace
    return min(frozen.nats - math.log(within(chance, least, _SURE)), _MOST)


@kernel
def learn_frozen(config: Frozen, frozen: Record, same: bool, seen: float, nats: float) -> None:
    """Adds a value.

    Args:
        config: The constants.
        frozen: The columns; changed.
        same: As of `frozen_nats`.
        seen: Values before it.
        nats: As from `frozen_nats`.
    """
    repeat = np.float32(same)
    if frozen.nats == 0:
        frozen.first += max(config.forget, 1 / (2 + seen)) * (repeat - frozen.first)
    elif nats < config.half:
        frozen.again += np.float32(config.pace) * (repeat - frozen.again)
    frozen.nats = _rounded(nats)


@kernel
def _rounded(nats: float) -> float:
    """A number of nats to eleven binary digits, which is how runs have always been remembered."""
    digits, exponent = math.frexp(nats)
    return math.ldexp(float(np.rint(digits * 2048)), exponent - 11)

"""Again is news again: what came, went away by itself and comes back is news once more, up to a few times.

An incident teaches the experts, the range and the calibrations. That keeps a series that is often unusual from alarming
all the time, and would hide the next incident of the same kind for hours. So the strongest evidence of an incident that
ended by return is remembered, and how far its values lay from what the reference expected. A jump of about that
distance, to the same side, is lent evidence once an incident. What comes back more often than that is expected, until
these returns are forgotten; what does not come back for some hours has been learned by the series as any other value.
"""

from __future__ import annotations

import numpy as np

from models.kernels import kernel, within
from models.numbers.arrays import Columns
from models.records import Record
from models.regimes.config import RegimesConfig
from models.regimes.reference import Expected

_HIGHEST = 99.0
"""Evidence of a score beyond it is taken for that of it."""


def new_state(n: int) -> Columns:
    """The columns for n series in which nothing has come and gone.

    ``nats``: strongest evidence of what is remembered; ``off``: where its values lay from what the reference expected,
    on the axis; ``times``: how many incidents of such a strength have ended by return, faded; ``age``: milliseconds
    since the last of them.
    """
    return {name: np.zeros(n, np.float32) for name in ("nats", "off", "times", "age")}


@kernel
def is_alike(config: RegimesConfig, again: Record, off: float) -> bool:
    """Whether a distance from what is expected is about that of what is remembered, or larger, on the same side.

    >>> from models.records import constants, record_of
    >>> config, again = constants(all=RegimesConfig()).all, record_of(new_state(1))
    >>> again.off = -2.0
    >>> [bool(is_alike(config, again, off)) for off in (-3.0, -1.7, -1.0, 2.0)]
    [True, True, False, False]
    """
    return off * again.off > 0 and abs(off) >= config.alike * abs(again.off)


@kernel
def nats_again(
    config: RegimesConfig, half: float, more: float, again: Record, regime: Record, expected: Expected
) -> float:
    """Evidence that a value is lent, as the same was news before; 0 if it was not, or if that is expected by now.

    Args:
        config: The constants.
        half: Weight of evidence that scores 50.
        more: How much more is needed to be reported.
        again: The columns of what is remembered.
        regime: The columns of regimes.
        expected: As from `models.regimes.reference.expect`.
    """
    if again.nats <= 0 or again.age > config.remembers or again.times > config.recurs:
        return 0.0
    if abs(expected.off) < config.trigger * expected.scale or not is_alike(config, again, expected.off):
        return 0.0
    is_open = regime.weight > 0
    jumps = abs(expected.place + regime.now - regime.last) >= config.jump * expected.scale
    if not (regime.abrupt if is_open else jumps):
        return 0.0
    lent = half * (again.nats / half) ** config.lends + more
    had = min(float(regime.peak), _HIGHEST) / 100 if is_open else 0.0
    return lent if half * had / (1 - had) < 0.99 * lent else 0.0


@kernel
def learn_again(
    config: RegimesConfig, half: float, again: Record, forget: float, gap: float, over: bool, peak: float, mean: float
) -> None:
    """Forgets a little, and remembers an incident that has ended by return.

    Args:
        config: The constants.
        half: Weight of evidence that scores 50.
        again: The columns; changed.
        forget: Share of the number of returns that is forgotten per value.
        gap: Milliseconds since the value before.
        over: Whether such an incident ends with the value.
        peak: Its highest score.
        mean: Where its values lay from what was expected, before this one.
    """
    again.times *= 1 - forget
    again.age += gap
    share = within(peak, 0.0, _HIGHEST) / 100
    nats = half * share / (1 - share)
    if not over or nats < half:
        return
    if again.nats > 0 and is_alike(config, again, mean):
        again.nats, again.off = max(float(again.nats), nats), again.off + 0.5 * (mean - again.off)
    else:
        again.nats, again.off = nats, mean
    again.times, again.age = again.times + 1.0, 0.0

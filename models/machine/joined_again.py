"""Again is news again, of a machine: its joined verdict was news, went away by itself, and its metrics are news again.

What a machine's metrics do together is learned with each incident, as what each of them does is: see
`models.regimes.again`. There each metric decides by itself whether what comes back is what it was. Of the machine it is
remembered only how strong its last such incident was.
"""

from __future__ import annotations

import numpy as np

from models.evidence.repeats import Unrest
from models.evidence.score import is_alarm
from models.kernels import kernel
from models.numbers.arrays import Columns
from models.records import Record
from models.regimes.config import RegimesConfig

_HIGHEST = 99.0
"""Evidence of a score beyond it is taken for that of it."""


def new_state(n: int) -> Columns:
    """The columns for n machines that never were news.

    ``nats``: evidence of the last incident that is over, 0: there is none; ``times``: how many there were, faded;
    ``end``: end of the last one, epoch milliseconds.
    """
    return {
        "nats": np.zeros(n, np.float32),
        "times": np.zeros(n, np.float32),
        "end": np.zeros(n, np.int64),
    }


@kernel
def joined_again(
    config: RegimesConfig, half: float, again: Record, worst: float, lent: bool, time: int, threshold: float
) -> float:
    """Evidence that the joined verdict is lent; 0 if none.

    Args:
        config: The constants.
        half: Evidence of a machine that scores 50.
        again: The columns.
        worst: Highest record_score of the incident that goes on; 0 if none does.
        lent: Whether one of its metrics is news again.
        time: Of the window, epoch milliseconds.
        threshold: record_score from which a machine is news.

    >>> from models.records import constants, record_of
    >>> config, again = constants(all=RegimesConfig()).all, record_of(new_state(1))
    >>> again.nats, again.times, again.end = 16.0, 1.0, 0
    >>> [round(joined_again(config, 8.0, again, worst, True, 3_600_000, 50.0), 1) for worst in (0.0, 40.0, 60.0)]
    [8.6, 8.6, 0.0]
    """
    remembered = again.nats > 0 and time - again.end <= config.remembers and again.times <= config.recurs
    if not (lent and remembered) or is_alarm(worst, threshold):
        return 0.0
    return float(half * (again.nats / half) ** config.lends)


@kernel
def learn_joined_again(half: float, again: Record, forget: float, over: Unrest, time: int) -> None:
    """Forgets a little, and remembers an incident that is over.

    Args:
        half: Evidence of a machine that scores 50.
        again: The columns; changed.
        forget: Share of the number of incidents that is forgotten per window.
        over: What the window makes of the unrest.
        time: Of the window, epoch milliseconds.
    """
    again.times *= 1 - forget
    share = min(over.over, _HIGHEST) / 100
    nats = half * share / (1 - share)
    if nats >= half:
        again.nats, again.times, again.end = nats, again.times + 1.0, time

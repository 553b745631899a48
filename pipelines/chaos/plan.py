"""The order and lengths of the faults of a run, which follow from its seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pipelines.chaos.faults import Fault

_CALM_SECONDS = (1.0, 8.0)
_AT_ONCE = 0.15


@dataclass(frozen=True)
class Planned:
    """A fault of a run.

    Attributes:
        fault: Its kind.
        lasts: For how many seconds.
        calm: Seconds from the recovery from the last fault to this one.
        at_once: True if it does not wait for that recovery.
    """

    fault: Fault
    lasts: float
    calm: float
    at_once: bool


def planned(faults: Mapping[str, Fault], seed: int) -> Iterator[Planned]:
    """An endless order of faults: each kind comes once before any comes again.

    >>> from pipelines.chaos.faults import FAULTS
    >>> first, again = planned(FAULTS, 7), planned(FAULTS, 7)
    >>> [next(first) for _ in range(50)] == [next(again) for _ in range(50)]
    True
    """
    rng = random.Random(seed)
    while True:
        kinds = sorted(faults)
        rng.shuffle(kinds)
        for kind in kinds:
            fault = faults[kind]
            lasts, calm = rng.uniform(*fault.seconds), rng.uniform(*_CALM_SECONDS)
            yield Planned(fault, round(lasts, 1), round(calm, 1), rng.random() < _AT_ONCE)

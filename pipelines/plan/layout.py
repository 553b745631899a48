"""Partitions and shards: numbers that fit each other, and that leave room to grow."""

from __future__ import annotations

import math

from engine.spec.errors import NewnormalError

MOST = 1_024
"""Most partitions and shards that the settings accept."""


def power_of_two(least: float) -> int:
    """The smallest power of two that is not below a number, at least 1.

    >>> power_of_two(5.1), power_of_two(0.2), power_of_two(8)
    (8, 1, 8)
    """
    return 1 << max(0, math.ceil(math.log2(least)) if least > 1 else 0)


def divisor(partitions: int, least: float) -> int:
    """The smallest divisor of a number of partitions that is not below a number, or else all partitions.

    >>> divisor(12, 3.5), divisor(7, 2), divisor(4, 100)
    (4, 7, 4)
    """
    fits = [n for n in range(1, partitions + 1) if partitions % n == 0 and n >= least]
    return min(fits, default=partitions)


def fitted(keyed_cores: float, cores: float, partitions: int | None = None) -> tuple[int, int]:
    """Partitions and shards for jobs that need so many cores.

    Powers of two, as one can double them later; twice as many partitions as shards, so that the shards can be doubled
    without new partitions. One shard is one task, so it uses one core at most.

    Args:
        keyed_cores: Cores that the busiest job with state needs.
        cores: Cores that the busiest job needs.
        partitions: Number of partitions that is given; ``None``: one that fits.

    Returns:
        (partitions, shards).

    Raises:
        NewnormalError: ``PLAN_INVALID`` if the number that is given is not from 1 to `MOST`.

    >>> fitted(2.5, 3.0), fitted(2.5, 3.0, 12)
    ((8, 4), (12, 3))
    """
    if partitions is None:
        shards = min(MOST, max(2, power_of_two(keyed_cores)))
        return min(MOST, max(2 * shards, power_of_two(cores))), shards
    if not 1 <= partitions <= MOST:
        accepted = f"a whole number from 1 to {MOST}"
        raise NewnormalError("PLAN_INVALID", f"{partitions} cannot be used", "--partitions", accepted)
    return partitions, divisor(partitions, keyed_cores)

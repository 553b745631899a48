"""The wall clock of a time zone. Pure: the instant is always given."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

from models.kernels import kernel
from models.numbers.arrays import Ints

_QUARTER = 900_000
_EARLIEST, _LATEST = -62_000_000_000_000 // _QUARTER, 253_000_000_000_000 // _QUARTER


@lru_cache(maxsize=4096)
def _offset(zone: str, quarter: int) -> int:
    """Milliseconds that the zone is ahead of UTC; zones change only at whole quarters of an hour."""
    when = datetime.fromtimestamp(min(max(quarter, _EARLIEST), _LATEST) * 900, UTC).astimezone(ZoneInfo(zone))
    offset = when.utcoffset()
    return round(offset.total_seconds() * 1000) if offset else 0


def local_ms(time: Ints, zone: str = "UTC") -> Ints:
    """Milliseconds on the wall clock of the zone, as if it were an epoch.

    Args:
        time: Epoch milliseconds, shape (n,).
        zone: IANA name of the time zone.
    """
    if zone == "UTC":
        return time
    quarters, index = np.unique(time // _QUARTER, return_inverse=True)
    return time + np.array([_offset(zone, int(q)) for q in quarters], dtype=np.int64)[index]


@kernel
def is_weekend(local: int) -> bool:
    """Whether it is Saturday or Sunday; of wall clock milliseconds, as from `local_ms`.

    >>> is_weekend(1784289600000), is_weekend(1784376000000)  # Friday, 2026-07-17, and Saturday
    (False, True)
    """
    return (local // 86_400_000 + 3) % 7 >= 5

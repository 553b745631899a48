"""Allowed lateness: for how long a window stays open for late records after the watermark has passed its end."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.spec.duration import END_OF_TIME, NEVER


def closed_until(watermark: int, allowed_lateness: int) -> int:
    """Windows that end up to this instant are closed for good: a record that lies in no other window is too late.

    Args:
        watermark: The watermark before the record's micro-batch, epoch milliseconds.
        allowed_lateness: Milliseconds for which a window stays open after the watermark has passed its end.

    >>> closed_until(100_000, 60_000), closed_until(END_OF_TIME, 60_000) == END_OF_TIME
    (40000, True)
    """
    return END_OF_TIME if watermark == END_OF_TIME else max(NEVER, watermark - allowed_lateness)


def all_closed_until(watermarks: npt.NDArray[np.int64], allowed_lateness: int) -> npt.NDArray[np.int64]:
    """`closed_until` of several watermarks.

    >>> all_closed_until(np.array([NEVER, 100_000, END_OF_TIME]), 60_000).tolist() == [NEVER, 40_000, END_OF_TIME]
    True
    """
    earlier = np.maximum(watermarks, NEVER + allowed_lateness) - allowed_lateness
    return np.where(watermarks == END_OF_TIME, END_OF_TIME, earlier)

"""Which event times are accepted, and what is probably wrong with others: a wrong clock, or another unit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.spec.duration import DurationField, epoch_ms, iso

_UNITS = {"seconds": 1_000, "microseconds": 1e-3, "nanoseconds": 1e-6}
"""Other units of epoch times, and their length in milliseconds."""

_2000, _2100 = 946_684_800_000, 4_102_444_800_000


def other_unit(time: float, earliest: int = _2000, latest: int = _2100) -> str | None:
    """The hint for an epoch time that is plausible only in another unit than milliseconds; ``None`` if it is not.

    Args:
        time: The time as given.
        earliest: The earliest plausible time, epoch milliseconds.
        latest: The latest plausible time, epoch milliseconds.

    >>> other_unit(1_700_000_000), other_unit(1_700_000_000_000)
    ('looks like seconds; epoch milliseconds are expected', None)
    """
    if not earliest <= time <= latest:
        for unit, milliseconds in _UNITS.items():
            if earliest <= time * milliseconds <= latest:
                return f"looks like {unit}; epoch milliseconds are expected"
    return None


@dataclass(frozen=True)
class TimeBounds:
    """Which event times are accepted: a wrong clock must not push the watermark.

    Args:
        max_ahead: How far an event time may lie after the arrival of its message at Kafka.
        earliest: Earlier times are refused: their clock must be wrong.
    """

    max_ahead: DurationField = DurationField("max_ahead", "1m")
    earliest: str = "2000-01-01T00:00:00Z"

    def ahead(self, times: npt.NDArray[np.int64], arrived: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which times lie too far after their arrival; both in epoch milliseconds, shape (n,)."""
        result: npt.NDArray[np.bool_] = times > arrived + self.max_ahead
        return result

    def early(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which times, epoch milliseconds of shape (n,), lie before the earliest accepted time."""
        result: npt.NDArray[np.bool_] = times < epoch_ms(self.earliest)
        return result

    def refusal(self, time: int, arrived: int, name: str) -> tuple[str, str] | None:
        """Code and reason if a time is refused (``TIME_UNIT``, ``TIME_AHEAD`` or ``TIME_TOO_EARLY``), else ``None``.

        Args:
            time: Epoch milliseconds, as given.
            arrived: When the message arrived at Kafka, epoch milliseconds.
            name: The field's name, for the reason.

        >>> TimeBounds().refusal(1_700_000_000, 1_700_000_000_500, "time")
        ('TIME_UNIT', 'time = 1700000000 looks like seconds; epoch milliseconds are expected')
        """
        latest, earliest = arrived + self.max_ahead, epoch_ms(self.earliest)
        if earliest <= time <= latest:
            return None
        if hint := other_unit(time, earliest, latest):
            return "TIME_UNIT", f"{name} = {time} {hint}"
        if time > latest:
            ahead = f"lies more than {self.max_ahead} ahead of its arrival"
            return "TIME_AHEAD", f"{name} = {_when(time)} {ahead}: a wrong clock"
        return "TIME_TOO_EARLY", f"{name} = {_when(time)} lies before {self.earliest}: a wrong clock"


def _when(ms: int) -> str:
    try:
        return iso(ms)
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"

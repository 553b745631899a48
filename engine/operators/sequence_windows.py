"""Count windows and delta windows: the sequence of a key's records decides where a window ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.columns.arrays import Ints
from engine.operators.turn import Turn
from engine.spec.duration import DurationField
from engine.spec.errors import NewnormalError

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class SequenceWindows(ABC):
    """Windows of a key that follow one another: the first record after a window has closed opens the next window.

    Args:
        timeout: A window closes at the latest so long after its first record; empty: no timeout. At the end of all
            input an open window closes a millisecond after its last record.
    """

    timeout: DurationField = DurationField("timeout", "", empty=True)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the records that decide the windows."""
        return ()

    @property
    def timeout_ms(self) -> int:
        """`timeout` in milliseconds; 0: never."""
        return int(self.timeout)

    @abstractmethod
    def breaks(self, turn: Turn) -> Mask:
        """For each row, whether its record closes the open window and opens another."""

    @abstractmethod
    def full(self, n: Ints) -> Mask:
        """For each row, whether the window closes with this record, its ``n``-th."""

    @abstractmethod
    def value(self, turn: Turn) -> npt.NDArray[np.float64]:
        """The value that is kept of the first record of a window that has one; NaN if nothing is kept."""


@dataclass(frozen=True)
class CountWindows(SequenceWindows):
    """Windows of ``size`` records, which span [first time, last time + 1 ms), or end at the timeout."""

    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise NewnormalError("WINDOW_INVALID", f"{self.size} records", "CountWindows", "1 or more", "no job")

    def breaks(self, turn: Turn) -> Mask:
        return np.zeros(len(turn), bool)

    def full(self, n: Ints) -> Mask:
        return n >= self.size

    def value(self, turn: Turn) -> npt.NDArray[np.float64]:
        return np.full(len(turn), np.nan)


@dataclass(frozen=True)
class DeltaWindows(SequenceWindows):
    """A new window begins when a value differs by more than a threshold from the first value of the window.

    A window ends at the time of the record that opens the next one. A record without a value differs from nothing: it
    counts in the window that is open, or opens one if there is none.
    """

    column: str
    threshold: float

    def __post_init__(self) -> None:
        if not self.threshold >= 0:
            raise NewnormalError("WINDOW_INVALID", f"threshold {self.threshold}", "DeltaWindows", "0 or more", "no job")

    @property
    def names(self) -> tuple[str, ...]:
        """The column of the value."""
        return (self.column,)

    def breaks(self, turn: Turn) -> Mask:
        return np.asarray(np.abs(self.value(turn) - turn.state["first"]) > self.threshold)

    def full(self, n: Ints) -> Mask:
        return np.zeros(len(n), bool)

    def value(self, turn: Turn) -> npt.NDArray[np.float64]:
        return turn[self.column].astype(np.float64)

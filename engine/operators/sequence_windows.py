"""Windows that the sequence of a key's records decides: by count, or by how far a value has moved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.columns.arrays import Ints
from engine.operators.turn import Turn
from engine.spec.duration import DurationField

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class SequenceWindows(ABC):
    """Windows of a key, one after the other: the first record after one has closed opens the next.

    Args:
        timeout: A window closes so long after its first record at the latest; empty: never. At the end of all input
            what is open closes just after its last record.
    """

    timeout: DurationField = DurationField("timeout", "", empty=True)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the records that they go by."""
        return ()

    @property
    def timeout_ms(self) -> int:
        """`timeout` in milliseconds; 0: never."""
        return int(self.timeout)

    @abstractmethod
    def breaks(self, turn: Turn) -> Mask:
        """Rows whose record closes the window that is open, and opens another."""

    @abstractmethod
    def full(self, n: Ints) -> Mask:
        """Rows whose window closes with its record, which is the ``n``-th."""

    @abstractmethod
    def value(self, turn: Turn) -> npt.NDArray[np.float64]:
        """What is kept of a window's first record that has it; NaN for nothing."""


@dataclass(frozen=True)
class CountWindows(SequenceWindows):
    """Windows of ``size`` records; [first time, last time + 1 ms), or up to the timeout."""

    size: int

    def breaks(self, turn: Turn) -> Mask:
        return np.zeros(len(turn), bool)

    def full(self, n: Ints) -> Mask:
        return n >= self.size

    def value(self, turn: Turn) -> npt.NDArray[np.float64]:
        return np.full(len(turn), np.nan)


@dataclass(frozen=True)
class DeltaWindows(SequenceWindows):
    """A new window when a value has moved by more than a threshold from the first one of its window.

    The window ends at the time of the record that opens the next. A missing value moves nothing.
    """

    column: str
    threshold: float

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

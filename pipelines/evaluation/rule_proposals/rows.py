"""The alarms among which something in common is looked for, as sets of bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
FALSE, TRUE, OTHER = "false_alarm", "true", "other"


@dataclass(frozen=True)
class Cover:
    """What a condition holds for, each as bits of an integer.

    Attributes:
        false: The false alarms of which it holds for every window: a rule with this condition removes them.
        true: The windows of true alarms for which it holds: a rule must remove none of them.
        others: The alarms without a label of which it holds for every window.
    """

    false: int
    true: int
    others: int

    def __and__(self, other: Cover) -> Cover:
        return Cover(self.false & other.false, self.true & other.true, self.others & other.others)


class Rows:
    """Windows that were alarms.

    Args:
        windows: A row for each window: ``alarm`` (which windows are one alarm), ``label`` (`FALSE`, `TRUE` or `OTHER`),
            ``entity``, ``metric``, ``window_start`` (epoch milliseconds), ``actual`` and ``typical`` (perhaps null).
    """

    def __init__(self, windows: pl.DataFrame) -> None:
        self.windows = windows.sort("alarm", "window_start")
        label = self.windows["label"]
        self._true = (label == TRUE).to_numpy()
        self._first = np.flatnonzero(np.diff(self.windows["alarm"].to_numpy(), prepend=-1))
        of_alarm = label.gather(self._first)
        self._false, self._others = ((of_alarm == each).to_numpy() for each in (FALSE, OTHER))

    def cover(self, flags: Flags) -> Cover:
        """What a condition holds for.

        Args:
            flags: For each of `windows` whether it holds, shape (n,).
        """
        whole = np.logical_and.reduceat(flags, self._first)
        return Cover(_bits(whole[self._false]), _bits(flags[self._true]), _bits(whole[self._others]))

    def days(self) -> list[int]:
        """The day of each false alarm, in the order of their bits."""
        begin = self.windows["window_start"].gather(self._first).to_numpy()
        return [int(at) // 86_400_000 for at in begin[self._false]]


def _bits(flags: Flags) -> int:
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def positions(bits: int) -> list[int]:
    """Which bits of an integer are set.

    >>> positions(0b1101)
    [0, 2, 3]
    """
    return [at for at, bit in enumerate(reversed(bin(bits)[2:])) if bit == "1"]

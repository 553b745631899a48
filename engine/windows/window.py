"""The base of all windows: from the times of records to the spans in which they lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from engine.spec.duration import Duration
from engine.spec.errors import NewnormalError

Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Spans:
    """The windows of some records: row ``rows[i]`` lies in [``starts[i]``, ``ends[i]``). All arrays have one length."""

    rows: npt.NDArray[np.int64]
    starts: Times
    ends: Times


class Window(ABC):
    """A kind of window.

    Attributes:
        merges: Whether overlapping spans of one key are merged into one window (sessions).
    """

    merges: ClassVar[bool] = False

    @abstractmethod
    def spans(self, times: Times) -> Spans:
        """The spans in which each record lies; ``times`` in epoch milliseconds."""


def positive(length: Duration, where: str) -> None:
    """Refuses a length of time that is not above 0.

    Raises:
        NewnormalError: ``WINDOW_INVALID``.
    """
    if length <= 0:
        raise NewnormalError("WINDOW_INVALID", f"{length} is no length of time", where, "a duration above 0, e.g. 10s")

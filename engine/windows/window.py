"""What a window is: from the time of a record to the spans it lies in, for one record and for a whole column."""

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
    """Windows of some records: row ``rows[i]`` lies in [``starts[i]``, ``ends[i]``); arrays of one length."""

    rows: npt.NDArray[np.int64]
    starts: Times
    ends: Times


class Window(ABC):
    """A kind of window.

    Attributes:
        merges: Whether spans of one key that overlap are one window.
    """

    merges: ClassVar[bool] = False

    @abstractmethod
    def spans(self, times: Times) -> Spans:
        """The spans of each of some records."""


def positive(length: Duration, where: str) -> None:
    """Refuses a length that is not above 0.

    Raises:
        NewnormalError: ``WINDOW_INVALID``.
    """
    if length <= 0:
        raise NewnormalError("WINDOW_INVALID", f"{length} is no length of time", where, "a duration above 0, e.g. 10s")

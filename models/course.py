"""Where an incident stands: it is open from the first verdict that tells of it until one says that it is over."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from models.arrays import Flags, Ints
from models.evidence.repeats import Unrest
from models.verdicts import Kind


class Course(StrEnum):
    """Where an incident stands that has been told of; its code in arrays is its place here."""

    NONE = ""
    OPEN = "open"
    CLOSED = "closed"

    @property
    def code(self) -> int:
        """The number that stands for it in `Verdicts.incident`."""
        return list(Course).index(self)


def by_unrest(threshold: float, unrest: Unrest, kind: Ints, told: Flags) -> tuple[Ints, Ints]:
    """Kinds, and where incidents stand, of steps that are judged by their unrest alone.

    Args:
        threshold: record_score from which an unrest is told of.
        unrest: What the steps made of it.
        kind: Codes of `Kind` by the steps' own evidence, shape (n,).
        told: Whether anything is told of the step, shape (n,).
    """
    goes_on, over = unrest.worst >= threshold, unrest.over >= threshold
    accepted = told & (unrest.accepted >= threshold)
    kind = np.where(told & over & ~goes_on & (kind == Kind.NORMAL.code), Kind.RECOVERED.code, kind)
    kind = np.where(accepted, Kind.NEW_NORMAL.code, kind)
    closed = told & (accepted | (over & ~goes_on))
    return kind, np.select([closed, told & goes_on], [Course.CLOSED.code, Course.OPEN.code], Course.NONE.code)

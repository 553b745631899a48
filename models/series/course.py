"""Where an incident stands: it is open from the first verdict that tells of it until one says that it is over."""

from __future__ import annotations

from enum import StrEnum

from models.evidence.repeats import Unrest
from models.evidence.score import is_alarm
from models.kernels import kernel
from models.verdicts import Kind


class Course(StrEnum):
    """Where an incident stands that has been reported; its code in arrays is its place here."""

    NONE = ""
    OPEN = "open"
    CLOSED = "closed"

    @property
    def code(self) -> int:
        """The number that stands for it in `Verdicts.incident`."""
        return list(Course).index(self)


_NORMAL, _RECOVERED, _NEW_NORMAL = Kind.NORMAL.code, Kind.RECOVERED.code, Kind.NEW_NORMAL.code
_NONE, _OPEN, _CLOSED = Course.NONE.code, Course.OPEN.code, Course.CLOSED.code


@kernel
def course_of(threshold: float, unrest: Unrest, kind: int, reported: bool) -> tuple[int, int]:
    """The kind, and where the incident stands, of a step that is judged by its unrest alone.

    Args:
        threshold: record_score from which an unrest is reported.
        unrest: What the step made of it.
        kind: Code of `Kind` by the step's own evidence.
        reported: Whether the step can be news at all.

    >>> course_of(50.0, Unrest(worst=10.0, over=60.0, accepted=0.0, quiet=6.0), 0, True)  # recovered, closed
    (6, 2)
    """
    goes_on, over = is_alarm(unrest.worst, threshold), is_alarm(unrest.over, threshold)
    if not reported:
        return kind, _NONE
    if is_alarm(unrest.accepted, threshold):
        return _NEW_NORMAL, _CLOSED
    if over and not goes_on:
        return (_RECOVERED if kind == _NORMAL else kind), _CLOSED
    return kind, (_OPEN if goes_on else _NONE)

"""What a message says of the place of one machine, or of its end, and when it said so."""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple

from engine.spec.record import Instant, Keyword, Record

LONGEST = 512
"""The most characters of a name, as in `Placement`; a longer one is left out."""

SLOT = 10_000
"""Milliseconds to which times are rounded down: what a machine says again within one slot is said once."""

Condition = Literal["ended", "ending", "cordoned", "schedulable"]
"""What a gauge of Kubernetes says of a pod, a job or a node, each time that it is asked."""


class Fact(NamedTuple):
    """What is said of a machine at once; ``None``: nothing of that.

    Attributes:
        entity: The machine, or a workload that calls others.
        parent: What it runs on.
        workload: What it is a replica of.
        callee: A machine or a workload that it calls.
        condition: In which condition it is: it has ended on purpose, is being ended, is cordoned, or is not.
        seen: When it is to have ended, if it is being ended, epoch milliseconds.
    """

    entity: str
    parent: str | None = None
    workload: str | None = None
    callee: str | None = None
    condition: Condition | None = None
    seen: int | None = None

    @property
    def is_sound(self) -> bool:
        """Whether it says something that a placement or a change can hold.

        >>> Fact("a", "b").is_sound, Fact("a", "a").is_sound, Fact("a").is_sound, Fact("", "b").is_sound
        (True, False, False, False)
        """
        others = [name for name in self[1:-1] if name is not None]
        unlike = self.entity not in (self.parent, self.callee)
        return bool(others) and unlike and all(0 < len(name) <= LONGEST for name in (self.entity, *others))


class Sighting(Record):
    """A fact at an event time, as the jobs `calls` and `places` pass it on; the fields of `Fact` come first."""

    identity: ClassVar[tuple[str, ...]] = ("entity",)

    entity: Keyword
    parent: Keyword | None = None
    workload: Keyword | None = None
    callee: Keyword | None = None
    condition: Keyword | None = None
    seen: Instant | None = None
    """Of a call: when the trace began. It is told by the job `calls`, for which no other input waits. Of what is being
    ended: when it is to have ended."""
    time: Instant

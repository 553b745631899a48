"""Triggers made of other triggers."""

from __future__ import annotations

from dataclasses import dataclass

from engine.spec.errors import NewnormalError
from engine.triggers.trigger import Trigger


@dataclass(frozen=True)
class CompositeTrigger(Trigger):
    """A trigger made of other triggers.

    Raises:
        NewnormalError: ``TRIGGER_INVALID`` if there are none.
    """

    triggers: tuple[Trigger, ...]

    def __init__(self, *triggers: Trigger) -> None:
        if not triggers:
            raise NewnormalError("TRIGGER_INVALID", f"{type(self).__name__} of nothing", "trigger", "1 trigger or more")
        object.__setattr__(self, "triggers", triggers)

    @property
    def parts(self) -> tuple[Trigger, ...]:
        """The triggers."""
        return self.triggers


class AfterAny(CompositeTrigger):
    """Fires when one of its triggers is ready."""


class AfterAll(CompositeTrigger):
    """Fires when all of its triggers are ready; a trigger that was ready stays ready until the window fires.

    As the end of an `OrFinally`, whose counts go on when the window fires, such a trigger stays ready for good.
    """


class AfterEach(CompositeTrigger):
    """Fires as its first trigger, after that has fired as its second, and so on; the last one stays in force.

    An `OrFinally` has its turn until its end is ready; all other triggers have it until they have fired once.
    """


@dataclass(frozen=True)
class OrFinally(Trigger):
    """Fires as ``trigger`` does and, for the last time, when ``end`` is ready.

    Counts and times of ``end`` start when the `OrFinally` begins, not when the window last fired.
    """

    trigger: Trigger
    end: Trigger

    @property
    def parts(self) -> tuple[Trigger, ...]:
        """The trigger and its end."""
        return self.trigger, self.end

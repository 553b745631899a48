"""Triggers made of others."""

from __future__ import annotations

from dataclasses import dataclass

from engine.spec.errors import NewnormalError
from engine.triggers.trigger import Trigger


@dataclass(frozen=True)
class CompositeTrigger(Trigger):
    """A trigger made of others.

    Raises:
        NewnormalError: ``TRIGGER_INVALID`` without any.
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
    """When one of them is ready."""


class AfterAll(CompositeTrigger):
    """When all of them are ready; one that was ready stays so until the window fires.

    As the end of an `OrFinally`, whose counts go on when the window fires, it stays so for good.
    """


class AfterEach(CompositeTrigger):
    """The first one, once it has fired the second one, and so on; the last one stays for the life of the window.

    An `OrFinally` has its turn until its end, all others until they have fired once.
    """


@dataclass(frozen=True)
class OrFinally(Trigger):
    """Fires as ``trigger`` does and, for the last time, when ``end`` is ready; after that no more.

    ``end`` counts and times from when the `OrFinally` began, not from when the window last fired.
    """

    trigger: Trigger
    end: Trigger

    @property
    def parts(self) -> tuple[Trigger, ...]:
        """The trigger and its end."""
        return self.trigger, self.end

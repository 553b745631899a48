"""Triggers, which say when a window fires, and accumulation, which says how its panes relate.

The names are those of Apache Beam, with one difference: here a trigger fires again and again, as if each were wrapped
in Beam's ``Repeatedly``, which therefore does not exist. `AfterEach` lets each of its triggers fire once; `OrFinally`
ends a trigger.
"""

from engine.triggers.accumulation import ACCUMULATING, Accumulating, AccumulatingAndRetracting, Accumulation, Discarding
from engine.triggers.atoms import AfterCount, AfterProcessingTime, AfterWatermark, Never
from engine.triggers.composite import AfterAll, AfterAny, AfterEach, OrFinally
from engine.triggers.trigger import CustomTrigger, Trigger

__all__ = [
    "ACCUMULATING",
    "Accumulating",
    "AccumulatingAndRetracting",
    "Accumulation",
    "AfterAll",
    "AfterAny",
    "AfterCount",
    "AfterEach",
    "AfterProcessingTime",
    "AfterWatermark",
    "CustomTrigger",
    "Discarding",
    "Never",
    "OrFinally",
    "Trigger",
]

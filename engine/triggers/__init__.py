"""When a window gives a result, and what its results after the first one are."""

from engine.triggers.accumulation import ACCUMULATING, Accumulating, AccumulatingAndRetracting, Accumulation, Discarding
from engine.triggers.atoms import AfterCount, AfterWatermark, Every, Never
from engine.triggers.base import Custom, Trigger
from engine.triggers.composite import AllOf, AnyOf, InOrder, Until

__all__ = [
    "ACCUMULATING",
    "Accumulating",
    "AccumulatingAndRetracting",
    "Accumulation",
    "AfterCount",
    "AfterWatermark",
    "AllOf",
    "AnyOf",
    "Custom",
    "Discarding",
    "Every",
    "InOrder",
    "Never",
    "Trigger",
    "Until",
]

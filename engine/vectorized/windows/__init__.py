"""Windowed aggregation of one shard: from shared slices where that is possible, otherwise one row for each window."""

from engine.operators.windows import WindowAggregate
from engine.vectorized.processor import Processor
from engine.vectorized.windows.held_back import HeldBack
from engine.vectorized.windows.sliced import SlicedWindows
from engine.vectorized.windows.triggered import GeneralWindows


def window_processor(operator: WindowAggregate) -> Processor:
    """Chooses the logic for these windows."""
    return HeldBack(operator, SlicedWindows(operator) if operator.shared else GeneralWindows(operator))

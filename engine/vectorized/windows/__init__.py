"""Windowed aggregation of one shard: put together from shared slices where that is possible, else a row a window."""

from engine.operators.windows import WindowAggregate
from engine.vectorized.processor import Processor
from engine.vectorized.windows.sliced import SlicedWindows
from engine.vectorized.windows.triggered import GeneralWindows


def window_processor(operator: WindowAggregate) -> Processor:
    """The logic for these windows."""
    return SlicedWindows(operator) if operator.shared else GeneralWindows(operator)

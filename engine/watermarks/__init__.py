"""Watermarks: how far event time has come, decided from the log alone.

Each source partition has a clock of its own. The watermark is the minimum over the partitions that are not idle, so a
partition that lags, for example after an outage, loses nothing when it catches up. A strategy is what a job declares
about its input; the tracker is the logic, with the clocks of all partitions, which are kept in the operator's state.
"""

from engine.watermarks.clock import Marker, PartitionClock
from engine.watermarks.learned import LearnedLateness
from engine.watermarks.minimum import WatermarkTracker
from engine.watermarks.punctuated import Punctuated
from engine.watermarks.strategy import AscendingTimestamps, BoundedOutOfOrderness, Prompt, WatermarkStrategy

__all__ = [
    "AscendingTimestamps",
    "BoundedOutOfOrderness",
    "LearnedLateness",
    "Marker",
    "PartitionClock",
    "Prompt",
    "Punctuated",
    "WatermarkStrategy",
    "WatermarkTracker",
]

"""Watermarks: how far event time has come, decided from the log alone.

Each source partition has a clock of its own; the watermark is the minimum over the partitions that are not idle, so a
partition that lags, after an outage say, loses nothing when it catches up. Config and logic are apart: a strategy is
what a job declares, the tracker a table of partitions that lives in the operator's state.
"""

from engine.watermarks.clock import PartitionClock
from engine.watermarks.learned import LearnedLateness
from engine.watermarks.marker import Marker
from engine.watermarks.punctuated import Punctuated
from engine.watermarks.strategy import AscendingTimestamps, BoundedOutOfOrderness, Prompt, WatermarkStrategy
from engine.watermarks.tracker import WatermarkTracker

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

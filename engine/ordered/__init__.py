"""Operators in event-time order: records are held until the watermark has passed them, then applied in their order.

So results never depend on the order of arrival, on batches, partitions or shards. Records of one time are taken in
order of their values, column by column by name. A record behind the watermark is late.
"""

from engine.ordered.broadcast import Broadcast
from engine.ordered.callback import EachKey, KeyCallback, Timer
from engine.ordered.correlation import Correlation
from engine.ordered.deduplicate import Deduplicate
from engine.ordered.interval_join import IntervalJoin
from engine.ordered.pattern import Event, Pattern
from engine.ordered.process import Process
from engine.ordered.turn import NO_TIMER, Logic, Turn
from engine.ordered.window_join import WindowJoin
from engine.ordered.windows import CountWindows, DeltaWindows

__all__ = [
    "NO_TIMER",
    "Broadcast",
    "Correlation",
    "CountWindows",
    "Deduplicate",
    "DeltaWindows",
    "EachKey",
    "Event",
    "IntervalJoin",
    "KeyCallback",
    "Logic",
    "Pattern",
    "Process",
    "Timer",
    "Turn",
    "WindowJoin",
]

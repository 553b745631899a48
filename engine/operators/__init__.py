"""Operators in event-time order: records are held until the watermark has passed them, then applied in their order.

So results never depend on the order of arrival, on batches, partitions or shards. Records of one time are taken in
order of their values, column by column by name. A record behind the watermark is late.
"""

from engine.operators.broadcast import Broadcast
from engine.operators.callback import EachKey, KeyCallback, Timer, aside
from engine.operators.correlation import Correlation
from engine.operators.deduplicate import Deduplicate
from engine.operators.interval_join import IntervalJoin
from engine.operators.pattern import Event, Pattern
from engine.operators.process import Process
from engine.operators.sequence_windows import CountWindows, DeltaWindows
from engine.operators.turn import NO_TIMER, Logic, Turn
from engine.operators.window_join import WindowJoin

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
    "aside",
]

"""The specifications of all operators. Most of them work in event-time order.

An operator in event-time order holds each record until the watermark has passed it, and then applies the records in
order of event time; records of the same time are ordered by their values, column by column by name. So its results do
not depend on the order of arrival, on micro-batches, partitions or shards. A record older than the watermark is late.
"""

from engine.operators.broadcast import Broadcast
from engine.operators.callback import EachKey, KeyCallback, Timer, aside
from engine.operators.correlation import Correlation
from engine.operators.deduplicate import Deduplicate
from engine.operators.interval_join import IntervalJoin
from engine.operators.pattern import Event, Pattern
from engine.operators.process import Process
from engine.operators.sequence_windows import CountWindows, DeltaWindows
from engine.operators.temporal_join import TemporalJoin
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
    "TemporalJoin",
    "Timer",
    "Turn",
    "WindowJoin",
    "aside",
]

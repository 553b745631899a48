"""The reference of every operator: a program that defines what windows, watermarks and revisions mean.

It is slow and obvious on purpose: dicts and lists, one record at a time, everything kept for ever, no arrays, no Spark.
It imports specifications only, and has an implementation of watermarks of its own.
The file names are those of `engine.operators`. The sharded operator must give the same results; `tests/engine` compares
the two.
"""

from engine.operators.broadcast import Broadcast
from engine.operators.chain import Chain, PassThrough, Transform
from engine.operators.correlation import Correlation
from engine.operators.deduplicate import Deduplicate
from engine.operators.interval_join import IntervalJoin
from engine.operators.pattern import Pattern
from engine.operators.process import Process
from engine.operators.sequence_aggregate import SequenceAggregate
from engine.operators.temporal_join import TemporalJoin
from engine.operators.window_join import WindowJoin
from engine.operators.windows import WindowAggregate
from engine.reference.broadcast import BroadcastReference
from engine.reference.chain import ChainReference, PassThroughReference, TransformReference
from engine.reference.correlation import CorrelationReference
from engine.reference.deduplicate import DeduplicateReference
from engine.reference.entries import Arrival, Entry, Heartbeat, Watermark
from engine.reference.interpreter import Outcome, interpret, step_by_step
from engine.reference.interval_join import IntervalJoinReference
from engine.reference.meaning import Reference
from engine.reference.of import reference
from engine.reference.pattern import PatternReference
from engine.reference.process import ProcessReference
from engine.reference.sequence_aggregate import SequenceAggregateReference
from engine.reference.temporal_join import TemporalJoinReference
from engine.reference.window_join import WindowJoinReference
from engine.reference.windows import WindowAggregateReference
from engine.spec.operator import Row

reference.register(Broadcast, BroadcastReference)
reference.register(Chain, ChainReference)
reference.register(Correlation, CorrelationReference)
reference.register(Deduplicate, DeduplicateReference)
reference.register(IntervalJoin, IntervalJoinReference)
reference.register(PassThrough, PassThroughReference)
reference.register(Pattern, PatternReference)
reference.register(Process, ProcessReference)
reference.register(SequenceAggregate, SequenceAggregateReference)
reference.register(TemporalJoin, TemporalJoinReference)
reference.register(Transform, TransformReference)
reference.register(WindowAggregate, WindowAggregateReference)
reference.register(WindowJoin, WindowJoinReference)

__all__ = [
    "Arrival",
    "Entry",
    "Heartbeat",
    "Outcome",
    "Reference",
    "Row",
    "Watermark",
    "interpret",
    "reference",
    "step_by_step",
]

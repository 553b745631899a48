"""The operators as they run: their logic over columns, for all keys of a shard; file names as in `engine.operators`."""

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
from engine.vectorized.broadcast import BroadcastProcessor
from engine.vectorized.build import build
from engine.vectorized.chain import ChainedProcessors, PassThroughProcessor, TransformProcessor
from engine.vectorized.correlation import CorrelationProcessor
from engine.vectorized.deduplicate import DeduplicateProcessor
from engine.vectorized.interval_join import IntervalJoinProcessor
from engine.vectorized.pattern import PatternProcessor
from engine.vectorized.process import ProcessProcessor
from engine.vectorized.processor import Processor, Results, StateCounts
from engine.vectorized.sequence_aggregate import SequenceAggregateProcessor
from engine.vectorized.temporal_join import TemporalJoinProcessor
from engine.vectorized.window_join import WindowJoinProcessor
from engine.vectorized.windows import window_processor

build.register(Broadcast, BroadcastProcessor)
build.register(Chain, ChainedProcessors)
build.register(Correlation, CorrelationProcessor)
build.register(Deduplicate, DeduplicateProcessor)
build.register(IntervalJoin, IntervalJoinProcessor)
build.register(PassThrough, PassThroughProcessor)
build.register(Pattern, PatternProcessor)
build.register(Process, ProcessProcessor)
build.register(SequenceAggregate, SequenceAggregateProcessor)
build.register(TemporalJoin, TemporalJoinProcessor)
build.register(Transform, TransformProcessor)
build.register(WindowAggregate, window_processor)
build.register(WindowJoin, WindowJoinProcessor)

__all__ = ["Processor", "Results", "StateCounts", "build"]

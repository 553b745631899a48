"""A job as an immutable value, which `engine.stream.Stream` builds: what is read, computed and written."""

from __future__ import annotations

from dataclasses import dataclass

from engine.spec import late_topic
from engine.spec.inputs import checked
from engine.spec.operator import Operator
from engine.spec.output import Output
from engine.spec.source import Source, TimeDomain


@dataclass(frozen=True)
class Job:
    """A whole job.

    Raises:
        NewnormalError: ``INPUTS_CLASH`` if its inputs cannot be read together, ``LATE_MISFIT`` if the
            late topic's record type does not fit what may come too late.
    """

    name: str
    inputs: tuple[Source, ...]
    key: tuple[str, ...]
    processor: Operator
    output: Output
    dead: Output
    late: Output | None = None

    def __post_init__(self) -> None:
        checked(self.inputs)
        late_topic.check(self.name, self.late, self.processor.late_forms([s.columns() for s in self.inputs]))

    @property
    def source(self) -> Source:
        """The first input; for most jobs the only one."""
        return self.inputs[0]

    @property
    def time(self) -> str:
        """The column of the time that the job works on."""
        return self.source.time

    @property
    def clock(self) -> TimeDomain:
        """Which time that is."""
        return self.source.clock

    @property
    def topics(self) -> list[str]:
        """All topics that are read."""
        return list(dict.fromkeys(topic for source in self.inputs for topic in source.formats))

    @property
    def broadcast(self) -> frozenset[str]:
        """The topics whose messages concern all shards."""
        return frozenset(topic for source in self.inputs if source.broadcast for topic in source.formats)

    def direct(self, shards: int) -> bool:
        """Whether messages of all inputs go to their shard as they are: broadcast, or partitioned by the first key."""
        keyed = [source for source in self.inputs if not source.broadcast]
        by_key = all(source.record.identity[:1] == self.key[:1] and source.direct(shards) for source in keyed)
        return by_key and all(self.broadcast.isdisjoint(source.formats) for source in keyed)

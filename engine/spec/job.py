"""A job as an immutable value, which `engine.stream.Stream` builds: what is read, computed and written."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.spec.columns import require
from engine.spec.errors import NewnormalError
from engine.spec.inputs import check_key, checked, schema
from engine.spec.operator import Operator
from engine.spec.output import Output, Side
from engine.spec.output_fit import check_late, check_results
from engine.spec.record import check_instants
from engine.spec.source import Source, TimeDomain
from engine.spec.steps import Where, after

_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")


@dataclass(frozen=True)
class Job:
    """A complete job.

    Raises:
        NewnormalError: ``NAME_INVALID``; ``INPUTS_CLASH`` if its inputs cannot be read together; ``KEY_MISSING``,
            ``KEY_INVALID`` or ``COLUMN_UNKNOWN`` if the key does not fit them; ``OUTPUT_MISFIT`` if a record type does
            not fit the results; ``LATE_MISFIT`` if the record type of the late topic does not fit records that may be
            late; ``OUTPUT_DOUBLED`` if two outputs share a name or topic.
    """

    name: str
    inputs: tuple[Source, ...]
    key: tuple[str, ...]
    processor: Operator
    output: Output
    dead: Output
    late: Output | None = None
    side: tuple[Side, ...] = ()

    def __post_init__(self) -> None:
        for name in (self.name, *self.topics, *(output.topic for output in self.outputs)):
            if not _NAME.fullmatch(name):
                accepted = "letters, digits, dots, _ and -, at most 200 of them"
                raise NewnormalError("NAME_INVALID", f"{name!r} is no name", f"job {self.name}", accepted, "no job")
        checked(self.inputs)
        for source in self.inputs:
            require([source.time], source.columns(), f"the event time of job {self.name}")
            check_instants(source.columns(), source.time, f"the event time of job {self.name}")
        check_key(self.inputs, self.key)
        columns = schema(self.inputs)
        results, time = self.processor.results(columns), self.processor.result_time(self.time)
        for output in (self.output, *(side.output for side in self.side if side.where)):
            check_results(self.name, output, results, time)
        for side in self.side:
            if side.where and results is not None:
                after([Where(side.where)], results, f"side output {side.name} of job {self.name}")
        topics = [output.topic for output in self.outputs]
        read = {topic for source in self.inputs if source.holds for topic in source.formats}
        if circle := sorted(read & set(topics)):
            what = f"the job writes {', '.join(circle)}, which it reads"
            accepted = "another topic; or loop(Source(...)), which reads what the job itself writes"
            raise NewnormalError("OUTPUT_READ", what, f"outputs of job {self.name}", accepted, "no job")
        names = [side.name for side in self.side]
        if doubled := {name for name in topics if topics.count(name) > 1} | {n for n in names if names.count(n) > 1}:
            what = ", ".join(sorted(doubled))
            raise NewnormalError("OUTPUT_DOUBLED", what, f"outputs of job {self.name}", "a topic each", "no job")
        check_late(self.name, self.late, self.processor.late_forms([s.columns() for s in self.inputs]))

    @property
    def outputs(self) -> list[Output]:
        """All outputs: the main one, the side outputs, the late topic, the dead letters."""
        late = [self.late] if self.late else []
        return [self.output, *(side.output for side in self.side), *late, self.dead]

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
        """Which time the job works on: event, ingestion or processing time."""
        return self.source.clock

    @property
    def topics(self) -> list[str]:
        """All topics that the job reads."""
        return list(dict.fromkeys(topic for source in self.inputs for topic in source.formats))

    @property
    def broadcast(self) -> frozenset[str]:
        """The topics whose messages go to all shards."""
        return frozenset(topic for source in self.inputs if source.broadcast for topic in source.formats)

    @property
    def compacted(self) -> frozenset[str]:
        """The topics in which a message without a value deletes its key."""
        return frozenset(t for source in self.inputs for t, decoder in source.formats.items() if decoder.tombstones)

    def decides_in_log(self, source: Source) -> bool:
        """Whether the log of a record's own partition decides if a record of an input is too late.

        That is so in event time, where the input is partitioned by the first column of the key. Elsewhere the watermark
        of the shard decides.
        """
        return source.clock == "event" and source.holds and source.partitioned_by(self.key[0])

    def direct(self, shards: int) -> bool:
        """Whether messages go to their shard undecoded: inputs are broadcast or partitioned by the first key column."""
        keyed = [source for source in self.inputs if not source.broadcast]
        by_key = all(source.record.identity[:1] == self.key[:1] and source.direct(shards) for source in keyed)
        return by_key and all(self.broadcast.isdisjoint(source.formats) for source in keyed)

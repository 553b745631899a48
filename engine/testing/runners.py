"""Runs a job over a `TestStream`: by the specification, by the operator, or as if the input had ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from engine.job import Job
from engine.reference import interpret
from engine.state import DictSegments
from engine.testing.bounded import bounded
from engine.testing.driver import Driven
from engine.testing.stream import ABORT, RESTART, TestStream

Row = dict[str, Any]


@dataclass
class Run:
    """What a job made of a stream.

    Attributes:
        rows: Results, in the order they were written.
        late: Records that came too late.
        watermarks: The watermark after each micro-batch; none of a bounded run.
    """

    rows: list[Row] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)
    watermarks: list[int] = field(default_factory=list)

    def final(self, key: tuple[str, ...]) -> dict[tuple[Any, ...], Row]:
        """The last row of each window by key, start and end; not those taken back."""
        last: dict[tuple[Any, ...], Row] = {}
        for row in self.rows:
            name = (*(row[k] for k in key), row["window_start"], row["window_end"])
            if row.get("retraction"):
                last.pop(name, None)
            else:
                last[name] = row
        return last


def run(job: Job, stream: TestStream, on: str = "operator", shards: int = 1) -> Run:
    """Runs a job.

    Args:
        job: The job; ``source.formats`` has the stream's topic.
        stream: The input.
        on: ``"reference"``: the specification; ``"operator"``: the sharded operator with its codecs, state and
            partitions, as on Spark; ``"bounded"``: all records in event-time order, whatever the watermarks.
        shards: Number of shards.
    """
    return RUNNERS[on](job, stream, shards)


def _reference(job: Job, stream: TestStream, shards: int) -> Run:
    outcome = interpret(job, [batch.entries for batch in stream.batches])
    return Run(outcome.rows, outcome.late, outcome.watermarks)


def _operator(job: Job, stream: TestStream, shards: int) -> Run:
    driven = Driven(job, shards)
    for batch in stream.batches:
        if batch.then is ABORT:
            lost = Driven(job, shards, [_copy(state) for state in driven.states], offset=driven.offset)
            lost.run([batch.entries])
        driven.run([batch.entries])
        if batch.then is RESTART:
            driven.states = [_copy(state) for state in driven.states]
    return Run(driven.rows, driven.late, driven.watermarks)


def _bounded(job: Job, stream: TestStream, shards: int) -> Run:
    return Run(*bounded(job, stream.records(), shards))


def _copy(state: DictSegments) -> DictSegments:
    """What is left of a state when the process that held it is gone: bytes."""
    copy = DictSegments()
    copy.values = {name: bytes(value) for name, value in state.values.items()}
    return copy


RUNNERS: dict[str, Callable[[Job, TestStream, int], Run]] = {
    "reference": _reference,
    "operator": _operator,
    "bounded": _bounded,
}

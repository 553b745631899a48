"""Shared by the examples: sources, jobs, and playing records to jobs in the order of their arrival."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pydantic import create_model

from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.reference import Arrival, Heartbeat, Watermark
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.record import Keyword, Record
from engine.spec.source import Source
from engine.stream import Stream
from engine.testing import Driven
from engine.watermarks import BoundedOutOfOrderness

Row = dict[str, Any]
Came = tuple[int, str, Row]
"""Arrival time, topic, record."""
T0 = 1_700_000_000_000 // 60_000 * 60_000
"""Start of the examples, epoch milliseconds."""


def record(name: str, key: str, **columns: Any) -> type[Record]:
    """Makes a record type with a key column and further optional columns."""
    fields: dict[str, Any] = {key: (Keyword, ...)}
    fields |= {column: (kind | None, None) for column, kind in columns.items()}
    made: type[Record] = create_model(name, __base__=Record, **fields)
    made.identity = (key,)
    return made


def source(topic: str, record: type[Record], bound: str = "0s", time: str = "time") -> Source:
    """A source with one topic, whose records are out of order by at most ``bound``."""
    return Source({topic: ColumnarDecoder(record)}, record, time, watermark=BoundedOutOfOrderness(bound, "1d"))


def job(stream: Stream, result: type[Record], topic: str = "results") -> Job:
    """The stream as a job that writes a topic; late records are only counted."""
    return stream.write(topic, Output(topic, result), Output(f"{topic}.dead", DeadLetter, "json"))


@dataclass(frozen=True)
class Play:
    """A job and its input.

    Args:
        job: The job.
        records: The records from outside.
        every: Length of a micro-batch in arrival time, milliseconds, if no servers run.
        shards: Number of shards of the job, if no servers run.
        reads: Names of other plays, whose results the job reads from their topics.
        paced: Whether records are sent at the pace of their arrival, if servers run: early results need that.
    """

    job: Job
    records: tuple[Came, ...] | list[Came] = ()
    every: int = 2000
    shards: int = 2
    reads: tuple[str, ...] = ()
    paced: bool = False


Plays = Mapping[str, Play]
Results = dict[str, list[Row]]
Runner = Callable[[Plays], Results]
"""Runs plays and returns the results of each: here, or on Kafka through Spark (`engine.examples.live`)."""


def here(plays: Plays) -> Results:
    """Runs plays in this process, without servers, each after those that it reads."""
    results: Results = {}
    for name, current in plays.items():
        records = list(current.records)
        for other in current.reads:
            upstream = plays[other].job
            time = upstream.processor.result_time(upstream.time)
            records += [(row[time], upstream.output.topic, row) for row in results[other]]
        results[name] = play(current.job, records, current.every, current.shards)
    return results


def play(job: Job, records: Iterable[Came], every: int = 2000, shards: int = 2) -> list[Row]:
    """Runs a job over records as they arrive, in micro-batches of ``every`` ms; then the input has ended.

    Returns:
        The results in the order in which they were written.
    """
    driven = Driven(job, shards)
    came = sorted(records, key=lambda c: (c[0], c[1]))
    for tick, group in groupby(came, lambda c: c[0] // every):
        heartbeats = [Heartbeat(topic, 0, (tick + 1) * every) for topic in job.topics]
        driven.run([[*(Arrival(topic, 0, at, record) for at, topic, record in group), *heartbeats]])
    newest = max(at for at, _, _ in came) + 86_400_000
    driven.run([[Watermark(topic, 0, newest, newest) for topic in job.topics]])
    return driven.rows

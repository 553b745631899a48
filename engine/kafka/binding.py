"""Binds jobs to the topics of a broker: creates missing topics, and takes over their numbers of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from engine.kafka.admin import ensure_topics, partition_counts
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.source import Source

READ = {"message.timestamp.type": "LogAppendTime"}
"""Configuration of created input topics: the broker sets the arrival time, as the clock of a writer may be wrong."""

COMPACTED = {"cleanup.policy": "compact"}
"""Configuration of created input topics in which a message without a value deletes its key."""


def make_topics(bootstrap: str, jobs: Iterable[Job], partitions: int, replication: int = 1) -> list[str]:
    """Creates the missing topics that some jobs read and write; returns the created ones.

    Raises:
        NewnormalError: ``KAFKA_UNREACHABLE`` or ``TOPIC_NOT_CREATED``.
    """
    jobs = list(jobs)
    configs: dict[str, Mapping[str, Any]] = {output.topic: {} for job in jobs for output in job.outputs}
    configs |= {topic: READ for job in jobs for topic in job.topics}
    configs |= {topic: READ | COMPACTED for job in jobs for topic in job.compacted}
    return ensure_topics(bootstrap, configs, partitions, replication)


def bound(job: Job, bootstrap: str) -> Job:
    """The job with the numbers of partitions that its topics have.

    The watermark then waits for all partitions of the input, and all partitions of the output are used. Partitions that
    the job itself expects are left as they are.

    Raises:
        NewnormalError: ``KAFKA_UNREACHABLE``.
    """
    counts = partition_counts(bootstrap, [*job.topics, *(output.topic for output in job.outputs)])
    side = tuple(replace(side, output=_output(side.output, counts)) for side in job.side)
    return replace(
        job,
        inputs=tuple(_source(source, counts) for source in job.inputs),
        output=_output(job.output, counts),
        dead=_output(job.dead, counts),
        late=_output(job.late, counts) if job.late else None,
        side=side,
    )


def beating(job: Job) -> list[str]:
    """The topics that need heartbeats: those whose messages do not carry their writer's watermark.

    If a job works on ingestion or processing time, heartbeats advance its clock.
    """
    silent = [source for source in job.inputs if not source.columnar or source.clock != "event"]
    return [topic for source in silent for topic in source.formats]


def _source(source: Source, counts: Mapping[str, int]) -> Source:
    if source.watermark.expected:
        return source
    expected = tuple((topic, p) for topic in source.formats for p in range(counts.get(topic, 0)))
    return replace(source, watermark=replace(source.watermark, expected=expected))  # type: ignore[type-var]


def _output(output: Output, counts: Mapping[str, int]) -> Output:
    return replace(output, partitions=counts.get(output.topic, output.partitions))

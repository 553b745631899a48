"""The status of a running pipeline, which its driver fills and the live view, the console and `/metrics` show.

This module knows nothing of Spark, Kafka or Elasticsearch. All instants are UTC epoch milliseconds.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class JobStatus:
    """One job at one moment; totals count from its start.

    Attributes:
        name: The job: normalizer, extractor, detector, sink, …
        records_in: Records read.
        records_out: Records written.
        rate_in: Records per second read, lately.
        late: Records that came after the allowed lateness and went to the late topic.
        dead_lettered: Records that could not be handled and went to the dead-letter topic.
        lag: Kafka messages not read yet, over all input partitions; ``None`` if unknown.
        watermark: Event time up to which input is taken to be complete; ``None`` before the first.
        state_bytes: Size of the keyed state.
        keys: Keys (series, machines) in the state; this and the next two are ``None`` if the job does not count them.
        open_windows: Windows that have not ended.
        timers: Timers that have not fired.
        busiest_share: Share of the last micro-batch's records that went to the shard with most of them, 0 to 1.
        batch_ms: How long the last micro-batch took.
        last_error: Reason of its last restart after a failure; ``None`` if there was none.
        rate_out: Records per second written, lately.
        completed: When the last micro-batch was completed, and with it the checkpoint; ``None`` before the first.
    """

    name: str
    records_in: int = 0
    records_out: int = 0
    rate_in: float = 0.0
    late: int = 0
    dead_lettered: int = 0
    lag: int | None = None
    watermark: int | None = None
    state_bytes: int = 0
    keys: int | None = None
    open_windows: int | None = None
    timers: int | None = None
    busiest_share: float | None = None
    batch_ms: float = 0.0
    last_error: str | None = None
    rate_out: float = 0.0
    completed: int | None = None


@dataclass(frozen=True)
class Progress:
    """How far a replay has come.

    Attributes:
        version: The version that is computed.
        at: Event time up to which its results are complete; ``None`` before the first.
        share: Share of the log that was read, 0 to 1.
        rate: Records per second read, lately.
        seconds_left: Estimate of the time until the log is read; ``None`` if unknown.
    """

    version: str
    at: int | None
    share: float
    rate: float
    seconds_left: float | None


@dataclass(frozen=True)
class PipelineStatus:
    """All jobs at one moment.

    Attributes:
        started: When the pipeline started.
        jobs: Each job, in the order data flows.
        novelties: The newest novelties, newest first, as documents (JSON names).
        latency_ms: From the end of a window until a search finds its document: median of the documents of the last
            five minutes; ``None`` if there are none. The time in ``waits_ms`` is a part of it.
        waits_ms: How long each window waits for late records, by design: the watermark's bound.
        indexed: Documents stored in Elasticsearch since the start.
        stored: How often each kind of news was stored since the start; a revision that is news counts again.
        open: Series whose newest news is of each kind that is not over.
        problems: What keeps the pipeline from doing its work now, a sentence each; empty if all is well.
        progress: How far a replay has come; ``None`` if the pipeline replays nothing.
        incidents: The incidents that go on, the most severe first, then the last ones that are over, as documents;
            ``None`` if no job finds incidents.
    """

    started: int
    jobs: tuple[JobStatus, ...] = ()
    novelties: tuple[dict[str, Any], ...] = ()
    latency_ms: float | None = None
    indexed: int = 0
    stored: dict[str, int] = field(default_factory=dict)
    open: dict[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    progress: Progress | None = None
    incidents: tuple[dict[str, Any], ...] | None = None
    waits_ms: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON.

        >>> PipelineStatus(started=0, jobs=(JobStatus("sink", records_in=3),)).to_dict()["jobs"][0]["records_in"]
        3
        """
        return asdict(self)

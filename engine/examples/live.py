"""The examples on real servers: records go to Kafka, jobs run on Spark, results are read from topics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from engine.address import kafka_options
from engine.examples.kit import Play, Plays, Results
from engine.formats import columnar
from engine.kafka.admin import ensure_topics
from engine.kafka.content import content
from engine.spark.run import run
from engine.spec.duration import NEVER
from engine.spec.grid import ANYWHERE
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.record import Record
from engine.spec.source import Source

_LONGEST_SECONDS = 300
_DAY_MS = 86_400_000
_CLOSING_MS = 15_000
"""Processing time after the last record that closes its windows, milliseconds."""
_TOGETHER = 100


@dataclass
class Live:
    """Runs plays on Kafka through Spark, each as a job with topics of its own; made for one use.

    Each play gets its own copy of the records. If processing time matters, the records are sent at the pace of their
    arrival, otherwise as fast as possible.

    Args:
        kafka: ``host:port`` of a broker.
        state: Directory of the checkpoints.
        jars: Spark's Kafka connector.
        say: Function that is called with the progress.
    """

    kafka: str
    state: Path
    jars: Sequence[Path] = ()
    say: Callable[[str], None] = lambda _text: None
    prefix: str = field(default_factory=lambda: f"example.{time.time_ns() // 1_000_000}.")

    def __call__(self, plays: Plays) -> Results:
        """The results of each play.

        Raises:
            NewnormalError: ``QUERY_FAILED``, ``KAFKA_UNREACHABLE``.
            TimeoutError: The jobs did not come to the end of the records within five minutes.
        """
        jobs = {name: self._placed(name, each, plays) for name, each in plays.items()}
        feeding = threading.Thread(target=self._feed, args=(plays, jobs), daemon=True)
        deadline = time.monotonic() + _LONGEST_SECONDS

        def ended() -> bool:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the jobs did not end within {_LONGEST_SECONDS} s: {_doing()}")
            if not feeding.ident:
                self.say("the jobs run; the records are sent")
                feeding.start()
            return not feeding.is_alive() and all(self._is_over(job) for job in jobs.values())

        ensure_topics(self.kafka, {topic: {} for job in jobs.values() for topic in job.topics}, 1)
        run(*jobs.values(), kafka=self.kafka, state=self.state, jars=self.jars, partitions=1, until=ended)
        return {name: list(self._rows(job)) for name, job in jobs.items()}

    def _topic(self, name: str, topic: str, plays: Plays) -> str:
        """The topic that a play reads: the topic of another play, or one of its own."""
        upstream = next((other for other in plays[name].reads if plays[other].job.output.topic == topic), None)
        return f"{self.prefix}{upstream}" if upstream else f"{self.prefix}{name}.{topic}"

    def _placed(self, name: str, play: Play, plays: Plays) -> Job:
        """The job of a play, with the topics of this run."""

        def placed(source: Source) -> Source:
            formats = {self._topic(name, topic, plays): decoder for topic, decoder in source.formats.items()}
            return replace(source, formats=formats)

        def output(declared: Output, ending: str = "") -> Output:
            return replace(declared, topic=f"{self.prefix}{name}{ending}", partitions=1)

        job = play.job
        inputs = tuple(map(placed, job.inputs))
        return replace(
            job, name=f"{self.prefix}{name}", inputs=inputs, output=output(job.output), dead=output(job.dead, ".dead")
        )

    def _feed(self, plays: Plays, jobs: dict[str, Job]) -> None:
        producer = Producer({**kafka_options(self.kafka), "linger.ms": 5, "log_level": 0})
        paced = any(source.clock != "event" for job in jobs.values() for source in job.inputs) or any(
            play.paced for play in plays.values()
        )
        came = sorted(
            ((at, name, topic, row) for name, p in plays.items() for at, topic, row in p.records), key=lambda c: c[0]
        )
        began, first = time.monotonic(), came[0][0]
        records = {(name, topic): s.record for name, p in plays.items() for s in p.job.inputs for topic in s.formats}
        for start in range(0, len(came), 1 if paced else _TOGETHER):
            part = came[start : start + (1 if paced else _TOGETHER)]
            if paced:
                time.sleep(max(0.0, (part[0][0] - first) / 1000 - (time.monotonic() - began)))
            for place in dict.fromkeys((name, topic) for _, name, topic, _ in part):
                rows = [row for _, name, topic, row in part if (name, topic) == place]
                table = pa.Table.from_pylist(rows, records[place].arrow_schema())
                producer.produce(self._topic(*place, plays), columnar.encode(table), partition=0)
            producer.poll(0)
        producer.flush(60)
        for (name, topic), record in records.items():
            if plays[name].records and not any(plays[other].job.output.topic == topic for other in plays[name].reads):
                self._close(producer, self._topic(name, topic, plays), record, came)
        producer.flush(60)

    def _close(
        self, producer: Producer, topic: str, record: type[Record], came: Sequence[tuple[int, str, str, object]]
    ) -> None:
        """Ends the input of a topic with a message without rows, whose watermark closes all windows."""
        end = max(at for at, *_ in came) + _DAY_MS
        producer.produce(topic, columnar.encode(record.arrow_schema().empty_table(), end), partition=0)

    def _is_over(self, job: Job) -> bool:
        """Whether the watermark of the job, which is in its output, has reached the end."""
        written = [m.value() or b"" for m in content(self.kafka, job.output.topic)]
        reached = max((columnar.watermark(value) or NEVER for value in written), default=NEVER)
        read = [m for topic in job.topics for m in content(self.kafka, topic) if (m.value() or b"")[:1] != b"\0"]
        if job.clock == "event":
            end = max((columnar.watermark(m.value() or b"") or NEVER for m in read), default=NEVER)
            return end > NEVER and reached >= job.processor.result_grid(ANYWHERE).last(end)
        return bool(read) and reached >= max(m.timestamp()[1] for m in read) + _CLOSING_MS

    def _rows(self, job: Job) -> Iterator[dict[str, object]]:
        schema = job.output.record.arrow_schema()
        for message in content(self.kafka, job.output.topic):
            yield from columnar.decode(message.value() or b"", schema)[0].to_pylist()


def _doing() -> str:
    """What each query does now, and up to where it has read."""
    spark = SparkSession.getActiveSession()
    found = []
    for query in spark.streams.active if spark else []:
        progress = query.lastProgress
        read = ", ".join(str(source["endOffset"]) for source in progress["sources"]) if progress else "nothing"
        found.append(f"{query.name}: {query.status['message']}, read to {read}")
    return "; ".join(found) or "no query runs"

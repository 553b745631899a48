"""Watches the heartbeats of the inputs, and writes to the topic `silences` when nothing arrives between them."""

from __future__ import annotations

import threading
from collections.abc import Collection
from contextlib import closing
from queue import Empty, SimpleQueue
from typing import Self

import structlog
from confluent_kafka import KafkaException, Producer, TopicPartition
from pydantic import ValidationError

from engine.address import kafka_options
from engine.formats.heartbeat import HEARTBEAT
from engine.kafka import content
from engine.kafka.heartbeat_sender import Beat
from engine.spec.duration import duration_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Silence
from pipelines.contracts.settings import Settings
from pipelines.contracts.version_names import FIRST
from pipelines.runtime.silence import Silences, Spans

log = structlog.get_logger()

_EVERY_SECONDS = 5.0
GROUP = "newnormal.content"
"""The group of its readers, which a broker may have to permit."""

_READS_AGENTS = "normalizer"


class SilenceWatch:
    """Notices that nothing arrives, in a thread of its own; a context manager.

    What it cannot read or write now, as Kafka is away, it notices later.

    Args:
        settings: The settings, with the address of Kafka filled in.
        inputs: Full names of the topics that are watched.
        every: Seconds between two looks.
    """

    def __init__(self, settings: Settings, inputs: Collection[str], every: float = _EVERY_SECONDS) -> None:
        self._every = every
        self._bootstrap, self._inputs = settings.kafka.bootstrap or "", frozenset(inputs)
        self._topic, self._after = settings.topic(topics.SILENCES), duration_ms(settings.incidents.silence)
        self._beats: SimpleQueue[Beat] = SimpleQueue()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="silence")

    def beat(self, beat: Beat) -> None:
        """Takes in a heartbeat that stands in the log."""
        if beat.topic in self._inputs:
            self._beats.put(beat)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(5)

    def _run(self) -> None:
        silences: Silences | None = None
        producer = Producer({**kafka_options(self._bootstrap), "log_level": 0, "message.timeout.ms": 10_000})
        while not self._ended.wait(self._every):
            try:
                silences = silences or Silences(self._after, self._lasting(), self._read)
                for silence in silences.take(self._waiting()):
                    self._write(producer, silence)
            except (NewnormalError, KafkaException, BufferError) as error:
                silences = None  # what it noticed and could not write, it notices anew
                log.warning("could not see whether records arrive, will try again", reason=str(error))

    def _waiting(self) -> list[Beat]:
        beats = []
        try:
            while True:
                beats.append(self._beats.get_nowait())
        except Empty:
            return beats

    def _lasting(self) -> list[Silence]:
        """The silences that were not over when they were last written."""
        last: dict[tuple[str, int], Silence] = {}
        for value in content.values(self._bootstrap, self._topic):
            try:
                found = Silence.from_json(value)
            except ValidationError:  # a heartbeat, or what the incidents job refuses
                continue
            key = found.input, found.since
            last[key] = max(last.get(key, found), found, key=lambda each: (each.time, each.until is not None))
        return [each for each in last.values() if each.until is None]

    def _read(self, spans: Spans) -> list[tuple[str, int]]:
        """When the records arrived that parts of the log hold, by topic; parts that are no longer kept are left out."""
        kept = {}
        with closing(content.bounded_reader(self._bootstrap, GROUP)) as reader:
            for (topic, partition), (begin, end) in spans.items():
                low, high = content.bounds(reader, TopicPartition(topic, partition))
                kept[topic, partition] = (max(begin, low), min(end, high))
        found = content.between(self._bootstrap, kept)
        return [(each.topic() or "", each.timestamp()[1]) for each in found if each.value() != HEARTBEAT]

    def _write(self, producer: Producer, silence: Silence) -> None:
        key = f"{silence.input}\0{silence.since}".encode()
        producer.produce(self._topic, silence.to_json(), key)
        if producer.flush(10):
            raise NewnormalError("KAFKA_UNREACHABLE", "no answer within 10 s", self._bootstrap)
        if silence.until is not None:
            log.info("records arrive again", input=silence.input, since=silence.since)
        elif silence.time == silence.noticed:
            log.warning("nothing arrives any more", input=silence.input, since=silence.since)


def silence_watch(settings: Settings, jobs: Collection[str], beating: Collection[str]) -> SilenceWatch | None:
    """The watch of a live process with the job that reads what agents send; ``None`` for other processes.

    Args:
        settings: The settings, with the address of Kafka filled in.
        jobs: Names of the jobs of the process.
        beating: Full names of the topics that get its heartbeats.
    """
    inputs = {settings.reads(topic) for topic in topics.FROM_AGENTS} & set(beating)
    live = settings.version == FIRST and _READS_AGENTS in jobs
    return SilenceWatch(settings, inputs) if live and inputs else None

"""Reads the topic of incidents of the shown version into the memory, and changes to another version's topic."""

from __future__ import annotations

from typing import Any

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from pydantic import ValidationError

from engine.clock import now_ms
from engine.formats.heartbeat import HEARTBEAT
from engine.kafka import content
from engine.kafka.admin import topic_ids
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Incident
from pipelines.contracts.settings import Settings
from pipelines.notify.memory import Memory
from pipelines.query import tables

_MESSAGES = 1_000
"""Most messages of one write."""

log = structlog.get_logger()


class Reader:
    """Reads the incidents of one version.

    Args:
        settings: The settings of the version, with the address of Kafka filled in.
        memory: Where they are stored.

    Attributes:
        current: Whether the topic was read to the end that it had when reading began.

    Raises:
        NewnormalError: ``TOPIC_UNKNOWN`` if the incidents job has not run yet.
    """

    def __init__(self, settings: Settings, memory: Memory) -> None:
        self.version, self.topic, self._memory = settings.version, settings.reads(topics.INCIDENTS), memory
        self._bootstrap = settings.kafka.bootstrap or ""
        self._identity = self._present_identity()
        options: dict[str, str | bool] = {"enable.partition.eof": True, "auto.offset.reset": "earliest"}
        options["group.id"] = "newnormal.notify"
        self._consumer = tables.consumer(self._bootstrap, options)
        try:
            places = [TopicPartition(self.topic, at) for at in tables.partitions(self._consumer, self.topic)]
            bounds = {place.partition: content.bounds(self._consumer, place) for place in places}
        except BaseException:
            self._consumer.close()
            raise
        offsets = memory.offsets(self.topic)
        other = memory.identity(self.topic) not in (None, self._identity)
        if other or any(offset > bounds[at][1] for at, offset in offsets.items() if at in bounds):
            log.warning("the topic of incidents was made anew; it is read from its beginning", topic=self.topic)
            memory.restart(self.topic, self._identity)
            offsets = {}
        memory.identify(self.topic, self._identity)
        self._next = {at: max(low, offsets.get(at, low)) for at, (low, _) in bounds.items()}
        self._behind = {at for at, (_, high) in bounds.items() if self._next[at] < high}
        self.current = False
        self._seek()
        self._catch_up()

    def step(self, wait: float) -> bool:
        """Reads the messages that are there; returns whether there were any.

        Args:
            wait: How long to wait for the first one, seconds.

        Raises:
            KafkaException: If Kafka refuses to be read.
        """
        try:
            got = self._consumer.consume(_MESSAGES, wait)
            self._store(got)
        except BaseException:
            self._seek()
            raise
        return any(not message.error() for message in got)

    def replaced(self) -> bool:
        """Whether the topic was deleted and made anew since, as by `newnormal retire` and a replay of the same name.

        Raises:
            NewnormalError: ``KAFKA_UNREACHABLE``.
        """
        return self._present_identity() not in ("", self._identity)

    def close(self) -> None:
        """Ends reading."""
        self._consumer.close()

    def _present_identity(self) -> str:
        return topic_ids(self._bootstrap, [self.topic]).get(self.topic, "")

    def _store(self, got: list[Any]) -> None:
        incidents, offsets, ended = [], dict[int, int](), set[int]()
        for message in got:
            if error := message.error():
                if error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                elif error.fatal():
                    raise KafkaException(error)
                continue
            offsets[message.partition()] = message.offset() + 1
            if message.value() and message.value() != HEARTBEAT:
                try:
                    incidents.append(Incident.from_json(message.value()))
                except ValidationError:
                    log.warning("skipping a message that is no incident", topic=self.topic, offset=message.offset())
        if offsets:
            self._memory.take(self.topic, incidents, offsets, now_ms())
            self._next |= offsets
        self._behind -= ended
        self._catch_up()

    def _catch_up(self) -> None:
        if not self._behind and not self.current:
            self._memory.begin(self.topic)
            self.current = True

    def _seek(self) -> None:
        self._consumer.assign([TopicPartition(self.topic, at, offset) for at, offset in self._next.items()])


def reader_or_none(settings: Settings, memory: Memory) -> Reader | None:
    """The reader of a version; ``None`` if its topic of incidents does not exist yet."""
    try:
        return Reader(settings, memory)
    except NewnormalError as error:
        if error.code == "TOPIC_UNKNOWN":
            return None
        raise

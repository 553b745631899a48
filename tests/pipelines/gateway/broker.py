"""A Kafka of the tests' own, which may be hung, and what the pipeline would read from it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition

from deploy.embedded import services
from engine.spec.decoder import Messages
from engine.spec.record import Record
from pipelines.contracts import topics
from pipelines.contracts.records import Log, Telemetry
from pipelines.contracts.settings import Settings
from pipelines.formats.any_format import AnyFormatDecoder
from pipelines.formats.placements.spans import Span
from pipelines.formats.rules import Rules

TOPIC: dict[type[Record], str] = {Telemetry: topics.RAW_AGENTS, Log: topics.LOGS_AGENTS, Span: topics.TRACES_AGENTS}


class Broker:
    """A running Kafka.

    Args:
        settings: Settings with its address.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def named(self, namespace: str) -> Settings:
        """The settings of a test, whose topics are its own; the gateway takes any port."""
        gateway = self.settings.gateway.model_copy(update={"port": 0})
        return self.settings.model_copy(update={"namespace": f"{namespace}.", "gateway": gateway})

    @contextmanager
    def hung(self) -> Iterator[None]:
        """Stopped for the length of a block: its address is open, and nobody answers."""
        running = services.status(self.settings)
        assert running
        pid = running.servers[0].pid
        os.killpg(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(pid, signal.SIGCONT)


def messages(settings: Settings, record: type[Record] = Telemetry) -> list[bytes]:
    """All messages of a topic of agents."""
    options = {"bootstrap.servers": settings.kafka.bootstrap, "group.id": "t", "enable.partition.eof": True}
    reader = Consumer(options | {"auto.offset.reset": "earliest", "enable.auto.commit": False})
    name = settings.topic(TOPIC[record])
    places = [TopicPartition(name, p, 0) for p in reader.list_topics(name, 60.0).topics[name].partitions]
    reader.assign(places)
    found, ended = [], 0
    try:
        while ended < len(places):
            message = reader.poll(60.0)
            assert message is not None, "Kafka answers"
            if message.error():
                ended += 1
            else:
                found.append(message.value())
    finally:
        reader.close()
    return found


def read(settings: Settings, record: type[Record] = Telemetry) -> list[dict[str, Any]]:
    """The records that the pipeline's decoders make of all messages; none may be refused."""
    values = messages(settings, record)
    if not values:
        return []
    n = len(values)
    given = Messages("", 0, pa.array(values, pa.binary()), np.arange(n), np.zeros(n, np.int64))
    decoded = AnyFormatDecoder(record, Rules.of(settings.input)).decode(given)
    assert decoded.refused == []
    return decoded.records.to_pylist()


def samples(settings: Settings) -> list[tuple[int, str, str, float, str]]:
    """(time, machine, metric, value, kind) of all samples, sorted."""
    return sorted((r["time"], r["entity"], r["metric"], r["value"], r["kind"]) for r in read(settings))

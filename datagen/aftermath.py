"""Counts what a running pipeline did with the samples sent to it: taken in, late or refused. Reads its topics."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Self

import polars as pl
from confluent_kafka import Message, TopicPartition

from engine.address import kafka_options
from engine.formats import columnar
from engine.kafka.content import bounds
from engine.kafka.skipping import SkippingConsumer
from engine.spec.duration import NEVER
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import Settings

_SECONDS = 10.0
"""Seconds without new messages after which waiting for the pipeline ends."""
_QUIET = 4.0
"""The same, once the extractor has read all samples: late samples appear with its next transaction."""


@dataclass
class SampleCounts:
    """Numbers of samples.

    Attributes:
        taken: Samples that the normalizer took in.
        late: Those of them that came too late for their windows.
        refused: Dead letters, by code.
    """

    taken: int = 0
    late: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def text(self, sent: int, settings: Settings) -> str:
        """These counts in words, for ``sent`` samples."""
        late = settings.topic(topics.FEATURES_LATE)
        if not self.taken + self.refused.total():
            return f"no pipeline has taken them in yet; what is too late will go to the topic {late}"
        found = [f"the pipeline has taken in {self.taken:,} of {sent:,} samples"]
        found += [f"{self.late:,} of them were dropped as too late (topic {late})"] if self.late else []
        dead = settings.topic(topics.DEADLETTER)
        found += [f"{count:,} were refused: {code} (topic {dead})" for code, count in sorted(self.refused.items())]
        return "; ".join(found)


class Aftermath:
    """Context manager that follows the topics of the pipeline while the samples are sent.

    Args:
        settings: The settings, with the address of the broker.
        frame: The samples, with columns ``time`` and ``entity``.

    Raises:
        NewnormalError: ``KAFKA_READ_FAILED`` if the broker does not answer.
    """

    def __init__(self, settings: Settings, frame: pl.DataFrame) -> None:
        self.counts = SampleCounts()
        self._telemetry, self._late, self._dead, self._features = (
            settings.topic(name)
            for name in (topics.TELEMETRY, topics.FEATURES_LATE, topics.DEADLETTER, topics.FEATURES)
        )
        self._entities = frame["entity"].cast(pl.String).unique().to_list()
        self._first, self._last = frame["time"].min(), frame["time"].max()
        options: dict[str, Any] = {**kafka_options(settings.kafka.bootstrap or ""), "group.id": "newnormal.aftermath"}
        options |= {"enable.auto.commit": False, "isolation.level": "read_committed", "log_level": 0}
        self._reader = SkippingConsumer(options)
        existing = self._reader.list_topics(timeout=_SECONDS).topics
        places = [
            TopicPartition(topic, partition)
            for topic in (self._telemetry, self._late, self._dead, self._features)
            if topic in existing
            for partition in existing[topic].partitions
        ]
        for place in places:
            place.offset = bounds(self._reader, place)[1]
        self._reader.assign(places)
        self._watermark = NEVER  # the greatest watermark of the messages in which samples were taken in
        self._extracted = {place.partition: NEVER for place in places if place.topic == self._features}
        self._heard, self._ended = time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True, name="aftermath")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._reader.close()

    def wait(self, sent: int, late: int, stop: threading.Event) -> SampleCounts:
        """Waits until the pipeline has dealt with all samples, or does not go on.

        Args:
            sent: Number of samples that were sent.
            late: How many of them are expected to be late.
            stop: Event that ends the wait.
        """
        self._heard = time.monotonic()
        while not stop.is_set():
            through = self.counts.taken + self.counts.refused.total() >= sent
            patience = _QUIET if through and self._read() else _SECONDS
            if time.monotonic() - self._heard > patience or (through and 0 < late <= self.counts.late):
                break
            stop.wait(0.1)
        return self.counts

    def _read(self) -> bool:
        """Whether the extractor has read the samples: its watermark has reached that of the messages with them."""
        return all(watermark >= self._watermark for watermark in self._extracted.values())

    def _follow(self) -> None:
        while not self._ended.is_set():
            for message in self._reader.consume(1_000, 0.2):
                self._count(message)

    def _count(self, message: Message) -> None:
        value = message.value()
        if message.error() or not value:
            return
        if message.topic() == self._dead:
            self._count_dead(value)
            return
        try:
            if message.topic() == self._features:
                self._extract(message.partition() or 0, columnar.watermark(value) or NEVER)
                return
            table, watermark = columnar.decode(value, Telemetry.arrow_schema())
        except NewnormalError:
            return  # a sample of another sender
        frame = pl.DataFrame(table.select(["time", "entity"]))
        ours = pl.col("entity").cast(pl.String).is_in(self._entities)
        number = frame.filter(ours & pl.col("time").is_between(self._first, self._last)).height
        self._heard = time.monotonic() if number else self._heard
        if message.topic() == self._late:
            self.counts.late += number
        else:
            self.counts.taken += number
            self._watermark = max(self._watermark, watermark or NEVER) if number else self._watermark

    def _extract(self, partition: int, watermark: int) -> None:
        """Takes in the watermark of the extractor in one partition of its output."""
        if watermark > self._extracted.get(partition, NEVER):
            self._extracted[partition] = watermark
            self._heard = time.monotonic()

    def _count_dead(self, value: bytes) -> None:
        try:
            letter = json.loads(value)
            sample = json.loads(letter["payload"])
            if sample["host.name"] in self._entities:
                self.counts.refused[letter["error.code"]] += 1
                self._heard = time.monotonic()
        except (ValueError, KeyError, TypeError):
            return  # not one of our samples

"""Sends heartbeats to partitions, so that each says that it is alive while nothing else comes in it."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from engine.address import kafka_options
from engine.clock import now_ms
from engine.formats.heartbeat import HEARTBEAT

HEARTBEAT_SECONDS = 2.5
"""Seconds between two heartbeats of a partition."""

QUIET_SECONDS = 90.0
"""After so long with nothing but heartbeats in the log they become rare."""

RARE_SECONDS = 15.0
"""Seconds between two heartbeats of a partition where nothing else comes."""

_SHIFT_MS = 500
"""So long after an instant of its grid a heartbeat is sent, so that the broker's clock has passed the instant, too."""

_LOOK_EVERY = 4
"""After so many heartbeats the sender looks for partitions that have been added."""


@dataclass(frozen=True)
class Beat:
    """A heartbeat as it stands in the log.

    Attributes:
        topic: Its topic.
        partition: Its partition.
        offset: Its offset.
        time: When it arrived at Kafka, epoch milliseconds.
    """

    topic: str
    partition: int
    offset: int
    time: int


class HeartbeatSender:
    """Sends a heartbeat to each partition of some topics at a steady pace, in a thread of its own; a context manager.

    Partitions that are added while it runs are found within some heartbeats. Each heartbeat is a micro-batch of all
    jobs that read it, so where nothing else comes for a while there are fewer; the first other message brings them
    back. Where only the ends of windows matter to those jobs, one heartbeat behind each is enough: see ``grid_ms``.

    Args:
        bootstrap: ``host:port`` of a broker.
        topics: Names of existing topics.
        every: Seconds between two heartbeats.
        on_delivery: Called with each heartbeat once it stands in the log, in the thread of the heartbeats.
        ends: Gives the next offset of each partition of these and other topics, as lately known; messages in any of
            them count. ``None``: heartbeats are never rare, and follow no grid.
        quiet: See `QUIET_SECONDS`.
        rare: See `RARE_SECONDS`.
        grid_ms: A heartbeat is due when Kafka's clock of a partition has not passed the last multiple of so many
            milliseconds since 1970, and after each message of others in these topics; 0: always.
    """

    def __init__(
        self,
        bootstrap: str,
        topics: Sequence[str],
        every: float = HEARTBEAT_SECONDS,
        on_delivery: Callable[[Beat], None] | None = None,
        ends: Callable[[], Mapping[tuple[str, int], int]] | None = None,
        quiet: float = QUIET_SECONDS,
        rare: float = RARE_SECONDS,
        grid_ms: float = 0,
    ) -> None:
        self.topics, self.every, self.on_delivery, self.stopping = topics, every, on_delivery, threading.Event()
        self.ends, self.quiet, self.rare, self.grid_ms = ends, quiet, rare, grid_ms
        self._places: list[tuple[str, int]] = []
        self._stamps: dict[tuple[str, int], int] = {}
        self._answer = False
        self._next: dict[tuple[str, int], int] = {}
        self._ended: Mapping[tuple[str, int], int] = {}
        self._heard = self._sent = time.monotonic()
        self.producer = Producer({**kafka_options(bootstrap), "log_level": 0, "message.timeout.ms": 10_000})
        self.thread = threading.Thread(target=self._run, daemon=True, name="heartbeat")

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.thread.join(5)

    def _run(self) -> None:
        for beat in itertools.count():
            if self.stopping.is_set():
                return
            if not self._places or beat % _LOOK_EVERY == 0:
                self._places = self._found() or self._places
            self.producer.poll(0)
            if self._due():
                self._sent, self._answer = time.monotonic(), False
                for topic, partition in self._places:
                    # BufferError: Kafka is away, and the heartbeats that wait are enough; other errors pass, too
                    with suppress(BufferError, KafkaException):
                        # compacted topics need keys
                        self.producer.produce(topic, HEARTBEAT, HEARTBEAT, partition, on_delivery=self._delivered)
            self.stopping.wait(min(self.every, self._until_grid()))

    def _due(self) -> bool:
        if self.ends is None:
            return True
        ends, before = self.ends(), self._ended
        self._ended = ends
        for place, end in ends.items():
            if end < before.get(place, 0):  # its topic was deleted and made anew
                self._next[place], self._heard = end, time.monotonic()
            self._reached(place, end, end)
        now = time.monotonic()
        if now - self._heard >= self.quiet:
            return now - self._sent >= self.rare
        if not self.grid_ms or self._answer:
            return True
        instant = (now_ms() - _SHIFT_MS) // self.grid_ms * self.grid_ms
        return any(self._stamps.get(place, 0) < instant for place in self._places)

    def _until_grid(self) -> float:
        """Seconds until a heartbeat is due for the next instant of the grid."""
        return self.every if not self.grid_ms else (self.grid_ms - (now_ms() - _SHIFT_MS) % self.grid_ms) / 1000

    def _reached(self, place: tuple[str, int], expected: int, end: int) -> None:
        """Notes where a partition ends; its end was expected elsewhere if others have written to it.

        Args:
            place: Topic and partition.
            expected: The offset up to which it would have gone if nobody else had written.
            end: The next offset.
        """
        before = self._next.setdefault(place, end)
        if expected > before:
            self._heard, self._answer = time.monotonic(), self._answer or place[0] in self.topics
        self._next[place] = max(before, end)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        if error is None and topic is not None and partition is not None and offset is not None:
            self._reached((topic, partition), offset, offset + 1)
            self._stamps[topic, partition] = message.timestamp()[1]
            if self.on_delivery:
                self.on_delivery(Beat(topic, partition, offset, message.timestamp()[1]))

    def _found(self) -> list[tuple[str, int]]:
        """All partitions of the topics; an empty list while Kafka does not answer."""
        try:
            existing = self.producer.list_topics(timeout=self.every).topics
            return [(topic, partition) for topic in self.topics for partition in sorted(existing[topic].partitions)]
        except (KafkaException, KeyError):
            return []

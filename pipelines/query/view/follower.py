"""Follows the topics of a part of the partitions and keeps their content in the view's database."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import orjson
import structlog
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from engine.kafka.admin import topic_ids
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.query import tables
from pipelines.query.view import progress
from pipelines.query.view.content import Content
from pipelines.query.view.database import Database
from pipelines.query.view.detector_topics import DetectorTopics
from pipelines.query.view.keys import META
from pipelines.query.view.part import Part
from pipelines.query.view.progress import Heartbeat, Progress

_MESSAGES, _FEW = 1_000, 200
"""Most messages of one write while the view is behind, and while it is not. A request waits while the process that
answers catches up with a write, and the time of that grows with the number of its messages: 4 ms for 1,000 states."""

_BEAT = 1.0
"""How often the view looks at Kafka when there is nothing to read, seconds."""

_AGAIN = 1.0
"""Seconds until a Kafka that does not answer is asked again."""

_LAYOUT = META + b"layout"
_IDENTITIES = META + b"topics"
"""Key of the identities of the topics: one that is made anew, as by `newnormal retire` and a replay, has another."""
log = structlog.get_logger()


class Follower:
    """Reads the topics into the database, which nobody else writes.

    Args:
        settings: The settings of a version, with the address of Kafka filled in.
        part: The part.
        folder: Where the database is; ``None``: the folder of that part in the state directory.
        content: What it keeps; ``None``: what the detector believes.

    Raises:
        NewnormalError: ``TOPIC_UNKNOWN`` if the detector has not run yet; ``USAGE_INVALID`` if there are more parts
            than partitions; ``VIEW_UNUSABLE``.
    """

    def __init__(
        self,
        settings: Settings,
        part: Part | None = None,
        folder: Path | None = None,
        content: Content | None = None,
    ) -> None:
        self.settings, self.part, self.content = settings, part or Part(), content or DetectorTopics(settings)
        self.folder = folder or settings.folder("view") / f"part-{self.part.number}-of-{self.part.of}"
        self._lost = False
        self._reader = tables.consumer(
            settings.kafka.bootstrap or "", {"enable.partition.eof": True, "auto.offset.reset": "earliest"}
        )
        try:
            self._begin()
        except BaseException:
            self._reader.close()
            raise

    def _begin(self) -> None:
        """Opens the database and finds where to go on."""
        partitions_of = {name: tables.partitions(self._reader, name) for name in self.content.topics}
        self.partitions = len(partitions_of[self.content.topics[0]])
        if self.part.of > self.partitions:
            what, most = f"{self.part.of} parts, but {self.partitions} partitions", f"at most {self.partitions} parts"
            raise NewnormalError("USAGE_INVALID", what, "--part", most, "nothing was started")
        ends = {
            (name, partition): self._reader.get_watermark_offsets(TopicPartition(name, partition), 10)
            for name, partitions in partitions_of.items()
            for partition in filter(self.part.owns, partitions)
        }
        self.database = self._open({at: high for at, (_, high) in ends.items()})
        self._progress = {at: self._stored(self.database, at) or Progress(low) for at, (low, _) in ends.items()}
        for at, (_, high) in ends.items():
            self._progress[at].end = high
        self._looked = cycle(self._progress)
        self._heartbeat = Heartbeat(time.time())
        self.database.write(
            [self._heartbeat.stored(), *((progress.key(*at), each.stored()) for at, each in self._progress.items())]
        )
        self._seek()

    def step(self, wait: float = 0.05) -> int:
        """Reads the messages that are there and stores them; returns their number.

        Messages that could not be stored are read again by the next call.

        Args:
            wait: How long to wait for the first one, seconds.

        Raises:
            KafkaException: If Kafka refuses to be read.
        """
        try:
            got: list[Any] = self._reader.consume(self._most(), wait)
            if got or time.time() > self._heartbeat.heard + _BEAT:
                self._store(got)
        except BaseException:
            self._seek()
            raise
        return sum(not message.error() for message in got)

    def go_on(self, ended: threading.Event, whom: str) -> None:
        """As `step`; a Kafka that does not answer is told once, and tried again by the next call, after a while.

        Args:
            ended: Set when it is to end: then it is not waited for.
            whom: Whom Kafka does not answer, in words.
        """
        try:
            self.step()
            self._lost = False
        except KafkaException as error:
            if not self._lost:
                log.warning(f"Kafka does not answer {whom}; it tries again", reason=str(error)[:200])
            self._lost = True
            ended.wait(_AGAIN)

    def _most(self) -> int:
        """Most messages of the next write."""
        behind = sum(each.behind for each in self._progress.values())
        return _MESSAGES if behind > _MESSAGES else _FEW

    def close(self) -> None:
        """Ends reading and closes the database."""
        self._reader.close()
        self.database.close()

    def _open(self, ends: Mapping[tuple[str, int], int]) -> Database:
        """Opens the database; one that does not fit the settings or the topics is read anew.

        Args:
            ends: Offset behind the last message of each partition.
        """
        layout, folder = f"{self.content.layout} {self.partitions}".encode(), self.folder / "data"
        database = Database(folder)
        ids = orjson.dumps(
            topic_ids(self.settings.kafka.bootstrap or "", list(self.content.topics)), option=orjson.OPT_SORT_KEYS
        )
        reason = ""
        if database.get(_LAYOUT) not in (None, layout):
            reason = "the length or number of windows, or the number of partitions, has changed"
        elif database.get(_IDENTITIES) not in (None, ids) or any(
            place.next > end for at, end in ends.items() if (place := self._stored(database, at))
        ):
            reason = "the topics were made anew"
        if reason:
            database.close()
            log.warning(f"reading the view anew: {reason}", folder=str(folder))
            shutil.rmtree(folder)
            database = Database(folder)
        database.write([(_LAYOUT, layout), (_IDENTITIES, ids)])
        return database

    @staticmethod
    def _stored(database: Database, at: tuple[str, int]) -> Progress | None:
        value = database.get(progress.key(*at))
        return Progress.of(value) if value else None

    def _seek(self) -> None:
        """Lets the consumer go on behind what is stored."""
        self._reader.assign([TopicPartition(*at, each.next) for at, each in self._progress.items()])

    def _store(self, got: Sequence[Any]) -> None:
        """Stores messages and how far they reach, all in one write; only then the progress counts."""
        places = {at: self._progress[at].copy() for at in {(m.topic(), m.partition()) for m in got} & {*self._progress}}
        gathering = self.content.gathering()
        read = refused = 0
        for message in got:
            if error := message.error():
                _take_error(error, message, places)
                continue
            read += 1
            place = places[message.topic(), message.partition()]
            place.next, place.written = message.offset() + 1, message.timestamp()[1]
            try:
                gathering.take(message, place)
            except (NewnormalError, ValueError, KeyError, TypeError, AttributeError) as error:
                refused += 1
                log.warning(
                    "skipping a message", topic=message.topic(), offset=message.offset(), reason=str(error)[:200]
                )
        puts, gone = gathering.entries(self.database, places)
        places = self._with_ends(places)
        before = self._heartbeat
        beat = Heartbeat(time.time(), before.messages + read, before.refused + refused)
        puts.update([beat.stored(), *((progress.key(*at), place.stored()) for at, place in places.items())])
        self.database.write(puts.items(), gone)
        self._progress.update(places)
        self._heartbeat = beat

    def _with_ends(self, places: dict[tuple[str, int], Progress]) -> dict[tuple[str, int], Progress]:
        """Fills in where the partitions end; asks Kafka about one of them if nothing was read."""
        if not places:
            at = next(self._looked)
            place = self._progress[at].copy()
            place.end = self._reader.get_watermark_offsets(TopicPartition(*at), 5)[1]
            return {at: place}
        for at, place in places.items():
            _, high = self._reader.get_watermark_offsets(TopicPartition(*at), cached=True)
            place.end = max(place.end, place.next, high)  # the cached offset is below 0 until the first answer
        return places


def _take_error(error: Any, message: Any, places: dict[tuple[str, int], Progress]) -> None:
    """Notes the end of a partition; librdkafka tries again what else it reports, unless it is fatal.

    A missing right, which it reports once, is told.

    Raises:
        KafkaException: If Kafka refuses to be read.
    """
    if error.code() == KafkaError._PARTITION_EOF:
        place = places[message.topic(), message.partition()]
        place.reached = max(place.reached, message.offset())
    elif error.fatal():
        raise KafkaException(error)
    elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        missing = "Kafka does not let this user read a topic of the state view; `newnormal acls` lists what is needed"
        log.warning(missing, topic=message.topic(), partition=message.partition())

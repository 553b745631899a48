"""Answers questions from the view's database, in the process that writes it or in another."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import orjson

from engine.columns.partitioning import crc32
from pipelines.contracts.settings import Settings
from pipelines.query.view import progress
from pipelines.query.view.database import Database
from pipelines.query.view.follower import TOPICS
from pipelines.query.view.keys import ABNORMAL, STATE, beginning, names
from pipelines.query.view.part import Part
from pipelines.query.view.progress import Heartbeat, Progress
from pipelines.query.view.states import total
from pipelines.query.view.windows import last_windows


class Answers:
    """What the view knows. Answers, and how old they are, come from the database alone, so that they belong together.

    Args:
        database: The database.
        settings: The settings of the version.
        partitions: Number of partitions of the topics.
        part: The part of them that the database has.
    """

    def __init__(self, database: Database, settings: Settings, partitions: int, part: Part) -> None:
        self.database, self.settings, self.partitions, self.part = database, settings, partitions, part
        self._topics = {settings.reads(name): name for name in TOPICS}

    def partition(self, entity: str) -> int:
        """The partition of a machine."""
        return crc32(entity) % self.partitions

    def state(self, entity: str, metric: str) -> dict[str, Any] | None:
        """The last state of a series, by the JSON names of `SeriesState`; ``None`` if it is not known."""
        value = self.database.get(STATE + names(entity, metric))
        return None if value is None else dict(orjson.loads(value))

    def windows(self, entity: str, metric: str, most: int) -> list[dict[str, Any]]:
        """The last windows of a series, the oldest first."""
        return last_windows(self.database, entity, metric, min(most, self.settings.view.windows))

    def range(self, start: str, exact: bool, after: bytes, most: int) -> tuple[list[dict[str, Any]], bytes | None]:
        """The states of the series of a machine, or of all machines whose names begin with a text.

        Args:
            start: Name of the machine, or its beginning.
            exact: True if it is the whole name.
            after: Where the page before ended; empty: at the beginning.
            most: Length of a page.

        Returns:
            The states, in order of machine and metric, and where the page ends; ``None``: it is the last one.
        """
        prefix = STATE + (names(start) if exact else beginning(start))
        page = list(islice(self.database.scan(prefix, after), most + 1))
        return [orjson.loads(value) for _, value in page[:most]], page[most - 1][0] if len(page) > most else None

    def top(self, most: int) -> list[dict[str, Any]]:
        """The states of the most abnormal series, the highest score first."""
        worst = [series for _, series in islice(self.database.scan(ABNORMAL), most)]
        return [orjson.loads(value) for value in self.database.get_many(worst) if value]

    def counts(self) -> dict[str, int]:
        """How many series there are, by kind of their last state; how many are abnormal or have an open incident."""
        whole: Counter[str] = Counter()
        for place in self._progress().values():
            whole.update(place.counts)
        return total(whole)

    def age(self, entity: str | None = None) -> dict[str, Any]:
        """How old an answer is, see `progress.age`: by the partition of a machine, or by all of the part."""
        return progress.age(self._progress(entity).values(), self.heartbeat().heard)

    def heartbeat(self) -> Heartbeat:
        """What the process that reads Kafka said last."""
        return Heartbeat.of(self.database.get(progress.HEARTBEAT))

    def own_partitions(self) -> list[int]:
        """The partitions that the part has."""
        return sorted(filter(self.part.owns, range(self.partitions)))

    def _progress(self, entity: str | None = None) -> dict[tuple[str, int], Progress]:
        """Progress by topic, without namespace and version, and partition."""
        own = self.own_partitions() if entity is None else [self.partition(entity)]
        places = [(topic, partition) for topic in self._topics for partition in own]
        found = self.database.get_many([progress.key(*place) for place in places])
        pairs = zip(places, found, strict=True)
        return {(self._topics[topic], partition): Progress.of(value) for (topic, partition), value in pairs if value}

"""Answers questions from the view's database, in the process that writes it or in another."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import orjson

from engine.columns.partitioning import crc32
from models.config import DetectorConfig
from pipelines.contracts.settings import Settings
from pipelines.query.view import progress
from pipelines.query.view.database import Database
from pipelines.query.view.detector_topics import TOPICS
from pipelines.query.view.keys import ABNORMAL, FULL, STATE, WINDOW, beginning, names, parts
from pipelines.query.view.machines import machines
from pipelines.query.view.part import Part
from pipelines.query.view.progress import Heartbeat, Progress
from pipelines.query.view.states import total
from pipelines.query.view.windows import last_windows

NEEDED = DetectorConfig().learning
"""Windows of a series before it is judged."""

_LATELY = 300_000
"""A machine reports if one of its windows ended so shortly before the newest one of all, milliseconds."""

_NAMED = 20
"""Machines that are learned and named."""


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

    def full(self, most: int) -> list[dict[str, Any]]:
        """The states of the series that will be full, the next first."""
        nearest = [series for _, series in islice(self.database.scan(FULL), most)]
        return [orjson.loads(value) for value in self.database.get_many(nearest) if value]

    def counts(self) -> dict[str, int]:
        """How many series there are, by kind of their last state; how many are abnormal or have an open incident."""
        whole: Counter[str] = Counter()
        for place in self.progress().values():
            whole.update(place.counts)
        return total(whole)

    def machines(self, most: int) -> list[str]:
        """Names of the machines, in order."""
        return [entity for entity, _ in islice(machines(self.database), most)]

    def machine(self, entity: str, most: int) -> list[dict[str, Any]]:
        """The series of a machine in the order of their metrics: each with its last state and its last windows.

        A series of which nothing was believed yet, as its first window has just ended, has windows only.
        """
        prefixes = [what + names(entity) for what in (WINDOW, STATE)]
        metrics = {parts(key[1:])[1] for prefix in prefixes for key, _ in self.database.scan(prefix)}
        found = []
        for metric in sorted(metrics)[:most]:
            state, windows = self.state(entity, metric), self.windows(entity, metric, self.settings.view.windows)
            found.append({"metric": metric, "state": state, "windows": windows, "needed": NEEDED})
        return found

    def site(self) -> dict[str, Any]:
        """How many machines report, which of them are still learned, and until when there are data.

        Returns:
            ``machines``: those with a window in the five minutes before ``last``; ``learning``: the first of those of
            which no series has been judged yet, with the number of windows so far and how many are ``needed``;
            ``learning_count``: how many there are; ``last``: end of the newest window, epoch milliseconds.
        """
        known = list(machines(self.database))
        last = max((each.newest for _, each in known), default=0)
        lately = [(entity, each) for entity, each in known if each.newest and each.newest >= last - _LATELY]
        learning = [entity for entity, each in lately if not each.learned]
        shown = [{"name": name, "windows": self._longest(name), "needed": NEEDED} for name in learning[:_NAMED]]
        return {"machines": len(lately), "learning": shown, "learning_count": len(learning), "last": last or None}

    def _longest(self, entity: str) -> int:
        """The number of windows of the series of a machine that has most of them."""
        series = Counter(parts(key[1:])[1] for key, _ in self.database.scan(WINDOW + names(entity)))
        return min(max(series.values(), default=0), NEEDED)

    def age(self, entity: str | None = None) -> dict[str, Any]:
        """How old an answer is, see `progress.age`: by the partition of a machine, or by all of the part."""
        return progress.age(self.progress(entity).values(), self.heartbeat().heard)

    def heartbeat(self) -> Heartbeat:
        """What the process that reads Kafka said last."""
        return Heartbeat.of(self.database.get(progress.HEARTBEAT))

    def own_partitions(self) -> list[int]:
        """The partitions that the part has."""
        return sorted(filter(self.part.owns, range(self.partitions)))

    def progress(self, entity: str | None = None) -> dict[tuple[str, int], Progress]:
        """Progress by topic, without namespace and version, and partition."""
        own = self.own_partitions() if entity is None else [self.partition(entity)]
        places = [(topic, partition) for topic in self._topics for partition in own]
        found = self.database.get_many([progress.key(*place) for place in places])
        pairs = zip(places, found, strict=True)
        return {(self._topics[topic], partition): Progress.of(value) for (topic, partition), value in pairs if value}

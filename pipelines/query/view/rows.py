"""What a view keeps of topics that jobs of one's own write: the last row of each key, as of a compacted topic."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any

import orjson

from engine.formats.heartbeat import HEARTBEAT
from pipelines.query.view import progress
from pipelines.query.view.content import Content, Gathering
from pipelines.query.view.database import Database
from pipelines.query.view.keys import PROGRESS, ROW, beginning, names
from pipelines.query.view.progress import Heartbeat, Progress


class JobTopics(Content):
    """Topics of JSON that jobs write.

    Args:
        topics: Their names.
    """

    def __init__(self, topics: Sequence[str]) -> None:
        self.topics = tuple(dict.fromkeys(topics))
        self.layout = f"rows 1 {' '.join(sorted(self.topics))}"

    def gathering(self) -> Gathering:
        return _Gathering()


class _Gathering(Gathering):
    def __init__(self) -> None:
        self.last: dict[bytes, bytes] = {}

    def take(self, message: Any, place: Progress) -> None:
        value = message.value() or b""
        if value == HEARTBEAT:
            return
        if value and not isinstance(orjson.loads(value), dict):
            raise ValueError(f"a row is a JSON object, not {value[:80]!r}")
        self.last[ROW + names(message.topic(), (message.key() or b"").decode())] = value

    def entries(
        self, database: Database, places: Mapping[tuple[str, int], Progress]
    ) -> tuple[dict[bytes, bytes], Collection[bytes]]:
        return {key: row for key, row in self.last.items() if row}, [key for key, row in self.last.items() if not row]


class Rows:
    """Answers from the database of a view of `JobTopics`.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self.database = database

    def row(self, topic: str, key: str) -> dict[str, Any] | None:
        """The last row of a key; ``None`` if there is none."""
        value = self.database.get(ROW + names(topic, key))
        return None if value is None else dict(orjson.loads(value))

    def page(self, topic: str, prefix: str, after: bytes, most: int) -> tuple[list[dict[str, Any]], bytes | None]:
        """The last rows of the keys that begin with a text, in order of the keys.

        Args:
            topic: The topic.
            prefix: The text; empty: all keys.
            after: Where the page before ended; empty: at the beginning.
            most: Length of a page.

        Returns:
            The rows, and where the page ends; ``None``: it is the last one.
        """
        found = list(islice(self.database.scan(ROW + names(topic) + beginning(prefix), after), most + 1))
        return [orjson.loads(value) for _, value in found[:most]], found[most - 1][0] if len(found) > most else None

    def age(self) -> dict[str, Any]:
        """How old an answer is, see `progress.age`."""
        stored = (value for key, value in self.database.scan(PROGRESS) if key != progress.HEARTBEAT)
        return progress.age(map(Progress.of, stored), self.heartbeat().heard)

    def heartbeat(self) -> Heartbeat:
        """What the process that reads Kafka said last."""
        return Heartbeat.of(self.database.get(progress.HEARTBEAT))

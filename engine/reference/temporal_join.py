"""The meaning of a `TemporalJoin`."""

from __future__ import annotations

from typing import Any, NamedTuple

from engine.operators.temporal_join import TemporalJoin
from engine.reference.meaning import Reference
from engine.reference.two_sided import Pairs
from engine.spec.expressions import holds
from engine.spec.inputs import INPUT
from engine.spec.operator import Progress, Row


class Version(NamedTuple):
    """A version of a key.

    Attributes:
        since: From when on it is valid: its time, or the watermark if it came behind that.
        deletes: Whether the key is deleted from then on.
    """

    since: int
    row: Row
    deletes: bool


class TemporalJoinReference(Reference):
    """The meaning of a `TemporalJoin`: all versions are kept for ever, and searched for each record."""

    def __init__(self, config: TemporalJoin) -> None:
        self.config, self.pairs, self.time = config, Pairs(config, config.key), config.time
        self.versions: list[Version] = []
        self.waiting: list[Row] = []

    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        """Notes versions, sets late records apart and enriches those that the watermark has passed."""
        late, ready = [], []
        for record, passed in zip(records, progress.passed(len(records)).tolist(), strict=True):
            if not self.pairs.is_left(record):
                deletes = holds(self.config.deletion, {name: record[name] for name in self.config.right})
                self.versions.append(Version(max(record[self.time], passed), record, deletes))
            elif record[INPUT] in self.config.loops and record[self.time] < progress.before:
                ready.append(record | {self.time: progress.before})
            elif record[self.time] + int(self.config.allowed_lateness) < passed:
                late.append(record)
            else:
                self.waiting.append(record)
        ready += [record for record in self.waiting if record[self.time] < progress.now]
        self.waiting = [record for record in self.waiting if record[self.time] >= progress.now]
        results = []
        for record in ready:
            version = self.valid(record, progress.now)
            if version is not None or self.config.how == "left":
                results.append(self.pairs.pair(record, version) | {self.time: record[self.time]})
        return results, late

    def valid(self, record: Row, now: int) -> Row | None:
        """The version that is valid at the time of a record; of several of one instant the last one by its values."""
        versions = [
            version
            for version in self.versions
            if self.pairs.agreed(record, version.row) and version.since <= record[self.time] and version.since < now
        ]
        if not versions:
            return None
        last = max(versions, key=self.place)
        return None if last.deletes else last.row

    def place(self, version: Version) -> list[Any]:
        """The place of a version among those of its key."""
        values = (version.row[name] for name in sorted(self.config.right) if name != self.time)
        compared = [(value is not None, value if value is not None else 0) for value in values]
        return [version.since, version.row[self.time], *compared]

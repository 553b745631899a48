"""The entries for machines: until when windows of each have been read, and whether a series of it has been learned."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipelines.query.view.database import Database
from pipelines.query.view.keys import MACHINE, names, parts

_VALUE = struct.Struct("<q?")


@dataclass
class Machine:
    """What is known of a machine as a whole.

    Attributes:
        newest: End of its newest window, epoch milliseconds; 0 if none has been read.
        learned: True if one of its series has been judged as more than *learning*.
    """

    newest: int = 0
    learned: bool = False

    def stored(self) -> bytes:
        """The value in the database."""
        return _VALUE.pack(self.newest, self.learned)

    @classmethod
    def of(cls, value: bytes | None) -> Machine:
        """The inverse of `stored`; without a value a machine of which nothing is known."""
        return cls(*_VALUE.unpack(value)) if value else cls()


class Machines:
    """Collects what one write of the view says of machines."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}
        self._learned: set[str] = set()

    def take_windows(self, features: pa.Table) -> None:
        """Takes in the windows of records of `Features`."""
        column = features.unify_dictionaries().column("entity").combine_chunks()
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        known = column.dictionary.to_pylist()
        newest = np.zeros(len(known), np.int64)
        np.maximum.at(newest, column.indices.to_numpy(), features.column("window_end").to_numpy())
        for entity, end in zip(known, newest.tolist(), strict=True):
            if end:
                self._newest[entity] = max(end, self._newest.get(entity, 0))

    def take_kind(self, entity: str, kind: str) -> None:
        """Takes in the verdict on a series of a machine."""
        if kind != "learning":
            self._learned.add(entity)
        self._newest.setdefault(entity, 0)

    def entries(self, database: Database) -> Iterator[tuple[bytes, bytes]]:
        """The entries to write, what was known before included.

        Args:
            database: The database before the write.
        """
        keys = {entity: MACHINE + names(entity) for entity in self._newest}
        stored = database.get_many(list(keys.values()))
        for (entity, key), value in zip(keys.items(), stored, strict=True):
            before = Machine.of(value)
            newest = max(before.newest, self._newest[entity])
            after = Machine(newest, before.learned or entity in self._learned)
            if after != before:
                yield key, after.stored()


def machines(database: Database) -> Iterator[tuple[str, Machine]]:
    """All machines, in the order of their names."""
    for key, value in database.scan(MACHINE):
        yield parts(key[len(MACHINE) :])[0], Machine.of(value)

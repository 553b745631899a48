"""The models of a shard in its state, kept like a log: a micro-batch writes the rows that it has changed.

The rows of a table are divided into chunks. A micro-batch that changes most rows of some chunks writes these chunks
anew. One that changes few rows of many chunks writes those rows, and some chunks anew in turn, those that were written
longest ago; so that there is never much to be read besides the chunks. What is written is never changed: what the
models were at an instant needs no copy, but a list of its segments.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import numpy as np
import polars as pl

from engine.state.segments import ShardState, Tables, pack, unpack
from pipelines.jobs.detectors.metrics.state import DetectionState
from pipelines.jobs.detectors.state_table import StateTable, as_frame

ROWS, MOST_CHANGES = 2048, 128
"""Rows of a chunk; about how many changes are kept of a table before all its chunks were written anew."""

MOST_REPLACED = 0.5
"""A table of which more than this share are models that wider ones have replaced is written anew without them."""

_NOW, _ROW, _WORST = "now", "__row", "worst"
_NOTHING: Mapping[str, Any] = {"tables": {}, _WORST: None, "digest": ""}
_EMPTY: Mapping[str, Any] = {"height": 0, "chunks": [], "changes": []}
_ONE_VALUE = "models"
"""The segment with all models as one value, as older versions wrote it."""


class ModelLog:
    """The models of a shard now and at some instants.

    Models that wider ones have replaced stay in their tables until they are the most of one.

    State: segments ``models/<number>`` hold a chunk, the changes of a table, or the worst verdicts; a later one has a
    greater number. The note ``models`` has the next ``number``, and what makes up each of the ``versions``, the present
    one and the earlier ones by their time: for each table its ``height``, the numbers of its ``chunks`` in order of
    their rows and of its ``changes``; ``worst``; and a ``digest`` that no other content has.

    Args:
        state: The state of the shard.
    """

    def __init__(self, state: ShardState) -> None:
        self.state = state
        self.notes: dict[str, Any] = state.notes.get("models", {"number": 0, "versions": {}})

    @property
    def digest(self) -> str | None:
        """A text that no other content of the present models has; ``None`` if they are not stored in this way."""
        version = self.notes["versions"].get(_NOW)
        return version["digest"] if version else None

    def read(self, models: DetectionState, time: int | None = None) -> bool:
        """Reads what the models are now, or were at an instant, into a new state.

        Returns:
            False if there are none.
        """
        version = self.notes["versions"].get(_NOW if time is None else str(time))
        if version is None:
            return self._read_one_value(models, _ONE_VALUE if time is None else f"snapshot/{time}")
        for name, table in models.tables.items():
            if name in version["tables"]:
                self._read_table(table, version["tables"][name], name)
        if version[_WORST] is not None:
            models.put_worst(self._read(version[_WORST])[_WORST])
        models.stored()
        return True

    def write(self, models: DetectionState) -> None:
        """Stores the models as those of now: the rows that were touched since they were read or stored."""
        versions = self.notes["versions"]
        before = versions.get(_NOW, _NOTHING)
        versions[_NOW] = self._version(models, before)
        self.state.remove(_ONE_VALUE)
        self._save(before)

    def keep(self, time: int, models: DetectionState) -> None:
        """Stores the models as those of now and of an instant."""
        self.write(models)
        former = self.notes["versions"].pop(str(time), None)
        self.notes["versions"][str(time)] = self.notes["versions"][_NOW]
        self.state.remove(f"snapshot/{time}")
        self._save(former)

    def replace(self, time: int, models: DetectionState) -> None:
        """Stores models as those of an instant: they are new, or were read as those of that instant and changed."""
        before = self.notes["versions"].get(str(time), _NOTHING)
        self.notes["versions"][str(time)] = self._version(models, before)
        self.state.remove(f"snapshot/{time}")
        self._save(before)

    def forget(self, time: int) -> None:
        """Removes the models of an instant."""
        self.state.remove(f"snapshot/{time}")
        self._save(self.notes["versions"].pop(str(time), None))

    def _read_table(self, table: StateTable, stored: dict[str, Any], name: str) -> None:
        for number in stored["chunks"]:
            table.fill(self._read(number)[name].to_arrow())
        written = np.array(stored["chunks"])
        for number in stored["changes"]:
            changes = self._read(number)[name]
            rows = changes[_ROW].to_numpy()
            later = written[rows // ROWS] < number  # a chunk that was written after the changes has them
            table.change(rows[later], changes.filter(pl.Series(later)).to_arrow())

    def _version(self, models: DetectionState, before: Mapping[str, Any]) -> dict[str, Any]:
        """What makes up the models, after that of it is stored which is not in an earlier version of them."""
        values: list[bytes] = []
        anew = models.drop_replaced(MOST_REPLACED)
        stored_tables = {name: stored for name, stored in before["tables"].items() if name not in anew}
        tables = {
            name: self._write_table(table, stored_tables.get(name, _EMPTY), name, values)
            for name, table in models.tables.items()
            if len(table)
        }
        worst = before[_WORST]
        if worst is None or not models.worst.equals(models.stored_worst):
            worst = self._put({_WORST: models.worst}, values) if models.worst.height else None
        version = {"tables": tables, _WORST: worst}
        content = [before["digest"].encode(), *values, json.dumps(version).encode()]
        models.stored()
        return version | {"digest": sha256(b"".join(content)).hexdigest()}

    def _write_table(
        self, table: StateTable, stored: Mapping[str, Any], name: str, values: list[bytes]
    ) -> Mapping[str, Any]:
        rows, height = table.touched, stored["height"]
        if not len(rows):
            return stored
        chunks, changes = list(stored["chunks"]), list(stored["changes"])
        chunks += [-1] * (-(-len(table) // ROWS) - len(chunks))
        whole = np.unique(rows[rows >= height] // ROWS)  # new rows are in no changes, as these have no keys
        others = rows[~np.isin(rows // ROWS, whole)]
        touched, counts = np.unique(others // ROWS, return_counts=True)
        turns = max(-(-2 * len(others) // ROWS), -(-len(chunks) // MOST_CHANGES))
        if len(touched) <= max(turns, 1) or 3 * counts.sum() >= len(touched) * ROWS:
            whole = np.union1d(whole, touched)
        else:
            changed = as_frame(table.to_arrow(others)).with_columns(pl.Series(_ROW, others))
            changes.append(self._put({name: changed}, values))
            oldest = np.argsort(np.array(chunks), kind="stable")[:turns]
            whole = np.union1d(whole, oldest)
        for chunk in whole.tolist():
            rows_in_chunk = slice(chunk * ROWS, min((chunk + 1) * ROWS, len(table)))
            chunks[chunk] = self._put({name: as_frame(table.to_arrow(rows_in_chunk))}, values)
        return {"height": len(table), "chunks": chunks, "changes": [n for n in changes if n > min(chunks)]}

    def _put(self, tables: Tables, values: list[bytes]) -> int:
        """Stores some tables; returns the number of their segment, and adds the hash of its content to ``values``."""
        number, value = self.notes["number"], pack(tables)
        self.notes["number"] = number + 1
        self.state.put(f"models/{number}", value, copied=False)
        values.append(sha256(value).digest())
        return int(number)

    def _read(self, number: int) -> Tables:
        value = self.state.get(f"models/{number}")
        assert value is not None, f"part {number} of the models is noted and not there"
        return unpack(value)

    def _save(self, gone: Mapping[str, Any] | None = None) -> None:
        """Removes the segments of a former version that are in no other."""
        self.state.notes["models"] = self.notes
        if gone:
            used = {number for version in self.notes["versions"].values() for number in _numbers(version)}
            for number in sorted(set(_numbers(gone)) - used):
                self.state.remove(f"models/{number}")

    def _read_one_value(self, models: DetectionState, name: str) -> bool:
        value = self.state.get(name)
        if not value:
            return False
        models.fill({table: frame.to_arrow() for table, frame in unpack(value).items()})
        return True


def _numbers(version: Mapping[str, Any]) -> Iterator[int]:
    for table in version["tables"].values():
        yield from table["chunks"]
        yield from table["changes"]
    if version[_WORST] is not None:
        yield version[_WORST]

"""State of one shard: named segments, each some named tables as one binary value.

Only the segments that a batch changes are written, so the cost of a batch follows what is open, not what is retained.
Tables are Arrow and evolve by column name: a column that an older state lacks gets its default.
"""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import orjson
import polars as pl

Tables = dict[str, pl.DataFrame]
_NOTES = "notes"


class Segments(ABC):
    """The store of one shard's segments."""

    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """The value of a segment, or ``None``."""

    @abstractmethod
    def put(self, name: str, value: bytes) -> None:
        """Writes a segment."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Forgets a segment; none there is no error."""


class DictSegments(Segments):
    """Segments in a dictionary: for the bounded runner and tests."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def get(self, name: str) -> bytes | None:
        return self.values.get(name)

    def put(self, name: str, value: bytes) -> None:
        self.values[name] = value

    def remove(self, name: str) -> None:
        self.values.pop(name, None)


class ShardState(Segments):
    """The segments of a shard, with what belongs to all of them in one more: their sizes, and small notes.

    A segment is a round trip to Spark, so what is small is a note; all notes are read at once and written at once.

    Args:
        segments: The store.

    Attributes:
        notes: JSON values by name, kept by `save`.
    """

    def __init__(self, segments: Segments) -> None:
        self.segments = segments
        stored = orjson.loads(segments.get(_NOTES) or b"{}")
        self.notes: dict[str, Any] = stored.get("notes", {})
        self.sizes: dict[str, int] = stored.get("sizes", {})

    def get(self, name: str) -> bytes | None:
        return self.segments.get(name) if name in self.sizes else None

    def put(self, name: str, value: bytes) -> None:
        self.sizes[name] = len(value)
        self.segments.put(name, value)

    def remove(self, name: str) -> None:
        if self.sizes.pop(name, None) is not None:
            self.segments.remove(name)

    def scope(self, name: str) -> ShardState:
        """A part of this state for one of several operators: segments and notes of its own, saved with this one."""
        return _Scope(self, name)

    def save(self) -> int:
        """Writes the notes; returns how many bytes are held in all."""
        notes = orjson.dumps({"notes": self.notes, "sizes": self.sizes})
        self.segments.put(_NOTES, notes)
        return sum(self.sizes.values()) + len(notes)


class _Scope(ShardState):
    def __init__(self, whole: ShardState, name: str) -> None:
        self.whole, self.prefix = whole, f"{name}:"
        self.notes = whole.notes.setdefault(f"scope {name}", {})

    def get(self, name: str) -> bytes | None:
        return self.whole.get(self.prefix + name)

    def put(self, name: str, value: bytes) -> None:
        self.whole.put(self.prefix + name, value)

    def remove(self, name: str) -> None:
        self.whole.remove(self.prefix + name)


def pack(tables: Mapping[str, pl.DataFrame]) -> bytes:
    """Some tables as one value: a JSON line of names and lengths, then their Arrow streams, compressed.

    >>> unpack(pack({"a": pl.DataFrame({"x": [1]})}))["a"]["x"].to_list()
    [1]
    """
    blobs = {}
    for name, table in tables.items():
        sink = io.BytesIO()
        table.write_ipc_stream(sink, compression="lz4")
        blobs[name] = sink.getvalue()
    header = json.dumps([[name, len(blob)] for name, blob in blobs.items()]).encode()
    return b"\n".join([header, b"".join(blobs.values())])


def unpack(value: bytes) -> Tables:
    """Inverse of `pack`."""
    cut = value.index(b"\n") + 1
    tables, at = {}, cut
    for name, length in json.loads(value[:cut]):
        tables[name] = pl.read_ipc_stream(io.BytesIO(value[at : at + length]))
        at += length
    return tables

"""The state of one shard: named segments, each of which holds some named tables as one binary value.

Only segments that a micro-batch changes are written, so its cost follows what is open, not all that is retained. Tables
are in Arrow format and evolve by column name: a column that an older state lacks gets its default.
"""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import polars as pl

Tables = dict[str, pl.DataFrame]
NOTES = "notes"
"""Name of the segment with sizes and notes, which each shard has after its first micro-batch."""
LARGE = 65_536
"""Segments of this many bytes or more have a digest. Smaller ones are read through the store just as fast."""


class Segments(ABC):
    """Interface of a store for the segments of one shard.

    Attributes:
        kept: Folder in memory for what was unpacked, see `engine.state.kept_arrays`; ``None``: nothing is kept.
    """

    kept: Path | None = None

    @abstractmethod
    def get(self, name: str, digest: str = "") -> bytes | None:
        """The value of a segment, or ``None`` if it does not exist.

        Args:
            name: The name of the segment.
            digest: What was given when it was written, so that the store may hand out a copy that it has elsewhere.
        """

    @abstractmethod
    def put(self, name: str, value: bytes, digest: str = "") -> None:
        """Writes a segment.

        Args:
            name: The name of the segment.
            value: Its content.
            digest: A text that no other content has; empty if the content is small.
        """

    @abstractmethod
    def remove(self, name: str) -> None:
        """Removes a segment, if it exists."""


class DictSegments(Segments):
    """Segments in a dictionary, for bounded runs and tests; see `Segments` for ``kept``."""

    def __init__(self, kept: Path | None = None) -> None:
        self.values: dict[str, bytes] = {}
        self.kept = kept

    def get(self, name: str, digest: str = "") -> bytes | None:
        return self.values.get(name)

    def put(self, name: str, value: bytes, digest: str = "") -> None:
        self.values[name] = value

    def remove(self, name: str) -> None:
        self.values.pop(name, None)


class ShardState(Segments):
    """The segments of a shard, and one more with their sizes and digests and with *notes*, which are small JSON values.

    Each segment costs a round trip to Spark. So small values are notes, which are all read at once and written at once.

    Args:
        segments: The store of the segments.

    Attributes:
        notes: JSON values by name; `save` stores them.
    """

    def __init__(self, segments: Segments) -> None:
        self.segments, self.kept = segments, segments.kept
        stored = orjson.loads(segments.get(NOTES) or b"{}")
        self.notes: dict[str, Any] = stored.get("notes", {})
        self.sizes: dict[str, int] = stored.get("sizes", {})
        self.digests: dict[str, str] = stored.get("digests", {})

    def get(self, name: str, digest: str = "") -> bytes | None:
        return self.segments.get(name, digest or self.digests.get(name, "")) if name in self.sizes else None

    def put(self, name: str, value: bytes, digest: str = "", copied: bool = True) -> None:
        """Writes a segment; ``copied`` says whether the store may keep a copy of it elsewhere."""
        self.sizes[name] = len(value)
        self.digests.pop(name, None)
        if copied and len(value) >= LARGE:
            self.digests[name] = digest = sha256(value).hexdigest()
        self.segments.put(name, value, digest)

    def remove(self, name: str) -> None:
        self.digests.pop(name, None)
        if self.sizes.pop(name, None) is not None:
            self.segments.remove(name)

    def scope(self, name: str) -> ShardState:
        """The part of this state for one operator of a chain: its own segments and notes, saved with this one."""
        return _Scope(self, name)

    def save(self) -> int:
        """Stores the notes; returns the size of all segments in bytes."""
        notes = orjson.dumps({"notes": self.notes, "sizes": self.sizes, "digests": self.digests})
        self.segments.put(NOTES, notes)
        return sum(self.sizes.values()) + len(notes)


class _Scope(ShardState):
    def __init__(self, whole: ShardState, name: str) -> None:
        self.whole, self.prefix = whole, f"{name}:"
        self.kept = whole.kept.with_name(f"{whole.kept.name}:{name}") if whole.kept else None
        self.notes = whole.notes.setdefault(f"scope {name}", {})

    def get(self, name: str, digest: str = "") -> bytes | None:
        return self.whole.get(self.prefix + name, digest)

    def put(self, name: str, value: bytes, digest: str = "", copied: bool = True) -> None:
        self.whole.put(self.prefix + name, value, digest, copied)

    def remove(self, name: str) -> None:
        self.whole.remove(self.prefix + name)


def pack(tables: Mapping[str, pl.DataFrame]) -> bytes:
    """Packs tables into one compressed value: a JSON line with names and lengths, then their Arrow streams.

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


def tables_by_name(parts: Sequence[Tables]) -> Iterator[tuple[str, list[pl.DataFrame]]]:
    """Groups the tables of several sets by their names."""
    for name in dict.fromkeys(name for part in parts for name in part):
        yield name, [part[name] for part in parts if name in part]


def joined(parts: Sequence[Tables]) -> Tables:
    """One set of tables with the rows of several sets."""
    return {name: pl.concat(tables, how="diagonal_relaxed") for name, tables in tables_by_name(parts)}

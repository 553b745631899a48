"""State of one shard: named segments, each some named tables as one binary value.

Only the segments that a batch changes are written, so the cost of a batch follows what is open, not what is retained.
Tables are Arrow and evolve by column name: a column that an older state lacks gets its default.
"""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping

import polars as pl

Tables = dict[str, pl.DataFrame]


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


def pack(tables: Mapping[str, pl.DataFrame]) -> bytes:
    """Some tables as one value: a JSON line of names and lengths, then their Arrow streams.

    >>> unpack(pack({"a": pl.DataFrame({"x": [1]})}))["a"]["x"].to_list()
    [1]
    """
    blobs = {}
    for name, table in tables.items():
        sink = io.BytesIO()
        table.write_ipc_stream(sink, compression="uncompressed")
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

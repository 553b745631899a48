"""Writes a slice of history to the archive: as messages in the partitions of the log, with a watermark in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from engine.columns.dictionaries import compact
from engine.columns.partitioning import slots
from engine.formats.columnar import encode
from engine.runtime.intake import KAFKA
from pipelines.contracts.records import Telemetry
from pipelines.jobs.archive.files import WriteFiles
from pipelines.jobs.archive.layout import TopicFolder, Write, imported_name

_MESSAGE_ROWS = 4_000
"""Records of a message, about."""


class HistoryWriter:
    """Writes slices of history, each just before what is there.

    A slice is one write of the archive, so it is there as a whole or not at all, whenever the process ends. Its records
    are in the order of event time, cut at the same instants in all partitions, and each message has the watermark of
    its last instant: a replay closes windows as it would have live.

    Args:
        folder: The folders of the topic.
        places: For each partition the offset that follows.
        latest: The greatest watermark, epoch milliseconds: what follows may be out of order.
        origin: Where the records come from, for people.
    """

    def __init__(self, folder: TopicFolder, places: Mapping[int, int], latest: int, origin: str) -> None:
        self._folder, self._places, self._latest, self._origin = folder, dict(places), latest, origin
        self._schema = Telemetry.arrow_schema()
        self._files = WriteFiles(folder, Telemetry, folder.importing)

    def write(self, begin: int, end: int, records: pa.Table) -> None:
        """Writes all records of a slice of event time, which lies just before the slices that are there.

        Args:
            begin: First event time of the slice, epoch milliseconds.
            end: The event time behind its last.
            records: The records, in any order.

        Raises:
            OSError: If a file cannot be written; nothing of the slice is there then.
        """
        messages = list(self._messages(begin, end, records))
        count = len(messages) // len(self._places)
        start = {p: offset - count for p, offset in self._places.items()}
        values = [value for _, _, value in messages]
        partitions = np.array([p for p, _, _ in messages], np.int32)
        nth = np.tile(np.arange(count), len(self._places))
        offsets = np.array([start[p] for p in partitions.tolist()], np.int64) + nth
        topic = pa.array([self._folder.topic]).take(pa.array(np.zeros(len(values), np.int32)))
        arrived = np.array([at for _, at, _ in messages], np.int64)
        columns = [pa.array(values, pa.binary()), topic, *map(pa.array, (partitions, offsets, arrived))]
        rows = pa.Table.from_arrays(columns, schema=KAFKA)
        self._files.make(Write(imported_name(begin, end), start, self._places, origin=self._origin), rows)
        self._places = start

    def _messages(self, begin: int, end: int, records: pa.Table) -> Iterator[tuple[int, int, bytes]]:
        """Partition, arrival and value of each message, by partition: as many in each."""
        times = records["time"].to_numpy()
        order = np.argsort(times, kind="stable")
        times, records = times[order], records.take(pa.array(order))
        cuts = _cuts(times, len(self._places) * _MESSAGE_ROWS, end)
        mine = slots(records["entity"], len(self._places))
        for partition in self._places:
            rows = np.flatnonzero(mine == partition)
            own = records.take(pa.array(rows))
            first = 0
            for cut in cuts:
                last = int(np.searchsorted(times[rows], cut))
                yield partition, cut, encode(self._part(own, first, last), min(cut - 1, self._latest))
                first = last

    def _part(self, records: pa.Table, first: int, last: int) -> pa.Table:
        if first == last:
            return self._schema.empty_table()
        part = records.slice(first, last - first)
        columns = [
            compact(column, field.type) if pa.types.is_dictionary(field.type) else column
            for column, field in zip(part.select(self._schema.names).columns, self._schema, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=self._schema)


def _cuts(times: np.ndarray, most: int, end: int) -> list[int]:
    """Instants between which about so many records lie, and the end; records of one instant stay together.

    >>> _cuts(np.array([1, 2, 2, 3, 4, 4]), 2, 9)
    [2, 3, 4, 9]
    """
    inside = np.unique(times[most - 1 :: most]) if len(times) > most else np.zeros(0, np.int64)
    return [*(int(cut) for cut in inside if times[0] < cut < end), end]


def clean(folder: TopicFolder) -> None:
    """Removes what an interrupted import has left: files of a slice that is not complete."""
    for file in folder.importing.glob("*.parquet"):
        file.unlink()
    for file in folder.records.glob("day=*/part-import-*.parquet"):
        if not folder.listed(file.stem.removeprefix("part-")).exists():
            file.unlink()


def remove(folder: TopicFolder, writes: list[Write]) -> None:
    """Removes imported history: first the lists of messages, then the records, for readers at once each.

    Args:
        folder: The folders of the topic.
        writes: The writes of imported history, in the order of the log.
    """
    for write in writes:
        folder.listed(write.name).unlink(missing_ok=True)
    clean(folder)

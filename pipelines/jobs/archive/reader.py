"""Reads the archive of a topic as the log: which offsets it has, and the very messages again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.columns.dictionaries import compact
from engine.formats.columnar import encode
from engine.runtime.intake import KAFKA
from engine.spec.errors import NewnormalError
from engine.spec.record import Record
from pipelines.jobs.archive.layout import WHOLE, Places, TopicFolder, Write, pieces

_PIECE_ROWS = 500_000
"""Records that are held in memory at a time, about."""

_BATCH_ROWS = 2_000_000
"""Records of a micro-batch, about, however few messages they came in."""


class ArchiveReader:
    """The messages that the archive has of one topic.

    Messages are equal in columns, watermark, offset and arrival to those of the log. Records of days that were deleted
    are left out of their messages.

    Args:
        folder: The folders of the topic.
        record: Type of the records.
    """

    def __init__(self, folder: TopicFolder, record: type[Record]) -> None:
        self.folder, self.record, self._record = folder, record, record.arrow_schema()
        self.writes = folder.writes()
        self._spans = _spans(self.writes)

    @property
    def start(self) -> Places:
        """The first offset of each partition from which on nothing is missing; empty if the archive has nothing."""
        return {p: spans[-1][0] for p, spans in self._spans.items()}

    @property
    def first(self) -> Places:
        """The first offset of each partition, although later ones may be missing; empty if the archive has nothing."""
        return {p: spans[0][0] for p, spans in self._spans.items()}

    @property
    def end(self) -> Places:
        """The next offset of each partition; empty if the archive has nothing."""
        return {p: spans[-1][1] for p, spans in self._spans.items()}

    def reach(self, partition: int, start: int) -> int:
        """The next offset behind what follows an offset without a gap; the offset itself if it is not there."""
        return next((end for begin, end in self._spans.get(partition, ()) if begin <= start < end), start)

    def missing(self, partition: int, start: int, end: int) -> int:
        """How many offsets of a partition between two the archive has not got."""
        spans = self._spans.get(partition, ())
        return max(0, end - start) - sum(max(0, min(end, last) - max(start, first)) for first, last in spans)

    def since(self, arrived: int) -> Places:
        """Where each partition has to be read from to get all that arrived at or after an instant (epoch milliseconds).

        That is the offset of the first such message. If messages before it are missing, which may have arrived after
        the instant too, it is the first of these; and the archive's end, if nothing in it arrived so late.
        """
        before: dict[int, int] = {}
        first_late: dict[int, int] = {}
        for write in self.writes:
            if len(first_late) == len(self._spans):
                break
            listed = self._listed(write, ["partition", "offset", "arrived"])
            earlier = pc.less(listed["arrived"], arrived)
            before |= _of_each(listed.filter(earlier), "max")
            first_late = _of_each(listed.filter(pc.invert(earlier)), "min") | first_late
        places = {**self.end, **first_late}
        return places | {p: min(places[p], self.reach(p, last + 1)) for p, last in before.items()}

    def ahead(self, start: Places, most: int) -> Places:
        """How far a micro-batch reads.

        Args:
            start: Where each partition begins.
            most: Largest number of messages, if a single one of each partition is not more; a message of more than
                `_BATCH_ROWS` / ``most`` records counts as several.

        Returns:
            The next offset of each partition; each has its share, so that all partitions advance together in time.
        """
        end, left = dict(start), float(most)
        for write in self.writes:
            if all(end.get(p, 0) >= offset for p, offset in write.end.items()):
                continue
            listed = self._listed(write, ["partition", "offset", "rows"]).sort_by("offset")
            partitions, offsets = listed["partition"].to_numpy(), listed["offset"].to_numpy()
            sizes = np.maximum(1.0, listed["rows"].to_numpy() * (most / _BATCH_ROWS))
            waiting = {p: (partitions == p) & (offsets >= end.get(p, 0)) for p in write.end}
            count = float(sum(sizes[mine].sum() for mine in waiting.values()))
            if count <= left:
                end |= {p: max(offset, end.get(p, 0)) for p, offset in write.end.items()}
                left -= count
                continue
            if left < most:  # the micro-batch ends with a whole write
                break
            for p, mine in waiting.items():
                if mine.any():
                    share = np.searchsorted(np.cumsum(sizes[mine]), sizes[mine].sum() * left / count, "right")
                    end[p] = int(offsets[mine][max(0, int(share) - 1)]) + 1
            break
        return end

    def messages(self, partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """The messages of a partition between two offsets, in order, as `engine.runtime.intake.KAFKA` rows.

        Raises:
            NewnormalError: ``ARCHIVE_BROKEN`` if records are missing although their day was not deleted.
        """
        for write in self.writes:
            if write.end.get(partition, 0) <= start or write.start.get(partition, 0) >= end:
                continue
            listed = self._listed(write).filter(
                (pc.field("partition") == partition) & (pc.field("offset") >= start) & (pc.field("offset") < end)
            )
            listed = listed.sort_by("offset")
            for piece in pieces(listed, np.maximum(listed["rows"].to_numpy(), 0), _PIECE_ROWS):
                yield self._batch(write, piece)

    def _batch(self, write: Write, listed: pa.Table) -> pa.RecordBatch:
        """Messages of one partition from their rows in the file of messages, and from the files of records."""
        offsets, counts = listed["offset"].to_numpy(), listed["rows"].to_numpy()
        files = [file for day in write.days if (file := self.folder.part(day, write.name)).exists()]
        records = self._records(files, listed["partition"][0].as_py(), int(offsets[0]), int(offsets[-1]) + 1)
        own = records["offset"].to_numpy()
        begins, ends = np.searchsorted(own, offsets, "left"), np.searchsorted(own, offsets, "right")
        if len(files) == len(write.days) and (ends - begins != np.maximum(counts, 0)).any():
            what = f"{write.name} has other records than its messages had"
            accepted = "the files as the archive job wrote them, e.g. from a backup"
            raise NewnormalError("ARCHIVE_BROKEN", what, str(self.folder.records), accepted)
        watermarks, whole = listed["watermark"].to_pylist(), listed["value"]
        rows = records.select(self._record.names)
        values = [
            whole[n].as_py() if counts[n] == WHOLE else encode(self._cut(rows, begins[n], ends[n]), watermarks[n])
            for n in range(len(offsets))
        ]
        topic = pa.array([self.folder.topic]).take(pa.array(np.zeros(len(values), np.int32)))
        columns = [pa.array(values, pa.binary()), topic, *(listed[name] for name in ("partition", "offset", "arrived"))]
        (batch,) = pa.Table.from_arrays(columns, schema=KAFKA).combine_chunks().to_batches()
        return batch

    def _cut(self, rows: pa.Table, begin: int, end: int) -> pa.Table:
        """The records of one message, with dictionaries of their own values."""
        part = rows.slice(begin, end - begin)
        columns = [
            compact(column, field.type) if pa.types.is_dictionary(field.type) else column
            for column, field in zip(part.columns, self._record, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=self._record) if end > begin else self._record.empty_table()

    def _records(self, files: list[Path], partition: int, start: int, end: int) -> pa.Table:
        """The records of a partition between two offsets, in order of offset and row."""
        filters = [("partition", "=", partition), ("offset", ">=", start), ("offset", "<", end)]
        columns = [*self._record.names, "offset", "row"]
        schema = pa.schema([*self._record, ("offset", pa.int64()), ("row", pa.int32())])
        tables = [schema.empty_table()]
        for file in files:
            try:
                tables.append(pq.read_table(file, columns=columns, filters=filters, partitioning=None).cast(schema))
            except (OSError, pa.ArrowException) as error:
                accepted = "the file as the archive job wrote it, e.g. from a backup"
                raise NewnormalError("ARCHIVE_BROKEN", f"{file.name}: {error}", str(file.parent), accepted) from None
        table = pa.concat_tables(tables).unify_dictionaries()
        if len(files) > 1:
            order = pc.sort_indices(table, [("offset", "ascending"), ("row", "ascending")])
            table = table.take(order)
        return table.combine_chunks()

    def _listed(self, write: Write, columns: list[str] | None = None) -> pa.Table:
        return pq.read_table(self.folder.listed(write.name), columns=columns, partitioning=None)


def _spans(writes: list[Write]) -> dict[int, list[tuple[int, int]]]:
    """The spans of offsets of each partition that writes have without a gap: the first and the next one, in order."""
    spans_of: dict[int, list[tuple[int, int]]] = {}
    for write in writes:
        for partition, end in write.end.items():
            spans, start = spans_of.setdefault(partition, []), write.start.get(partition, 0)
            if spans and start <= spans[-1][1]:
                spans[-1] = spans[-1][0], max(spans[-1][1], end)
            elif end > start or not spans:
                spans.append((start, end))
    return spans_of


def _of_each(listed: pa.Table, choice: Literal["min", "max"]) -> dict[int, int]:
    """The least or greatest offset of each partition among some messages."""
    offsets = listed.group_by("partition").aggregate([("offset", choice)]).to_pydict()
    return dict(zip(offsets["partition"], offsets[f"offset_{choice}"], strict=True))

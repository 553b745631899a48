"""Writes the messages of a micro-batch to the archive, exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.formats.columnar import decode
from engine.private_files import private_folder
from engine.spec.errors import NewnormalError
from engine.spec.record import Record
from pipelines.jobs.archive.layout import (
    DAY_MS,
    FIRST_MS,
    KAFKA_COLUMNS,
    LAST_MS,
    MESSAGES,
    WHOLE,
    Places,
    TopicFolder,
    Write,
    day_of,
    pieces,
    place,
)

_CHUNK_BYTES = 32 << 20
"""Bytes of messages that are decoded at a time; they become one row group of each day."""


class ArchiveWriter:
    """Writes one topic to the archive. Only one process at a time may have one of a topic.

    What an interrupted write has left is removed: the micro-batch is repeated, and writes it again. Messages that the
    archive has already are left out, so that a new checkpoint, which reads the log from its start, doubles nothing.

    Args:
        folder: The folders of the topic.
        record: Type of the records.
        time: Name of the event-time column.
    """

    def __init__(self, folder: TopicFolder, record: type[Record], time: str = "time") -> None:
        self._folder, self._time, self._record = folder, time, record.arrow_schema()
        self._schema = pa.schema([*self._record, *KAFKA_COLUMNS])
        writes = folder.writes()
        self._done = {write.name for write in writes}
        self._ends: dict[int, int] = {}
        for write in writes:
            self._reached(write)
        self._clean()

    def write(self, name: str, rows: pa.Table, start: Places, end: Places) -> int:
        """Writes the messages of a micro-batch; returns the number of records that were written.

        Args:
            name: Name of the write; a write of this name that is complete is left as it is.
            rows: Kafka rows of the topic: ``value``, ``partition``, ``offset``, ``arrived``.
            start: Where each partition began in this micro-batch.
            end: The next offset of each partition.

        Raises:
            OSError: If a file cannot be written; the call may be repeated.
        """
        if name in self._done or all(self._ends.get(p, 0) >= offset for p, offset in end.items()):
            return 0
        rows = self._news(rows)
        listed: list[pa.Table] = []
        records = 0
        with ExitStack() as files:
            days: dict[str, tuple[Path, pq.ParquetWriter]] = {}
            sizes = pc.fill_null(pc.binary_length(rows["value"]), 0).to_numpy()
            for chunk in pieces(rows, sizes, _CHUNK_BYTES):
                messages, table = self._decoded(chunk)
                listed.append(messages)
                records += table.num_rows
                for day, part in _by_day(table, self._time):
                    if day not in days:
                        file = self._made(f"{day}.{name}")
                        days[day] = (file, files.enter_context(self._open(file)))
                    days[day][1].write_table(part)
        for day, (file, _) in days.items():
            place(file, self._folder.part(day, name))
        begun = {p: max(offset, self._ends.get(p, offset)) for p, offset in start.items()}
        ended = {p: max(offset, begun.get(p, 0)) for p, offset in end.items()}
        write = Write(name, begun, ended, rows.num_rows, tuple(sorted(days)))
        file = self._made(name)
        table = pa.concat_tables([MESSAGES.empty_table(), *listed]).replace_schema_metadata(write.metadata())
        pq.write_table(table, file, compression="zstd")
        place(file, self._folder.listed(name))
        self._done.add(name)
        self._reached(write)
        return records

    def _news(self, rows: pa.Table) -> pa.Table:
        """The messages that the archive does not have yet, in order of partition and offset."""
        rows = rows.take(pc.sort_indices(rows, [("partition", "ascending"), ("offset", "ascending")]))
        partitions, offsets = rows["partition"].to_numpy(), rows["offset"].to_numpy()
        ends = np.array([self._ends.get(p, 0) for p in range(int(partitions.max(initial=-1)) + 1)], np.int64)
        return rows.filter(pa.array(offsets >= ends[partitions])) if len(offsets) else rows

    def _decoded(self, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Messages, as rows of `MESSAGES`, and their records with `KAFKA_COLUMNS`."""
        tables, counts, watermarks, whole = [], [], [], []
        for value in rows["value"]:
            table, watermark = self._table(value)
            whole.append(value.as_py() if table is None else None)
            counts.append(WHOLE if table is None else table.num_rows)
            watermarks.append(watermark)
            if table is not None and table.num_rows:
                tables.append(table)
        columns = [*(rows[name] for name in ("partition", "offset", "arrived")), pa.array(watermarks, pa.int64())]
        columns += [pa.array(counts, pa.int32()), pa.array(whole, pa.binary())]
        messages = pa.Table.from_arrays(columns, schema=MESSAGES)
        sizes = np.maximum(counts, 0)
        at = np.repeat(np.arange(len(sizes)), sizes)
        row = np.arange(len(at)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        places = messages.select(["partition", "offset", "arrived", "watermark"]).take(pa.array(at))
        places = places.append_column("row", pa.array(row, pa.int32())).select(KAFKA_COLUMNS.names)
        records = pa.concat_tables([self._record.empty_table(), *tables]).unify_dictionaries()
        return messages, pa.Table.from_arrays([*records.columns, *places.columns], schema=self._schema)

    def _table(self, value: pa.Scalar) -> tuple[pa.Table | None, int | None]:
        """The records of a message and its writer's watermark; no table if the message must be kept whole."""
        if not value.is_valid:
            return None, None
        try:
            table, watermark = decode(value.as_buffer(), self._record)
        except NewnormalError:
            return None, None
        if table.num_rows:
            span = pc.min_max(table[self._time])
            if not FIRST_MS <= span["min"].as_py() <= span["max"].as_py() < LAST_MS:
                return None, None
        return table, watermark

    def _open(self, file: Path) -> pq.ParquetWriter:
        packed = {self._time: "DELTA_BINARY_PACKED", "row": "DELTA_BINARY_PACKED"}
        keywords = [field.name for field in self._record if pa.types.is_dictionary(field.type)]
        repeated = [*keywords, *(name for name in KAFKA_COLUMNS.names if name not in packed)]
        return pq.ParquetWriter(file, self._schema, compression="zstd", use_dictionary=repeated, column_encoding=packed)

    def _made(self, name: str) -> Path:
        private_folder(self._folder.root)
        self._folder.writing.mkdir(parents=True, exist_ok=True)
        return self._folder.writing / f"{name}.parquet"

    def _reached(self, write: Write) -> None:
        for partition, offset in write.end.items():
            self._ends[partition] = max(offset, self._ends.get(partition, 0))

    def _clean(self) -> None:
        """Removes the files of writes that were not completed."""
        for file in self._folder.writing.glob("*"):
            file.unlink()
        for file in self._folder.records.glob("day=*/part-*.parquet"):
            if file.stem.removeprefix("part-") not in self._done:
                file.unlink()
                with suppress(OSError):
                    file.parent.rmdir()


def _by_day(records: pa.Table, time: str) -> Sequence[tuple[str, pa.Table]]:
    numbers = records[time].to_numpy() // DAY_MS
    days = np.unique(numbers)
    if len(days) == 1:
        return [(day_of(int(days[0])), records)]
    return [(day_of(int(day)), records.filter(pa.array(numbers == day))) for day in days]

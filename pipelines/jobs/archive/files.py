"""Writes one micro-batch of messages to the files of the archive: records by day, and the list of messages last."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
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
    TopicFolder,
    Write,
    day_of,
    pieces,
    place,
)

_CHUNK_BYTES = 32 << 20
"""Bytes of messages that are decoded at a time; they become one row group of each day."""


class WriteFiles:
    """Makes the files of writes. They are complete when the list of messages is in its place, which is put there last.

    Args:
        folder: The folders of the topic.
        record: Type of the records.
        aside: Folder in which files are made before they are put in their place, on the same disk.
        time: Name of the event-time column.
    """

    def __init__(self, folder: TopicFolder, record: type[Record], aside: Path, time: str = "time") -> None:
        self._folder, self._aside, self._time, self._record = folder, aside, time, record.arrow_schema()
        self._schema = pa.schema([*self._record, *KAFKA_COLUMNS])

    def make(self, write: Write, rows: pa.Table) -> tuple[Write, int]:
        """Makes the files of a write; returns it with its count and days, and the number of records.

        Args:
            write: Its name, its offsets, and where it comes from.
            rows: Its messages in order of partition and offset: ``value``, ``partition``, ``offset``, ``arrived``.

        Raises:
            OSError: If a file cannot be written; the call may be repeated.
        """
        name, records = write.name, 0
        listed: list[pa.Table] = []
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
        write = replace(write, count=rows.num_rows, days=tuple(sorted(days)))
        file = self._made(name)
        table = pa.concat_tables([MESSAGES.empty_table(), *listed]).replace_schema_metadata(write.metadata())
        pq.write_table(table, file, compression="zstd")
        place(file, self._folder.listed(name))
        return write, records

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
        self._aside.mkdir(parents=True, exist_ok=True)
        return self._aside / f"{name}.parquet"


def _by_day(records: pa.Table, time: str) -> Sequence[tuple[str, pa.Table]]:
    numbers = records[time].to_numpy() // DAY_MS
    days = np.unique(numbers)
    if len(days) == 1:
        return [(day_of(int(days[0])), records)]
    return [(day_of(int(day)), records.filter(pa.array(numbers == day))) for day in days]

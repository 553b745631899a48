"""Writes the messages of a micro-batch to the archive, exactly once."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.spec.record import Record
from pipelines.jobs.archive.files import WriteFiles
from pipelines.jobs.archive.layout import IMPORTED, Places, TopicFolder, Write


class ArchiveWriter:
    """Writes one topic to the archive. Only one process at a time may have one of a topic.

    What an interrupted write has left is removed: the micro-batch is repeated, and writes it again. Files of imported
    history are left alone, as an import may run beside the job. Messages that the archive has already are left out, so
    that a new checkpoint, which reads the log from its start, doubles nothing.

    Args:
        folder: The folders of the topic.
        record: Type of the records.
        time: Name of the event-time column.
    """

    def __init__(self, folder: TopicFolder, record: type[Record], time: str = "time") -> None:
        self._folder, self._files = folder, WriteFiles(folder, record, folder.writing, time)
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
        begun = {p: max(offset, self._ends.get(p, offset)) for p, offset in start.items()}
        ended = {p: max(offset, begun.get(p, 0)) for p, offset in end.items()}
        write, records = self._files.make(Write(name, begun, ended), rows)
        self._done.add(name)
        self._reached(write)
        return records

    def _news(self, rows: pa.Table) -> pa.Table:
        """The messages that the archive does not have yet, in order of partition and offset."""
        rows = rows.take(pc.sort_indices(rows, [("partition", "ascending"), ("offset", "ascending")]))
        partitions, offsets = rows["partition"].to_numpy(), rows["offset"].to_numpy()
        ends = np.array([self._ends.get(p, 0) for p in range(int(partitions.max(initial=-1)) + 1)], np.int64)
        return rows.filter(pa.array(offsets >= ends[partitions])) if len(offsets) else rows

    def _reached(self, write: Write) -> None:
        for partition, offset in write.end.items():
            self._ends[partition] = max(offset, self._ends.get(partition, 0))

    def _clean(self) -> None:
        """Removes the files of writes that were not completed."""
        for file in self._folder.writing.glob("*"):
            file.unlink()
        for file in self._folder.records.glob("day=*/part-*.parquet"):
            name = file.stem.removeprefix("part-")
            if name not in self._done and not name.startswith(IMPORTED):
                file.unlink()
                with suppress(OSError):
                    file.parent.rmdir()

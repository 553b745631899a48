"""The archive as a source of Spark, with the rows and the offsets of Kafka.

Rows and offsets have the form of Spark's Kafka source. So the same query, with the same checkpoint, reads the archive
first and the log then: where the archive ends for it, a query on Kafka goes on, as after any restart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from pipelines.jobs.archive.archived import ARCHIVED
from pipelines.jobs.archive.layout import TopicFolder
from pipelines.jobs.archive.reader import ArchiveReader

_ALL = 2**62

Spans = Mapping[str, Mapping[str, int]]
"""An offset for each partition, by topic and partition (as text), as Spark's Kafka source has it."""


def archive_rows(
    spark: SparkSession, readers: Mapping[str, ArchiveReader], start: Spans, end: Spans, most: int
) -> DataFrame:
    """Kafka rows (value, topic, partition, offset, arrived) of the archive, as a stream that ends.

    Args:
        spark: The session.
        readers: The archives of the topics, by their full names.
        start: Where a new checkpoint begins. A checkpoint that exists knows its place.
        end: Where the stream ends.
        most: Largest number of messages of a micro-batch.
    """
    spark.dataSource.register(ArchiveSource)
    folders = {topic: [str(reader.folder.root), reader.record.__name__] for topic, reader in readers.items()}
    plan = {"folders": folders, "start": start, "end": end, "most": most}
    return spark.readStream.format(ArchiveSource.name()).option("plan", json.dumps(plan)).load()


class ArchiveSource(DataSource):
    """Spark's data source ``newnormal_archive``; see `archive_rows`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._plan = json.loads(options["plan"])

    @classmethod
    def name(cls) -> str:
        return "newnormal_archive"

    def schema(self) -> str:
        return "value binary, topic string, partition int, offset bigint, arrived bigint"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        return _StreamReader(self._plan)


@dataclass
class _Range(InputPartition):
    """Messages of a partition that a task reads."""

    topic: str
    partition: int
    start: int
    end: int


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches, in the driver's Python process, and reads them, in the tasks."""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self._plan = dict(plan)
        self._readers: dict[str, ArchiveReader] = {}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        return dict(self._plan["start"])

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        return ReadMaxRows(self._plan["most"])

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """The end is known from the start on."""

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802  Spark's name
        most = max(1, limit.max_rows // len(start)) if isinstance(limit, ReadMaxRows) else _ALL
        return {topic: self._ahead(topic, places, most) for topic, places in start.items()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [
            _Range(topic, int(partition), start[topic][partition], offset)
            for topic, places in end.items()
            for partition, offset in places.items()
            if offset > start[topic][partition]
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Range)
        yield from self._reader(partition.topic).messages(partition.partition, partition.start, partition.end)

    def _ahead(self, topic: str, start: Mapping[str, int], most: int) -> dict[str, int]:
        last: Mapping[str, int] = self._plan["end"][topic]
        ahead = self._reader(topic).ahead({int(p): offset for p, offset in start.items()}, most)
        return {p: max(offset, min(ahead[int(p)], last[p])) for p, offset in start.items()}

    def _reader(self, topic: str) -> ArchiveReader:
        if topic not in self._readers:
            root, record = self._plan["folders"][topic]
            types = {each.__name__: each for each in ARCHIVED.values()}
            self._readers[topic] = ArchiveReader(TopicFolder(Path(root), topic), types[record])
        return self._readers[topic]

    def __getstate__(self) -> dict[str, Any]:
        return {"_plan": self._plan, "_readers": {}}

"""Where generated records go: to Kafka, to files, or into memory."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, Self, TextIO

import polars as pl

from datagen.groundtruth import GroundTruth
from datagen.jsonlines import to_json
from datagen.kafka_writer import Writer
from engine.kafka.admin import ensure_topics
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Log, Placement, Telemetry
from pipelines.contracts.settings import Settings


def make_topics(settings: Settings, bootstrap: str, timeout: float = 30.0) -> None:
    """Makes the topics that a `KafkaSink` writes to, where they are missing.

    Raises:
        NewnormalError: As `ensure_topics`.
    """
    names = (topics.RAW_JSON, topics.LOGS_JSON, topics.GROUNDTRUTH, topics.TOPOLOGY)
    wanted = {settings.topic(name): settings.topic_config(name) for name in names}
    ensure_topics(bootstrap, wanted, settings.kafka.partitions, settings.kafka.replication, timeout)


class RecordSink(Protocol):
    """Takes frames in order of arrival; columns as `Telemetry` and `Log`, and perhaps more."""

    def telemetry(self, frame: pl.DataFrame) -> None:
        """Takes samples."""

    def logs(self, frame: pl.DataFrame) -> None:
        """Takes log lines."""

    def truth(self, rows: list[GroundTruth]) -> None:
        """Takes what was injected."""

    def topology(self, rows: list[Placement]) -> None:
        """Takes which machine runs on which."""

    def flush(self) -> None:
        """Returns when all that was taken is safe."""


class KafkaSink:
    """Writes to `telemetry.json`, `logs.json`, `groundtruth` and `topology`, keyed by machine; the topics must exist.

    Args:
        writer: Takes the texts.
        namespace: Prefix of the topics.
        file: The ground truth is also written here, one JSON line per row.
    """

    def __init__(self, writer: Writer, namespace: str = "", file: TextIO | None = None) -> None:
        self._writer, self._namespace, self._file = writer, namespace, file

    def telemetry(self, frame: pl.DataFrame) -> None:
        """Writes samples."""
        self._write(topics.RAW_JSON, to_json(frame, Telemetry), frame["entity"])

    def logs(self, frame: pl.DataFrame) -> None:
        """Writes log lines."""
        self._write(topics.LOGS_JSON, to_json(frame, Log), frame["entity"])

    def truth(self, rows: list[GroundTruth]) -> None:
        """Writes ground truth."""
        lines = [row.line() for row in rows]
        self._writer.write(self._namespace + topics.GROUNDTRUTH, lines, [row.entity for row in rows])
        if self._file:
            self._file.writelines(line + "\n" for line in lines)
            self._file.flush()  # rows are few, and someone may be reading along

    def topology(self, rows: list[Placement]) -> None:
        """Writes the topology."""
        lines = [row.to_json().decode() for row in rows]
        self._writer.write(self._namespace + topics.TOPOLOGY, lines, [row.entity for row in rows])

    def flush(self) -> None:
        """Waits for Kafka."""
        self._writer.flush()
        if self._file:
            self._file.flush()

    def _write(self, topic: str, values: pl.Series, keys: pl.Series) -> None:
        self._writer.write(self._namespace + topic, values.to_list(), keys.cast(pl.String).to_list())


class FileSink:
    """Writes the same lines to files in a folder.

    They are ``telemetry.json``, ``logs.json``, ``groundtruth.jsonl`` and ``topology.jsonl``.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            names = (topics.RAW_JSON, topics.LOGS_JSON, f"{topics.GROUNDTRUTH}.jsonl", f"{topics.TOPOLOGY}.jsonl")
            self._files = tuple((folder / name).open("w", encoding="utf-8") for name in names)
            self._telemetry, self._logs, self._truth, self._topology = self._files
        except OSError as error:
            raise NewnormalError(
                "OUTPUT_NOT_WRITABLE", str(error), str(folder), "a folder that can be written"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    def telemetry(self, frame: pl.DataFrame) -> None:
        """Writes samples."""
        self._telemetry.writelines(line + "\n" for line in to_json(frame, Telemetry))

    def logs(self, frame: pl.DataFrame) -> None:
        """Writes log lines."""
        self._logs.writelines(line + "\n" for line in to_json(frame, Log))

    def truth(self, rows: list[GroundTruth]) -> None:
        """Writes ground truth."""
        self._truth.writelines(row.line() + "\n" for row in rows)

    def topology(self, rows: list[Placement]) -> None:
        """Writes the topology."""
        self._topology.writelines(row.to_json().decode() + "\n" for row in rows)

    def flush(self) -> None:
        """Writes what is buffered."""
        for file in self._files:
            file.flush()

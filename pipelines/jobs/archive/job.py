"""The archive as a job: writes micro-batches of `telemetry` and `logs` to Parquet files."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import structlog

from engine.kafka.admin import topic_ids
from engine.locks import try_lock
from engine.spark.checkpoint_offsets import initial_offsets, offsets_of
from engine.spark.query import Runtime, checkpoint_id
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.jobs.archive.archived import archived
from pipelines.jobs.archive.layout import write_name
from pipelines.jobs.archive.writer import ArchiveWriter

ARCHIVE = "archive"
"""Name of the job."""

_LONGEST_WAIT_SECONDS = 30.0
log = structlog.get_logger()


@dataclass(frozen=True)
class ArchiveReport:
    """The report of one micro-batch: numbers of messages read and of records written, and duration in seconds."""

    messages: int
    records: int
    seconds: float


class ArchiveJob:
    """Writes micro-batches to the archive. Writing one again is harmless; see `pipelines.jobs.archive.writer`.

    While files cannot be written, as on a full disk, the job tries again, and Kafka holds what comes.

    Args:
        settings: The settings; ``archive.path`` is given.
        runtime: How the queries run.
        listener: Is called with the report of each micro-batch.

    Raises:
        NewnormalError: ``SETTING_INVALID`` without ``archive.path``; ``ALREADY_RUNNING`` if another process writes to
            this archive; ``ARCHIVE_OTHER_TOPIC`` if the archive is that of topics that are no more; ``ARCHIVE_BROKEN``;
            ``KAFKA_UNREACHABLE``.
    """

    def __init__(self, settings: Settings, runtime: Runtime, listener: Callable[[ArchiveReport], None]) -> None:
        if settings.archive.path is None:
            accepted = "a folder"
            raise NewnormalError(
                "SETTING_INVALID", "archive.path is empty", "archive.path", accepted, "nothing was started"
            )
        self.listener, self.stopping, self._problem = listener, threading.Event(), ""
        self._checkpoint, self._runtime = runtime.checkpoints / ARCHIVE, runtime
        self._held, self._writers = ExitStack(), dict[str, ArchiveWriter]()
        ids = topic_ids(runtime.bootstrap, [folder.topic for folder, _ in archived(settings)])
        for folder, record in archived(settings):
            self._lock(folder.root / "_writing" / f"{folder.topic}.lock")
            folder.check_topic(ids.get(folder.topic, ""))
            self._writers[folder.topic] = ArchiveWriter(folder, record)

    @property
    def topics(self) -> list[str]:
        """The full names of the topics that are archived."""
        return list(self._writers)

    def write(self, rows: pa.Table, batch_id: int) -> None:
        """Writes a micro-batch; returns when its files are safe.

        Args:
            rows: The Kafka messages, with columns ``topic``, ``partition``, ``offset``, ``value`` and ``arrived``.
            batch_id: Number of the micro-batch.

        Raises:
            OSError: If the job is stopped while files cannot be written.
        """
        began, records = time.perf_counter(), 0
        name = write_name(checkpoint_id(self._runtime, ARCHIVE), batch_id)
        after = offsets_of(self._checkpoint, batch_id)
        before = offsets_of(self._checkpoint, batch_id - 1) or initial_offsets(self._checkpoint)
        for topic, writer in self._writers.items():
            of_topic = rows.filter(pc.equal(rows["topic"], topic))
            start, end = ({int(p): offset for p, offset in each.get(topic, {}).items()} for each in (before, after))
            records += self._insist(writer, name, of_topic, start, end)
        self.listener(ArchiveReport(rows.num_rows, records, time.perf_counter() - began))

    def problem(self) -> str | None:
        """What keeps the job from writing, in a sentence; ``None`` if nothing does."""
        return self._problem or None

    def stop(self) -> None:
        """Stops waiting for files that cannot be written; the next start repeats the present micro-batch."""
        self.stopping.set()

    def close(self) -> None:
        """Lets other processes write to the archive; to be called when the query has ended."""
        self._held.close()

    def _insist(
        self, writer: ArchiveWriter, name: str, rows: pa.Table, start: dict[int, int], end: dict[int, int]
    ) -> int:
        """Writes, and tries again while that fails."""
        wait = 1.0
        while True:
            try:
                records = writer.write(name, rows, start, end)
                self._problem = ""
                return records
            except OSError as error:
                self._problem = f"archive: cannot write, Kafka holds what comes: {error}"
                log.warning("the archive cannot be written, it will try again", in_s=wait, reason=str(error))
                if self.stopping.wait(wait):
                    raise
                wait = min(2 * wait, _LONGEST_WAIT_SECONDS)

    def _lock(self, path: Path) -> None:
        held = try_lock(path)
        if held is None:
            self._held.close()
            what, accepted = "another process writes to this archive", "that process ended; or another archive.path"
            raise NewnormalError("ALREADY_RUNNING", what, str(path.parent.parent), accepted, "nothing was started")
        self._held.enter_context(held)

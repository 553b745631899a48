"""Decides at each start of a job whether it reads the log, or the archive before it.

The archive has the rows and offsets of the log, so both are read by one query with one checkpoint, one after the
other: the query on the archive ends where the archive ended when it started, and the next start of the same query reads
Kafka from there. The offsets in the checkpoint are all that says where the job is, so whatever fails in between is
repeated by the next start. If Kafka has deleted more meanwhile, the next start reads the archive again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog
from confluent_kafka import KafkaException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from engine.kafka.offsets import KafkaOffsets, Offsets
from engine.spark.checkpoint_offsets import last_committed, next_offsets, offsets_of
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.jobs.archive.archived import archived, readers
from pipelines.jobs.archive.reader import ArchiveReader
from pipelines.jobs.archive.source import archive_rows

_FILE = "archive.json"
Places = dict[str, dict[str, int]]
"""The next offset of each partition, by topic and partition (as text), as Spark has it."""

log = structlog.get_logger()


class InputUnknown(Exception):  # noqa: N818  no error: the same is asked again a moment later
    """Where a job has to go on cannot be told now."""


class ArchivedInput:
    """The archive as the input of jobs, before the log.

    Args:
        settings: The settings, with the address of Kafka filled in.
        checkpoints: Directory of the jobs' checkpoints.
        begin: Where jobs without a checkpoint begin to read, by job; they begin in the archive if the log has not got
            so far back.
    """

    def __init__(self, settings: Settings, checkpoints: Path, begin: Mapping[str, Offsets]) -> None:
        self._settings, self._checkpoints, self._begin = settings, checkpoints, begin
        self._reading: set[str] = set()

    def rows(self, spark: SparkSession, job: str, topics: Sequence[str]) -> DataFrame | None:
        """Kafka rows of the archive that a job reads before the log; ``None`` if the log has all that it needs.

        Raises:
            NewnormalError: ``ARCHIVE_GAP`` if messages that the job needs are neither in the archive nor in the log.
            InputUnknown: Kafka does not say what it still has; or the archive has not yet got as far as a micro-batch
                goes that was planned on the log, and is to be repeated.
        """
        checkpoint = self._checkpoints / job
        if not self._archives(topics) or (next_offsets(checkpoint) and not self.may_read(job, topics)):
            return None
        try:
            starts = KafkaOffsets(self._settings.kafka.bootstrap or "", topics).starts()
        except (KafkaException, TimeoutError) as error:
            # a query that begins on the log while this is unknown may want what the log has no longer, for ever
            raise InputUnknown(f"Kafka does not say what it still has: {error}") from None
        self._reading.discard(job)
        places = self._next(job, topics, starts)
        if all(places.get(topic, {}).get(str(p), first) >= first for (topic, p), first in starts.items()):
            if last_committed(checkpoint) >= 0:
                (checkpoint / _FILE).unlink(missing_ok=True)
            elif job in self._begin:  # Kafka may delete what it begins with before it has read it
                self._keep(job, places)
            return None
        archives = readers(self._settings, topics)
        last = ends(archives, places, starts)
        planned = offsets_of(checkpoint, last_committed(checkpoint) + 1)
        if any(offset > last.get(topic, {}).get(p, 0) for topic, some in planned.items() for p, offset in some.items()):
            raise InputUnknown("the archive has not got as far as the micro-batch that is to be repeated")
        self._keep(job, places)
        self._reading.add(job)
        log.info("the job reads the archive before the log", job=job, messages=_count(places, last))
        return archive_rows(spark, archives, places, last, self._settings.engine.max_records)

    def through(self, job: str, query: StreamingQuery) -> bool:
        """True if a query that read the archive has come to its end, so that the job goes on with the log."""
        return job in self._reading and not query.isActive and query.exception() is None

    def may_read(self, job: str, topics: Sequence[str]) -> bool:
        """Whether a job with a checkpoint goes on in the archive if Kafka has no longer what it must read next.

        So does a job that has begun in the archive, and any other if the settings say so.
        """
        if not self._archives(topics):
            return False
        return self._settings.engine.on_missing_offsets == "archive" or reads_archive(self._checkpoints / job)

    def _archives(self, topics: Sequence[str]) -> bool:
        return set(topics) <= {folder.topic for folder, _ in archived(self._settings)}

    def _next(self, job: str, topics: Sequence[str], starts: Offsets) -> Places:
        """Where a job goes on: by its checkpoint, or where it begins."""
        checkpoint = self._checkpoints / job
        places = next_offsets(checkpoint)
        if not places and reads_archive(checkpoint):
            return dict(json.loads((checkpoint / _FILE).read_text()))
        found: Places = {}
        places = places or self._begin.get(job, {})
        for (topic, partition), first in starts.items():
            found.setdefault(topic, {})[str(partition)] = places.get((topic, partition), first)
        return found

    def _keep(self, job: str, places: Places) -> None:
        """Keeps that the job has begun in the archive, and where: its first micro-batch may have to be repeated."""
        file = self._checkpoints / job / _FILE
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            made = file.with_suffix(".new")
            made.write_text(json.dumps(places))
            made.replace(file)


def reads_archive(checkpoint: Path) -> bool:
    """Whether a job reads the archive, or will go on with it at its next start."""
    return (checkpoint / _FILE).exists()


def archive_begin(settings: Settings, topics: Sequence[str], arrived: int) -> Offsets:
    """Where the archive has to be read from to get all that arrived at or after an instant (epoch milliseconds)."""
    found = {topic: reader.since(arrived) for topic, reader in readers(settings, topics).items()}
    return {(topic, partition): offset for topic, places in found.items() for partition, offset in places.items()}


def begin_before(log_has: Offsets, starts: Offsets, archive_has: Offsets) -> Offsets:
    """Where to begin: by the log if it still has what came before, otherwise by the archive, if that begins earlier.

    Args:
        log_has: The first offset that is wanted of each partition, as far as Kafka can tell.
        starts: The first offset that Kafka still has; what it deleted may have been wanted, too.
        archive_has: The first offset that is wanted, as far as the archive can tell.

    >>> begin_before({("t", 0): 70, ("t", 1): 60}, {("t", 0): 60, ("t", 1): 60}, {("t", 0): 50, ("t", 1): 50})
    {('t', 0): 70, ('t', 1): 50}
    """
    deleted = {place for place, offset in log_has.items() if offset <= starts.get(place, 0)}
    return {
        place: min(offset, archive_has.get(place, offset)) if place in deleted else offset
        for place, offset in log_has.items()
    }


def ends(archives: Mapping[str, ArchiveReader], places: Places, starts: Offsets) -> Places:
    """Where the archive ends for a job: behind what follows its place without a gap.

    Args:
        archives: The archives of its topics.
        places: Where it goes on.
        starts: The first offsets that Kafka still has.

    Raises:
        NewnormalError: ``ARCHIVE_GAP`` if the archive does not reach from a place up to what Kafka has.
    """
    reached: Places = {}
    missing: dict[str, int] = {}
    for (topic, partition), first in sorted(starts.items()):
        place, archive = places[topic][str(partition)], archives[topic]
        if lost := archive.missing(partition, place, first):
            missing[f"{topic}/{partition}"] = lost
        reached.setdefault(topic, {})[str(partition)] = archive.reach(partition, place)
    if missing:
        gaps = ", ".join(f"{place}: {lost}" for place, lost in missing.items())
        what = f"messages that are neither in the archive nor in Kafka, by topic and partition, at most: {gaps}"
        accepted = "a later begin; or the archive's missing files, from a backup"
        root = str(next(iter(archives.values())).folder.root)
        raise NewnormalError("ARCHIVE_GAP", what, root, accepted, "nothing was started")
    return reached


def _count(places: Places, ends: Places) -> int:
    """Number of offsets between two places."""
    return sum(offset - places[topic][p] for topic, some in ends.items() for p, offset in some.items())

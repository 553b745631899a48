"""Where history ends: before which offsets and which event time of the log it is put.

The archive has the offsets of the log, so what is older than the log gets the offsets before its first ones; these may
be negative. History is written backwards, the newest first, each write just before the one that is there. So whatever
is written reaches up to the log without a gap, and an interrupted import goes on from what it finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow.compute as pc
from confluent_kafka import KafkaException

from engine.formats.columnar import decode
from engine.kafka.admin import partition_counts, topic_ids
from engine.kafka.content import between
from engine.kafka.offsets import KafkaOffsets
from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import Settings
from pipelines.jobs.archive.layout import TopicFolder, Write, imported_times
from pipelines.jobs.archive.reader import ArchiveReader

_MOST = 50
"""Messages of a partition in which the first event time of the log is looked for: they may come out of order."""

_NOW = "nothing was imported"


@dataclass(frozen=True)
class Edge:
    """What history is put before.

    Attributes:
        places: For each partition the offset that follows history.
        time: The first event time that follows, epoch milliseconds; ``None`` if nothing does yet.
        origin: Where the imported history comes from that follows; empty if the log itself does.
    """

    places: Mapping[int, int]
    time: int | None
    origin: str


def edge(settings: Settings, folder: TopicFolder) -> Edge:
    """Where the archive begins, or the log if the archive has nothing yet.

    Args:
        settings: The settings, with the address of Kafka filled in.
        folder: The folders of the topic ``telemetry``.

    Raises:
        NewnormalError: ``ARCHIVE_GAP`` if messages are missing between the archive's beginning and the log;
            ``ARCHIVE_OTHER_TOPIC``; ``ARCHIVE_BROKEN``; ``KAFKA_UNREACHABLE``.
    """
    bootstrap, topic = settings.kafka.bootstrap or "", folder.topic
    reader = ArchiveReader(folder, Telemetry)
    starts, ends = _log(bootstrap, topic)
    if not starts:
        return Edge({p: reader.first.get(p, 0) for p in range(settings.kafka.partitions)}, *_imported(reader))
    folder.check_topic(topic_ids(bootstrap, [topic]).get(topic, ""))
    places = {p: reader.first.get(p, starts[p]) for p in sorted(starts)}
    if missing := {p: lost for p in places if (lost := reader.missing(p, places[p], starts[p]))}:
        gaps = ", ".join(f"{topic}/{p}: {lost}" for p, lost in missing.items())
        what = f"messages that are neither in the archive nor in Kafka, by topic and partition, at most: {gaps}"
        accepted = "an archive that reaches up to what Kafka has: another archive.path; or its files from a backup"
        raise NewnormalError("ARCHIVE_GAP", what, str(folder.root), accepted, _NOW)
    time, origin = _imported(reader)
    if time is None:
        time = min(_first_times(bootstrap, reader, places, starts, ends), default=None)
    return Edge(places, time, origin)


@dataclass(frozen=True)
class Junction:
    """Where imported history and the log meet.

    Attributes:
        end: The event time behind the last one of history, epoch milliseconds.
        time: The first event time of the log; ``None`` if nothing has come live yet.
        missing: How many offsets of each partition are neither in the archive nor in Kafka, if any are.
    """

    end: int
    time: int | None
    missing: Mapping[int, int]


def junction(settings: Settings, folder: TopicFolder) -> Junction | None:
    """Where imported history and the log meet; ``None`` if nothing was imported.

    Raises:
        NewnormalError: ``ARCHIVE_BROKEN`` or ``KAFKA_UNREACHABLE``.
    """
    bootstrap, reader = settings.kafka.bootstrap or "", ArchiveReader(folder, Telemetry)
    if not (there := list(imported(reader.writes))):
        return None
    last, (_, end) = max(there, key=lambda each: each[1][1])
    starts, ends = _log(bootstrap, folder.topic)
    missing = {p: lost for p, at in starts.items() if (lost := reader.missing(p, last.end.get(p, at), at))}
    places = {p: max(last.end.get(p, at), at) if p in missing else last.end.get(p, at) for p, at in starts.items()}
    return Junction(end, min(_first_times(bootstrap, reader, places, starts, ends), default=None), missing)


def _log(bootstrap: str, topic: str) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """The first offset that Kafka has of each partition, and the next one; both empty if there is no such topic.

    Raises:
        NewnormalError: ``KAFKA_UNREACHABLE``.
    """
    if not partition_counts(bootstrap, [topic]).get(topic, 0):
        return {}, {}
    try:
        offsets = KafkaOffsets(bootstrap, [topic])
        starts, ends = ({p: at for (_, p), at in each.items()} for each in (offsets.starts(), offsets.ends()))
        return starts, ends
    except (KafkaException, TimeoutError) as error:
        raise NewnormalError("KAFKA_UNREACHABLE", str(error), bootstrap, "a running broker", _NOW) from None


def _imported(reader: ArchiveReader) -> tuple[int | None, str]:
    """The first event time of the history that is imported already, and where it comes from."""
    found = [(times[0], write.origin) for write, times in imported(reader.writes)]
    return min(found, default=(None, ""))


def imported(writes: list[Write]) -> Iterator[tuple[Write, tuple[int, int]]]:
    """The writes of imported history, each with its first event time and the one behind its last."""
    for write in writes:
        if times := imported_times(write.name):
            yield write, times


def _first_times(
    bootstrap: str, reader: ArchiveReader, places: Mapping[int, int], starts: Mapping[int, int], ends: Mapping[int, int]
) -> Iterator[int]:
    """The earliest event time in the first messages of each partition that has records."""
    topic, schema = reader.folder.topic, Telemetry.arrow_schema()
    spans = {p: (starts[p], min(ends[p], starts[p] + _MOST)) for p in places if places[p] >= starts[p]}
    values = [message.value() for message in between(bootstrap, {(topic, p): span for p, span in spans.items()})]
    for p in places.keys() - spans.keys():
        values += [v for batch in reader.messages(p, places[p], places[p] + _MOST) for v in batch["value"].to_pylist()]
    for value in values:
        try:
            table, _ = decode(value or b"", schema)
        except NewnormalError:
            continue
        if table.num_rows:
            yield int(pc.min(table["time"]).as_py())

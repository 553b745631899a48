"""Where a proof begins to read: at a savepoint, at the beginning of the log, or at that of the archive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException

from engine.kafka.offsets import KafkaOffsets, Offsets
from engine.spark.checkpoint_files import OtherFormatError, states
from engine.spark.checkpoint_layout import STATE_FORMAT
from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.jobs.archive.archived import readers
from pipelines.savepoints.catalogue import Catalogue
from pipelines.savepoints.inspection import watermark
from pipelines.savepoints.savepoint import Savepoint
from pipelines.versions.used import OF_JOBS
from pipelines.versions.version import Version

_DETECTORS = ("detector", "log_detector")
_JUDGED, _SAMPLES = (topics.FEATURES, topics.LOG_FEATURES), (topics.TELEMETRY, topics.LOGS)


@dataclass(frozen=True)
class Beginning:
    """Where a proof begins.

    Attributes:
        job: The first job that computes anew.
        offsets: The first offset that is read of each partition.
        catalogue: The savepoints of the version from which the savepoint is; ``None``: the jobs begin without state.
        savepoint: The savepoint.
    """

    job: str
    offsets: Offsets
    catalogue: Catalogue | None = None
    savepoint: Savepoint | None = None

    @property
    def rounded(self) -> bool:
        """Whether windows are computed anew, whose sums may be rounded otherwise."""
        return self.job == "extractor"

    def __str__(self) -> str:
        topic_names = ", ".join(sorted({topic for topic, _ in self.offsets}))
        if self.savepoint:
            return f"savepoint {self.savepoint.name} of {iso(self.savepoint.created)}, and {topic_names} since then"
        return f"the beginning of {topic_names}"


def beginning(version: Version, settings: Settings, ran: Mapping[str, Any], onset: int, base: Settings) -> Beginning:
    """The nearest place from which on all input of the detectors is kept, with what they knew there.

    Args:
        version: The version that said it.
        settings: Its settings, with the address of Kafka filled in.
        ran: The settings with which it ran, by dotted name.
        onset: When the incident began, epoch milliseconds.
        base: The settings of the version from whose savepoint it was forked; those of the version itself if of none.

    Raises:
        NewnormalError: ``PROOF_INPUT_DELETED`` if there is none; ``KAFKA_UNREACHABLE``.
    """
    starts = _starts(settings, _JUDGED)
    savepoints = [(Catalogue(settings), each) for each in Catalogue(settings).all()]
    if version.forked:
        savepoints += [(Catalogue(base), each) for each in Catalogue(base).all() if each.name == version.forked]
    for catalogue, savepoint in sorted(savepoints, key=lambda each: -each[1].created):
        if offsets := _from(catalogue, savepoint, starts, ran, onset):
            return Beginning("detector", offsets, catalogue, savepoint)
    if not version.forked:
        if starts and not any(starts.values()):
            return Beginning("detector", starts)
        samples = _starts(settings, _SAMPLES)
        if samples and not _gaps(settings, samples):
            return Beginning("extractor", dict.fromkeys(samples, 0))
    gone = {place: first for place, first in starts.items() if first}
    places = ", ".join(f"{topic}/{partition}: {first}" for (topic, partition), first in sorted(gone.items()))
    what = f"Kafka has deleted what the detectors read before {iso(onset)} (first offsets now: {places or 'none'})"
    if version.forked and not gone:
        what = f"{version.name} was forked from savepoint {version.forked}, which is gone"
    accepted = (
        "an incident within kafka.retention of the first start; for others a savepoint that was made before them, "
        "or an archive (archive.path) that goes back to the first sample"
    )
    raise NewnormalError("PROOF_INPUT_DELETED", what, version.name, accepted, "nothing was computed or changed")


def _from(
    catalogue: Catalogue, savepoint: Savepoint, starts: Offsets, ran: Mapping[str, Any], onset: int
) -> Offsets | None:
    """Where the detectors read on after a savepoint; ``None`` if a proof cannot begin there."""
    saved = [savepoint.jobs[job] for job in _DETECTORS if job in savepoint.jobs]
    if len(saved) < len(_DETECTORS) or any(job.state_format != STATE_FORMAT for job in saved):
        return None
    then = {f"{s}.{name}": value for s in OF_JOBS for name, value in savepoint.settings.get(s, {}).items()}
    if any(ran.get(name, value) != value for name, value in then.items() if name.startswith("detector.")):
        return None
    read = {(t, int(p)): at for job in saved for t, places in job.offsets.items() for p, at in places.items()}
    if any(read.get(place, 0) < first for place, first in starts.items()):
        return None
    try:
        shards = [
            segments
            for job in _DETECTORS
            for segments in states(catalogue.job_folder(savepoint, job), savepoint.jobs[job].shards)
        ]
    except OtherFormatError:
        return None
    if any(watermark(segments) > onset for segments in shards):
        return None
    return {place: read.get(place, 0) for place in starts}


def _starts(settings: Settings, names: tuple[str, ...]) -> Offsets:
    try:
        return KafkaOffsets(settings.kafka.bootstrap or "", [settings.reads(name) for name in names]).starts()
    except (KafkaException, TimeoutError) as error:
        raise NewnormalError("KAFKA_UNREACHABLE", str(error), settings.kafka.bootstrap or "", "an answer") from None


def _gaps(settings: Settings, starts: Offsets) -> bool:
    """Whether samples or lines from before what Kafka has are missing in the archive, too."""
    archives = readers(settings, {topic for topic, _ in starts})
    deleted = [
        each
        for reader in archives.values()
        for write in reader.writes
        for each in set(write.days) - set(reader.folder.days())
    ]
    return bool(deleted) or any(
        first and (topic not in archives or archives[topic].missing(partition, 0, first))
        for (topic, partition), first in starts.items()
    )

"""Checks that jobs keep up with their topics, and that Kafka still has what they will read."""

from __future__ import annotations

from collections.abc import Mapping

from engine.kafka.offsets import KafkaOffsets, Offsets
from engine.spark.checkpoint_offsets import next_offsets
from engine.spec.duration import duration_ms
from pipelines.contracts.quantities.words import duration
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding, Severity, subject
from pipelines.jobs.archive.job import ARCHIVE
from pipelines.jobs.links import LINKS

_kind = subject("Kafka")
_LAG = _kind(
    "LAG",
    Severity.AT_RISK,
    "a job that runs has not read messages that came more than a minute ago",
    "if the lag grows, the machine is too slow for the load: more `engine.cores`, fewer series, or jobs on machines of "
    "their own; after a restart it shrinks by itself",
)
_STALLED = _kind(
    "JOB_STALLED",
    Severity.BROKEN,
    "a job that runs has completed no micro-batch for more than a minute, though messages wait",
    "`newnormal status` shows its last error; see the log of the process, then restart it",
)
_IDLE = _kind(
    "JOB_NOT_RUNNING",
    Severity.NOTE,
    "no process of this machine runs a job for which messages wait",
    "`newnormal run`, unless another machine runs it",
)
_SOON_GONE = _kind(
    "OFFSETS_NEARLY_GONE",
    Severity.AT_RISK,
    "Kafka will soon delete messages that a job has not read: four fifths of `kafka.retention` are over",
    "start the job, or let `kafka.retention` be longer, before a start is refused with `OFFSETS_MISSING`",
)
_LONG_MS = 60_000
_SECONDS = 10.0
_NEARLY = 0.8


def reading(context: Context) -> list[Finding]:
    """Finds jobs that are behind, stand still or do not run, for each topic of which messages wait."""
    findings = []
    for job in context.jobs:
        offsets = next_offsets(context.checkpoints / job)
        if not offsets:
            continue  # never started here: it has read nothing, and `topics` says so if nothing ever ran
        asked = KafkaOffsets(context.bootstrap, LINKS[job].reads(context.settings), timeout=_SECONDS)
        try:
            ends = asked.ends()
        except TimeoutError:
            continue  # its topics are gone, which the check of topics says
        waiting = _by_topic(offsets, ends)
        patience = _LONG_MS + (duration_ms(context.settings.archive.every) if job == ARCHIVE else 0)
        old = _by_topic(offsets, _reached(asked, ends, context.clock() - patience))
        findings += _of_job(context, job, waiting, old, patience)
        kept = duration_ms(context.settings.kafka.retention)
        gone_soon = _by_topic(offsets, _reached(asked, ends, context.clock() - round(_NEARLY * kept)))
        for topic, count in gone_soon.items():
            what = f"{job} has not read {count:,} messages that came more than {duration(round(_NEARLY * kept))} ago"
            findings.append(Finding(_SOON_GONE, what, topic))
    return findings


def _of_job(
    context: Context, job: str, waiting: Mapping[str, int], old: Mapping[str, int], patience: int
) -> list[Finding]:
    if not context.runs(job):
        topics = ", ".join(f"{count:,} of {topic}" for topic, count in waiting.items())
        return [Finding(_IDLE, f"{job} has messages to read: {topics}", str(context.checkpoints / job))] if old else []
    still = _still_ms(context, job)
    if old and still > patience:
        what = f"{job} completed its last micro-batch {duration(still)} ago; {sum(waiting.values()):,} messages wait"
        return [Finding(_STALLED, what, ", ".join(old))]
    return [
        Finding(_LAG, f"{job} has {waiting[topic]:,} messages to read, {count:,} of them for a minute or longer", topic)
        for topic, count in old.items()
    ]


def _still_ms(context: Context, job: str) -> int:
    """How long ago a job's last micro-batch was completed, or its process started if that is later; milliseconds."""
    commits = context.checkpoints / job / "commits"
    times = [file.stat().st_mtime for file in commits.iterdir() if file.name.isdigit()] if commits.exists() else []
    times += [each.started for each in context.processes if job in each.jobs]
    return context.clock() - round(max(times, default=0.0) * 1000)


def _reached(asked: KafkaOffsets, ends: Offsets, time: int) -> Offsets:
    """The offset of each partition before which all messages came earlier than an instant."""
    since = asked.since(time)
    return {place: since.get(place, end) for place, end in ends.items()}


def _by_topic(read: Offsets, upto: Offsets) -> dict[str, int]:
    """Number of messages of each topic between the offsets that were read and others; topics without any left out."""
    found: dict[str, int] = {}
    for (topic, partition), offset in read.items():
        if (count := upto.get((topic, partition), offset) - offset) > 0:
            found[topic] = found.get(topic, 0) + count
    return found

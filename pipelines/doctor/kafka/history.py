"""Checks that imported history and the log meet, so that a replay can read on from one to the other."""

from __future__ import annotations

from engine.spec.duration import iso
from pipelines.contracts import topics
from pipelines.contracts.quantities.words import duration
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding, Severity, subject
from pipelines.history.place import junction
from pipelines.jobs.archive.layout import TopicFolder

_kind = subject("Kafka")
_APART = _kind(
    "HISTORY_APART",
    Severity.AT_RISK,
    "messages that follow the imported history are neither in the archive nor in Kafka: a replay of it is refused",
    "run the job `archive` always once there is history; now `newnormal import remove`, and import again",
)
_GAP = _kind(
    "HISTORY_GAP",
    Severity.NOTE,
    "the imported history ends long before the first live sample: the time between is judged as an outage",
    "once samples come live: `newnormal import remove`, and import again",
)
_LONGEST_MS = 30 * 60_000


def history(context: Context) -> list[Finding]:
    """Finds history that does not reach up to the log, by offset or by event time."""
    path = context.settings.archive.path
    if path is None:
        return []
    folder = TopicFolder(path.expanduser().resolve(), context.settings.reads(topics.TELEMETRY))
    found = junction(context.settings, folder)
    if found is None:
        return []
    if found.missing:
        lost = ", ".join(f"{folder.topic}/{p}: {count}" for p, count in sorted(found.missing.items()))
        return [Finding(_APART, f"missing messages, by topic and partition, at most: {lost}", str(folder.root))]
    if found.time is not None and found.time - found.end > _LONGEST_MS:
        what = f"history ends at {iso(found.end)}, the log begins at {iso(found.time)}"
        return [Finding(_GAP, f"{what}: {duration(found.time - found.end)} between", str(folder.root))]
    return []

"""Checks that records do not come too late for their windows."""

from __future__ import annotations

from pipelines.contracts import topics
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding, Severity, subject
from pipelines.doctor.kafka.input import lately

_kind = subject("Kafka")
_LATE = _kind(
    "LATE_GROWING",
    Severity.AT_RISK,
    "records came too late for their windows in the last ten minutes: they are kept, but not judged",
    "`newnormal tail` of the topic shows whose they are; mend the clock or the delay of these machines, or set a "
    "longer `watermark.out_of_orderness` or `window.allowed_lateness`",
)


def late(context: Context) -> list[Finding]:
    """Finds topics of late records that have got messages lately."""
    names = [context.settings.writes(name) for name in topics.FROM_JOBS if name.endswith(topics.LATE)]
    counts = {name: lately(context, name) for name in names}
    return [
        Finding(_LATE, f"{count:,} messages with late records in the last ten minutes", name)
        for name, count in counts.items()
        if count
    ]

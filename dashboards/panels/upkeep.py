"""The dashboards of whoever runs the pipeline: its health as the documents tell it, and versions side by side."""

from __future__ import annotations

from dashboards.panels.common import ALARMS, COUNT, LAST, MACHINE, MACHINES, METRIC, NEWS, SILENT, WORST
from dashboards.panels.panel import Dashboard, Panel
from dashboards.panels.query import Among, AtLeast, Documents, Measure, Over, Summary, Top, Versions
from pipelines.contracts.records.novelty import JOINED

_SILENCES, _WHOLE = Among("kind", (*SILENT.values, "recovered")), Among("metric", (JOINED,))
_WRITTEN = Measure("max", "event.ingested", "last written", "time")

HEALTH = Dashboard(
    "pipeline-health",
    "Pipeline health",
    "Are verdicts written, and in time? Which machines fell silent?",
    (
        Panel(
            "written", "Documents", "Documents written in the time range, with revisions counted once.",
            Summary((COUNT,)), "number", 12, 6, "written",
        ),
        Panel(
            "last", "Last written", "When the newest document was written. Old: nothing was news since then (with "
            "detector.emit = all: the pipeline or its sink stands still); `newnormal status` tells.",
            Summary((_WRITTEN,)), "number", 12, 6, "written",
        ),
        Panel(
            "window", "Newest window", "End of the newest window that was written. Compare it with Last written: the "
            "difference is the latency of the pipeline, windows' allowance for late records included.",
            Summary((LAST,)), "number", 12, 6, "written",
        ),
        Panel(
            "machines", "Machines with documents", "Machines of which something was written in the time range. A "
            "machine without news has no document unless detector.emit is all: the console says how many report.",
            Summary((MACHINES,)), "number", 12, 6, "written",
        ),
        Panel(
            "rate", "Documents by kind", "Documents by the time they were written. A gap means that nothing was news "
            "(with detector.emit = all: that nothing was written), a peak that a backlog was worked off.",
            Summary((COUNT,), (Over("event.ingested"), Top("kind", 9, title="kind"))), "bars", 24, data="written",
        ),
        Panel(
            "reporting", "Machines with documents over time", "Machines of which something was written, by the time of "
            "writing; see Machines with documents.",
            Summary((MACHINES,), (Over("event.ingested"),)), "lines", 24, data="written",
        ),
        Panel(
            "revisions", "Revisions", "Verdicts that late data have changed, by the time they were written.",
            Summary((COUNT,), (Over("event.ingested"),), (AtLeast("revision", 1),)), "bars", 24, data="written",
        ),
        Panel(
            "silences", "Silent machines", "Which machines fell silent (absence), and which send again or are normal "
            "again (recovered), the newest first. A machine whose newest line here is an absence is silent.",
            Documents(("@timestamp", "kind", "host.name", "message"), (_SILENCES, _WHOLE)), "documents", 24,
        ),
    ),
    (MACHINE,),
)  # fmt: skip

VERSIONS = Dashboard(
    "version-comparison",
    "Version comparison",
    "What do versions of the chain judge differently?",
    (
        Panel(
            "alarms", "Alarms by version", "How many alarms each version has, over time.",
            Summary((Measure("count", title="alarms"),), (Over(), Versions()), (ALARMS,)), "lines", 24,
            data="versions",
        ),
        Panel(
            "machines", "Machines with alarms by version", "How many machines have alarms, over time.",
            Summary((MACHINES,), (Over(), Versions()), (ALARMS,)), "lines", 24, data="versions",
        ),
        Panel(
            "totals", "Totals", "What each version has written in the time range.",
            Summary(
                (COUNT, MACHINES, WORST, Measure("median", "record_score", "median score", "score"), LAST),
                (Versions(),),
            ),
            "table", 24, data="versions",
        ),
        Panel(
            "kinds", "Kinds", "News of each version, by kind.",
            Summary((COUNT,), (Versions(), Top("kind", 7, title="kind")), (NEWS,)), "table", 24, data="versions",
        ),
        Panel(
            "by-machine", "Machines", "Alarms of each version on the machines with the most alarms; `newnormal "
            "compare` names the single alarms that differ.",
            Summary(
                (Measure("count", title="alarms"), WORST), (Top("host.name", 20, title="machine"), Versions()),
                (ALARMS,),
            ),
            "table", 48, data="versions",
        ),
    ),
    (MACHINE, METRIC),
    "now-24h",
)  # fmt: skip

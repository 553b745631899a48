"""The dashboards of an operator: overview, machine, series, logs."""

from __future__ import annotations

from dashboards.panels.common import (
    ALARMS,
    COUNT,
    KIND,
    LAST,
    LOGS,
    MACHINE,
    MACHINES,
    METRIC,
    NEWEST,
    NEWS,
    NO_JOINED,
    SERIES,
    SILENT,
    WORKLOAD,
    WORST,
)
from dashboards.panels.panel import Dashboard, Panel
from dashboards.panels.query import Among, Documents, Measure, Over, Present, Summary, Top
from dashboards.panels.severity_colours import SCALE
from pipelines.contracts.records.novelty import JOINED

OVERVIEW = Dashboard(
    "overview",
    "Overview",
    "What is wrong, on which machines, since when?",
    (
        Panel(
            "alarms", "Alarms", "Windows with an anomaly, a state change, a new normal, an absence, a machine "
            "unlike its peers, or something that will be full.",
            Summary((Measure("count", title="alarms"),), where=(ALARMS,)), "number", 12, 6,
        ),
        Panel(
            "machines", "Machines with alarms", "Machines with at least one alarm in the time range.",
            Summary((MACHINES,), where=(ALARMS,)), "number", 12, 6,
        ),
        Panel(
            "worst", "Highest score", "The highest score of an alarm, of 100.",
            Summary((WORST,), where=(ALARMS,)), "number", 12, 6,
        ),
        Panel(
            "silent", "Machines with a silence", "Machines that stopped sending in the time range, or of which a "
            "metric did; *Pipeline health* lists the machines, and those that send again.",
            Summary((MACHINES,), where=(SILENT,)), "number", 12, 6,
        ),
        Panel(
            "strip", "Machines over time", f"The highest score of each machine's alarms: the darker, the more unusual "
            f"({SCALE}). Rows that begin to darken at the same time belong together; the first of them is a place to "
            "begin.",
            Summary((WORST,), (Over(), Top("host.name", 30, title="machine")), (ALARMS,)), "heat map", 48, 16,
            drill="machine",
        ),
        Panel(
            "workload-strip", "Workloads over time", "The same for workloads, such as deployments of pods: the highest "
            "score of the alarms of all their replicas. A click opens *Machine* for these.",
            Summary((WORST,), (Over(), Top("k8s.workload.name", 30, title="workload")), (ALARMS,)), "heat map", 48, 12,
            drill="machine",
        ),
        Panel(
            "kinds", "News by kind", "How many windows were news, by kind.",
            Summary((COUNT,), (Over(), Top("kind", 7, title="kind")), (NEWS,)), "bars", 24,
        ),
        Panel(
            "by-machine", "Machines by score", "The machines with the highest scores; a click opens the machine.",
            Summary(
                (WORST, Measure("count", title="alarms"), SERIES, LAST), (Top("host.name", 20, title="machine"),),
                (ALARMS,),
            ),
            "table", 24, drill="machine",
        ),
        Panel(
            "by-workload", "Workloads by score", "The workloads, such as deployments of pods, whose replicas have the "
            "highest scores; a click opens *Machine* for these.",
            Summary(
                (WORST, Measure("count", title="alarms"), MACHINES, LAST),
                (Top("k8s.workload.name", 20, title="workload"),), (ALARMS,),
            ),
            "table", 48, 8, drill="machine",
        ),
        Panel(
            "states", "Series with an incident", "The newest state and kind of each series that had an incident in the "
            "time range: `open` is still going on.",
            Summary(
                (
                    WORST, Measure("newest", "incident.state", "state", "text"),
                    Measure("newest", "kind", "kind", "text"), LAST,
                ),
                (Top("host.name", 20, title="machine"), Top("metric", 10, title="metric")),
                (Present("incident.state"),),
            ),
            "table", 24, 14, drill="series",
        ),
        Panel(
            "newest", "Newest alarms", "The newest alarms with their reasons in words.",
            Documents(NEWEST, (ALARMS,)), "documents", 24, 14,
        ),
    ),
    (MACHINE, METRIC, KIND, WORKLOAD),
)  # fmt: skip

MACHINE_PAGE = Dashboard(
    "machine",
    "Machine",
    "What is unusual on one machine, in which order did it begin?",
    (
        Panel(
            "metrics", "Metrics over time", f"The highest score of each metric ({SCALE}); rows that darken first began "
            "first. _machine is the joined verdict on all metrics of the machine, _peers.cpu is cpu beside its peers, "
            "and disk~full says when disk is full.",
            Summary((WORST,), (Over(), Top("metric", 40, title="metric")), (ALARMS,)), "heat map", 48, 16,
            drill="series",
        ),
        Panel(
            "joined", "Score of the machine as a whole", "The joined score of all metrics, window by window.",
            Summary((Measure("max", "record_score", "score", "score"),), (Over(),), (Among("metric", (JOINED,)),)),
            "lines", 24,
        ),
        Panel(
            "kinds", "News by kind", "How many windows of the machine were news, by kind.",
            Summary((COUNT,), (Over(), Top("kind", 7, title="kind")), (NEWS,)), "bars", 24,
        ),
        Panel(
            "series", "Series", "Each metric with its highest score, and its newest value beside the value expected.",
            Summary(
                (
                    WORST, Measure("newest", "actual", "actual", "value"),
                    Measure("newest", "typical", "typical", "value"), Measure("newest", "kind", "kind", "text"), LAST,
                ),
                (Top("metric", 50, title="metric"),), (NO_JOINED,),
            ),
            "table", 24, 16, drill="series",
        ),
        Panel(
            "newest", "Newest news", "The newest news of the machine, also recoveries.",
            Documents(NEWEST, (NEWS,)), "documents", 24, 16,
        ),
    ),
    (MACHINE, WORKLOAD),
)  # fmt: skip

SERIES_PAGE = Dashboard(
    "series",
    "Series",
    "What did one series look like before, during and after?",
    (
        Panel(
            "band", "Value and band", "The value, the value expected, and the band in which it was expected, window by "
            "window; averages of some windows in a time range of 50 minutes or more. Choose one machine and one metric "
            "above.",
            Summary(
                (
                    Measure("average", "actual", "actual", "value", "#1f77b4"),
                    Measure("average", "typical", "typical", "value", "#7f7f7f"),
                    Measure("average", "lower", "lower", "value", "#c7c7c7"),
                    Measure("average", "upper", "upper", "value", "#c7c7c7"),
                ),
                (Over(each_window=True),), (Present("actual"),),
            ),
            "lines", 48, 18,
        ),
        Panel(
            "score", "Score", "The highest score of each interval; from detector.threshold on, a window is an anomaly.",
            Summary((Measure("max", "record_score", "score", "score"),), (Over(each_window=True),)), "lines", 24,
        ),
        Panel(
            "kinds", "Verdicts by kind", "How many windows were judged, by kind of the verdict.",
            Summary((COUNT,), (Over(), Top("kind", 9, title="kind"))), "bars", 24,
        ),
        Panel(
            "newest", "Reasons", "The newest news of the series in words and figures.",
            Documents(("@timestamp", "kind", "record_score", "actual", "typical", "message", "details"), (NEWS,)),
            "documents", 48, 16,
        ),
    ),
    (MACHINE, METRIC, WORKLOAD),
    "now-45m",  # Kibana draws each window of 10 s in less than 50 minutes only
)  # fmt: skip

LOGS_PAGE = Dashboard(
    "logs",
    "Logs",
    "Which machines log something unusual, and what?",
    (
        Panel(
            "strip", "Machines over time", "The highest score of each machine's log: the darker, the more unusual "
            f"({SCALE}).",
            Summary((WORST,), (Over(), Top("host.name", 30, title="machine")), (LOGS, ALARMS)), "heat map", 48, 14,
            drill="machine",
        ),
        Panel(
            "kinds", "News by kind", "How many windows of logs were news, by kind.",
            Summary((COUNT,), (Over(), Top("kind", 7, title="kind")), (LOGS, NEWS)), "bars", 24,
        ),
        Panel(
            "by-machine", "Machines by score", "The machines whose logs are the most unusual.",
            Summary(
                (WORST, Measure("count", title="alarms"), LAST), (Top("host.name", 20, title="machine"),),
                (LOGS, ALARMS),
            ),
            "table", 24, drill="machine",
        ),
        Panel(
            "lines", "Templates and lines", "The template with the largest share in each unusual window, and a line "
            "of it.",
            Documents(("@timestamp", "host.name", "record_score", "log.template", "event.original"), (LOGS, NEWS)),
            "documents", 48, 18,
        ),
    ),
    (MACHINE, WORKLOAD),
)  # fmt: skip

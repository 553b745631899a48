"""The dashboard of the pipeline's own metrics, which Prometheus reads at `/metrics` of the console and the notifier.

It names no Prometheus: a variable at its top chooses one of the Prometheus data sources that Grafana has. A job's name
is the label `job`, which Prometheus keeps as `exported_job` unless it is told `honor_labels`: legends show both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dashboards.grafana import options

Model = dict[str, Any]

TITLE = "Jobs"
PURPOSE = "Do the jobs keep up, and is what they did last safe?"
SOURCE = {"type": "prometheus", "uid": "${source}"}

_COLUMNS = 24
_JOB = "{{exported_job}} {{job}}"


@dataclass(frozen=True)
class JobPanel:
    """A panel whose query is PromQL.

    Args:
        title: Title, as users see it.
        help: What the panel shows and how to read it.
        query: The query; it gives one value a series and instant.
        legend: Name of each line, from labels; empty: the panel shows a single number.
        unit: Grafana's name of the unit.
        warn: From this value on the number is shown in orange; ``None``: never.
        width: Columns of 24.
    """

    title: str
    help: str
    query: str
    legend: str = ""
    unit: str = "short"
    warn: float | None = None
    width: int = 12


PANELS = (
    JobPanel(
        "Event time lag", "How far the slowest job's watermark is behind the present.",
        "max(newnormal_job_event_time_lag_seconds)", unit="s", warn=300, width=4,
    ),
    JobPanel(
        "Messages to read", "Kafka messages that the job with the largest backlog has not read yet.",
        "max(newnormal_job_lag_messages)", warn=1_000_000, width=4,
    ),
    JobPanel(
        "Oldest checkpoint", "Time since the slowest job completed a micro-batch, and with it a checkpoint.",
        "max(newnormal_job_checkpoint_age_seconds)", unit="s", warn=60, width=4,
    ),
    JobPanel(
        "Latency", "From the end of a window until its verdict can be found in Elasticsearch, its wait for late "
        "records included: the median of the last five minutes.",
        "newnormal_latency_seconds", unit="s", warn=60, width=4,
    ),
    JobPanel(
        "Dead letters", "Records of the last hour that could not be used: `newnormal deadletter list` shows them.",
        "sum(increase(newnormal_job_dead_lettered_total[1h]))", warn=1, width=4,
    ),
    JobPanel(
        "Incidents not told", "Incidents that a notification channel has to be told of, and was not yet.",
        "sum(newnormal_notify_waiting)", warn=10, width=4,
    ),
    JobPanel(
        "Records read", "Records per second of each job.",
        "newnormal_job_records_in_per_second", _JOB, "eps",
    ),
    JobPanel(
        "Records written", "Records per second of each job.",
        "newnormal_job_records_out_per_second", _JOB, "eps",
    ),
    JobPanel(
        "Kafka messages to read", "A line that only grows: the machine is too slow for the load, or a job hangs.",
        "newnormal_job_lag_messages", _JOB,
    ),
    JobPanel(
        "Event time lag by job", "A line that rises by a second a second: one partition holds the watermark back.",
        "newnormal_job_event_time_lag_seconds", _JOB, "s",
    ),
    JobPanel(
        "Duration of micro-batches", "How long the last micro-batch took.",
        "newnormal_job_batch_seconds", _JOB, "s",
    ),
    JobPanel(
        "Age of the checkpoint", "Time since a micro-batch was completed; what came since is read again after a crash.",
        "newnormal_job_checkpoint_age_seconds", _JOB, "s",
    ),
    JobPanel(
        "Late records", "Records per second that came after the allowed lateness, and are in no window.",
        "rate(newnormal_job_late_total[$__rate_interval])", _JOB, "eps",
    ),
    JobPanel(
        "Dead letters by job", "Records per second that could not be used.",
        "rate(newnormal_job_dead_lettered_total[$__rate_interval])", _JOB, "eps",
    ),
    JobPanel(
        "State", "Size of each job's keyed state: it grows with the number of series and the allowed lateness.",
        "newnormal_job_state_bytes", _JOB, "bytes",
    ),
    JobPanel("Keys", "Keys in each job's state, mostly series.", "newnormal_job_state_keys", _JOB),
    JobPanel("Open windows", "Windows that have not ended yet.", "newnormal_job_windows_open", _JOB),
    JobPanel(
        "Busiest shard", "Share of the last records that one shard took: near 1, more shards would not help.",
        "newnormal_job_busiest_shard_ratio", _JOB, "percentunit",
    ),
    JobPanel(
        "News stored", "News a second that were stored in Elasticsearch, by kind.",
        "rate(newnormal_novelties_total[$__rate_interval])", "{{kind}}", "eps",
    ),
    JobPanel(
        "News that are not over", "Series whose newest news is of a kind and goes on.",
        "newnormal_novelties_open", "{{kind}}",
    ),
    JobPanel(
        "Documents stored", "Documents per second that were stored in Elasticsearch.",
        "rate(newnormal_indexed_total[$__rate_interval])", "documents", "wps",
    ),
    JobPanel("Timers", "Timers that have not fired yet.", "newnormal_job_timers", _JOB),
    JobPanel(
        "Notifications", "Messages per second that each channel took.",
        "rate(newnormal_notify_sent_total[$__rate_interval])", "{{channel}}", "mps",
    ),
    JobPanel(
        "Notifications that failed", "Attempts per second at which a channel did not take a message.",
        "rate(newnormal_notify_failed_total[$__rate_interval])", "{{channel}}", "mps",
    ),
    JobPanel(
        "Oldest incident that waits", "For how long the oldest incident has waited that a channel has to be told of.",
        "newnormal_notify_oldest_waiting_seconds", "{{channel}}", "s",
    ),
    JobPanel(
        "Channels that fail", "For how long a channel has not taken messages; 0: it works.",
        "newnormal_notify_failing_seconds", "{{channel}}", "s",
    ),
)  # fmt: skip


def jobs_panels() -> list[Model]:
    """The panels of the dashboard with their places, numbered from 1."""
    x = y = tallest = 0
    models = []
    for number, panel in enumerate(PANELS, 1):
        height = 8 if panel.legend else 4
        if x + panel.width > _COLUMNS:
            x, y, tallest = 0, y + tallest, 0
        where = {"x": x, "y": y, "w": panel.width, "h": height}
        models.append({"id": number, "gridPos": where, **(_lines(panel) if panel.legend else _number(panel))})
        x, tallest = x + panel.width, max(tallest, height)
    return models


def source_variable() -> Model:
    """The variable that chooses a Prometheus data source."""
    return {
        "name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus", "regex": "",
        "multi": False, "includeAll": False, "current": {}, "refresh": 1, "hide": 0,
    }  # fmt: skip


def _number(panel: JobPanel) -> Model:
    defaults: Model = {"unit": panel.unit, "noValue": "none"}
    if panel.warn is not None:
        steps = [{"color": "green", "value": None}, {"color": "orange", "value": panel.warn}]
        defaults |= {"thresholds": {"mode": "absolute", "steps": steps}, "color": {"mode": "thresholds"}}
    return _panel(panel, "stat", defaults, options.stat())


def _lines(panel: JobPanel) -> Model:
    defaults = {"unit": panel.unit, "min": 0, "custom": {"drawStyle": "line", "spanNulls": False}}
    return _panel(panel, "timeseries", defaults, options.time_series())


def _panel(panel: JobPanel, kind: str, defaults: Model, shown: Model) -> Model:
    target = {
        "refId": "A", "datasource": SOURCE, "expr": panel.query, "legendFormat": panel.legend or "__auto",
        "editorMode": "code", "range": True, "instant": False,
    }  # fmt: skip
    return {
        "type": kind, "title": panel.title, "description": panel.help, "datasource": SOURCE, "targets": [target],
        "fieldConfig": {"defaults": defaults, "overrides": []}, "options": shown, "transformations": [],
    }  # fmt: skip

"""The dashboard of the pipeline's own metrics, which Prometheus reads at `/metrics` of the console and the notifier.

A job's name is the label `job`, which Prometheus keeps as `exported_job` unless it is told `honor_labels`: legends show
both.
"""

from __future__ import annotations

from dashboards.panels.metrics import MetricsDashboard, MetricsPanel, Promql

_JOB = "{{exported_job}} {{job}}"

JOBS = MetricsDashboard(
    "jobs",
    "Jobs",
    "Do the jobs keep up, and is what they did last safe?",
    (
        MetricsPanel(
            "Event time lag", "How far the slowest job's watermark is behind the present.",
            (Promql("max(newnormal_job_event_time_lag_seconds)"),), "s", warn=300, width=8,
        ),
        MetricsPanel(
            "Messages to read", "Kafka messages that the job with the largest backlog has not read yet.",
            (Promql("max(newnormal_job_lag_messages)"),), warn=1_000_000, width=8,
        ),
        MetricsPanel(
            "Oldest checkpoint", "Time since the slowest job completed a micro-batch, and with it a checkpoint.",
            (Promql("max(newnormal_job_checkpoint_age_seconds)"),), "s", warn=60, width=8,
        ),
        MetricsPanel(
            "Latency", "From the end of a window until its verdict can be found in Elasticsearch, its wait for late "
            "records included: the median of the last five minutes.",
            (Promql("newnormal_latency_seconds"),), "s", warn=60, width=8,
        ),
        MetricsPanel(
            "Dead letters", "Records of the last hour that could not be used: `newnormal deadletter list` shows them.",
            (Promql("sum(increase(newnormal_job_dead_lettered_total[1h]))"),), warn=1, width=8,
        ),
        MetricsPanel(
            "Incidents not told", "Incidents that a notification channel has to be told of, and was not yet.",
            (Promql("sum(newnormal_notify_waiting)"),), warn=10, width=8,
        ),
        MetricsPanel(
            "Records read", "Records per second of each job.",
            (Promql("newnormal_job_records_in_per_second", _JOB),), "eps",
        ),
        MetricsPanel(
            "Records written", "Records per second of each job.",
            (Promql("newnormal_job_records_out_per_second", _JOB),), "eps",
        ),
        MetricsPanel(
            "Kafka messages to read", "A line that only grows: the machine is too slow for the load, or a job hangs.",
            (Promql("newnormal_job_lag_messages", _JOB),),
        ),
        MetricsPanel(
            "Event time lag by job", "A line that rises by a second a second: one partition holds the watermark back.",
            (Promql("newnormal_job_event_time_lag_seconds", _JOB),), "s",
        ),
        MetricsPanel(
            "Duration of micro-batches", "How long the last micro-batch took.",
            (Promql("newnormal_job_batch_seconds", _JOB),), "s",
        ),
        MetricsPanel(
            "Age of the checkpoint",
            "Time since a micro-batch was completed; what came since is read again after a crash.",
            (Promql("newnormal_job_checkpoint_age_seconds", _JOB),), "s",
        ),
        MetricsPanel(
            "Late records", "Records per second that came after the allowed lateness, and are in no window.",
            (Promql("rate(newnormal_job_late_total[$__rate_interval])", _JOB),), "eps",
        ),
        MetricsPanel(
            "Dead letters by job", "Records per second that could not be used.",
            (Promql("rate(newnormal_job_dead_lettered_total[$__rate_interval])", _JOB),), "eps",
        ),
        MetricsPanel(
            "State", "Size of each job's keyed state: it grows with the number of series and the allowed lateness.",
            (Promql("newnormal_job_state_bytes", _JOB),), "bytes",
        ),
        MetricsPanel("Keys", "Keys in each job's state, mostly series.", (Promql("newnormal_job_state_keys", _JOB),)),
        MetricsPanel("Open windows", "Windows that have not ended yet.", (Promql("newnormal_job_windows_open", _JOB),)),
        MetricsPanel(
            "Busiest shard", "Share of the last records that one shard took: near 1, more shards would not help.",
            (Promql("newnormal_job_busiest_shard_ratio", _JOB),), "percentunit",
        ),
        MetricsPanel(
            "News stored", "News a second that were stored in Elasticsearch, by kind.",
            (Promql("rate(newnormal_novelties_total[$__rate_interval])", "{{kind}}"),), "eps",
        ),
        MetricsPanel(
            "News that are not over", "Series whose newest news is of a kind and goes on.",
            (Promql("newnormal_novelties_open", "{{kind}}"),),
        ),
        MetricsPanel(
            "Documents stored", "Documents per second that were stored in Elasticsearch.",
            (Promql("rate(newnormal_indexed_total[$__rate_interval])", "documents"),), "wps",
        ),
        MetricsPanel("Timers", "Timers that have not fired yet.", (Promql("newnormal_job_timers", _JOB),)),
        MetricsPanel(
            "Notifications", "Messages per second that each channel took.",
            (Promql("rate(newnormal_notify_sent_total[$__rate_interval])", "{{channel}}"),), "mps",
        ),
        MetricsPanel(
            "Notifications that failed", "Attempts per second at which a channel did not take a message.",
            (Promql("rate(newnormal_notify_failed_total[$__rate_interval])", "{{channel}}"),), "mps",
        ),
        MetricsPanel(
            "Oldest incident that waits",
            "For how long the oldest incident has waited that a channel has to be told of.",
            (Promql("newnormal_notify_oldest_waiting_seconds", "{{channel}}"),), "s",
        ),
        MetricsPanel(
            "Channels that fail", "For how long a channel has not taken messages; 0: it works.",
            (Promql("newnormal_notify_failing_seconds", "{{channel}}"),), "s",
        ),
    ),
)  # fmt: skip

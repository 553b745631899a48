"""The pipeline's status as Prometheus metrics, read anew at each scrape."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_COUNTERS = {
    "records_in": "Records read",
    "records_out": "Records written",
    "late": "Records after the allowed lateness",
    "dead_lettered": "Records that could not be handled",
}
_GAUGES = {
    "rate_in": ("records_in_per_second", "Records per second read, over the last ten seconds", 1.0),
    "rate_out": ("records_out_per_second", "Records per second written, over the last ten seconds", 1.0),
    "lag": ("lag_messages", "Kafka messages not read yet", 1.0),
    "watermark": ("watermark_timestamp_seconds", "Event time up to which input is complete", 1e-3),
    "state_bytes": ("state_bytes", "Size of the keyed state", 1.0),
    "keys": ("state_keys", "Keys in the state", 1.0),
    "open_windows": ("windows_open", "Windows that have not ended", 1.0),
    "timers": ("timers", "Timers that have not fired", 1.0),
    "busiest_share": ("busiest_shard_ratio", "Share of the last records that one shard took", 1.0),
    "batch_ms": ("batch_seconds", "Duration of the last micro-batch", 1e-3),
}
_AGES = {
    "watermark": ("event_time_lag_seconds", "How far the watermark is behind the present"),
    "completed": (
        "checkpoint_age_seconds",
        "Time since the last micro-batch, and with it the checkpoint, was completed",
    ),
}
_LATENCIES = {
    "latency_ms": (
        "latency_seconds",
        "Window end to searchable, its wait for late records included; last five minutes",
    ),
    "waits_ms": ("latency_waits_seconds", "How long each window waits for late records, a part of the latency"),
}
_BY_KIND: tuple[tuple[str, str, str, type[CounterMetricFamily | GaugeMetricFamily]], ...] = (
    ("stored", "novelties", "News stored in Elasticsearch, by kind", CounterMetricFamily),
    ("open", "novelties_open", "Series whose newest news is of this kind and is not over", GaugeMetricFamily),
)


class _StatusCollector(Collector):
    def __init__(self, status: Callable[[], dict[str, Any]]) -> None:
        self._status = status

    def collect(self) -> Iterable[Metric]:
        status = self._status()
        jobs = status.get("jobs") or ()
        for name, text in _COUNTERS.items():
            counter = CounterMetricFamily(f"newnormal_job_{name}", text, labels=["job"])
            for job in jobs:
                counter.add_metric([job["name"]], job[name])
            yield counter
        for field, (name, text, scale) in _GAUGES.items():
            gauge = GaugeMetricFamily(f"newnormal_job_{name}", text, labels=["job"])
            for job in jobs:
                if job[field] is not None:
                    gauge.add_metric([job["name"]], job[field] * scale)
            yield gauge
        now = time.time()
        for field, (name, text) in _AGES.items():
            age = GaugeMetricFamily(f"newnormal_job_{name}", text, labels=["job"])
            for job in jobs:
                if job[field] is not None:
                    age.add_metric([job["name"]], now - job[field] / 1000)
            yield age
        if status:
            yield from _of_the_pipeline(status)
        for field, name, text, family in _BY_KIND:
            metric = family(f"newnormal_{name}", text, labels=["kind"])
            for kind, value in (status.get(field) or {}).items():
                metric.add_metric([kind], value)
            yield metric


def _of_the_pipeline(status: dict[str, Any]) -> Iterable[Metric]:
    yield CounterMetricFamily("newnormal_indexed", "Documents stored in Elasticsearch", value=status["indexed"])
    for field, (name, text) in _LATENCIES.items():
        if status[field] is not None:
            yield GaugeMetricFamily(f"newnormal_{name}", text, value=status[field] / 1000)


def metrics_text(status: Callable[[], dict[str, Any]]) -> bytes:
    """The metrics in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_StatusCollector(status))
    return generate_latest(registry)

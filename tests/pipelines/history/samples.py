"""A history of two machines, as a node exporter would have told it, and what it would have become live."""

from __future__ import annotations

import math
import random

import pyarrow as pa

from engine.runtime.reading import read
from engine.spec.decoder import Messages
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.formats.labels import LabelRule
from pipelines.formats.remote_write_protocol import Label, WriteRequest
from pipelines.gateway.protocol import Body
from pipelines.gateway.remote_write import RemoteWrite
from pipelines.jobs.normalizers import normalizer
from tests.prometheus_server import History, Labels

MINUTE = 60_000
START = 1_793_491_200_000 - 3 * 86_400_000
"""2026-10-29T00:00:00Z, a full day."""

Row = tuple[int, str, str, float, str]


def history(start: int, hours: int, every: int = MINUTE, seed: int = 1) -> dict[Labels, list[tuple[int, float]]]:
    """Gauges, a counter that restarts, a histogram, a series with a gap, one that ends, and values that are none."""
    rng, made = random.Random(seed), dict[Labels, list[tuple[int, float]]]()
    times = range(start + 7_123, start + hours * 60 * MINUTE, every)  # scrapes come at odd instants
    for machine in ("web-1:9100", "web-2:9100"):
        label = (("instance", machine), ("job", "node"))
        made[("__name__", "node_load1"), *label] = [(t, round(1 + math.sin(t / 4e6) + rng.random(), 3)) for t in times]
        total, counter = 0.0, []
        for t in times:
            total = 0.0 if rng.random() < 0.01 else total + rng.randrange(1_000)
            counter.append((t, total))
        name = ("__name__", "node_network_receive_bytes_total")
        made[name, ("device", "eth0"), *label] = counter
        for number, bound in enumerate(("0.1", "+Inf")):
            bucket = [(t, float(n * (number + 1))) for n, t in enumerate(times)]
            made[("__name__", "http_seconds_bucket"), *label, ("le", bound)] = bucket
    gap = [(t, 1.0) for t in times if not hours * 20 * MINUTE < t - start < hours * 30 * MINUTE]
    made[("__name__", "up"), ("instance", "web-1:9100"), ("job", "node")] = gap
    ends = [(t, math.nan if n == 3 else 2.5) for n, t in enumerate(times) if t - start < hours * 40 * MINUTE]
    made[("__name__", "node_hwmon_temp_celsius"), ("chip", "0"), ("instance", "web-2:9100"), ("job", "node")] = ends
    made[("__name__", "nowhere"), ("job", "node")] = [(t, 1.0) for t in times]  # no label names a machine
    return made


def live(given: History, settings: Settings) -> list[Row]:
    """The samples that the normalizer makes of a history that came through the gateway by remote write."""
    request = WriteRequest()
    for labels, samples in given.items():
        series = request.timeseries.add()
        series.labels.extend(Label(name=name, value=value).SerializeToString() for name, value in labels)
        for time, value in samples:
            series.samples.add(value=value, timestamp=time)
    gateway = RemoteWrite(LabelRule.of(settings.input, topics.RAW_AGENTS))
    taken = gateway.take(Body(request.SerializeToString(), "application/x-protobuf"))
    assert taken.value is not None
    (source,) = normalizer(settings).inputs
    whole = Messages.of([taken.value], max(t for samples in given.values() for t, _ in samples))
    message = Messages(settings.reads(topics.RAW_AGENTS), 0, whole.values, whole.offsets, whole.arrived)
    return rows(read(source, message, "normalizer")[0])


def rows(records: pa.Table) -> list[Row]:
    """The records in one order, as tuples."""
    return sorted(tuple(row.values()) for row in records.to_pylist())

"""The decoder of OTLP metrics (an export request in protobuf or JSON, as the collector's Kafka exporter writes)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain
from typing import Any

import numpy as np
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric

from engine.formats.json_decoder import FIELD_INVALID
from engine.spec.decoder import Decoded, Decoder, Messages
from pipelines.jobs.normalize import otlp
from pipelines.jobs.normalize.labels import FOLDED, LABELS, LabelRule
from pipelines.jobs.normalize.refusals import MESSAGE_EMPTY, Refusals, RefusedError
from pipelines.jobs.normalize.remembering import LONGEST_REMEMBERED, characters
from pipelines.jobs.normalize.samples import LONGEST, LONGEST_LABELS, Coded, short, table

_DESCRIBING = ("cloud.", "container.", "deployment.", "device.", "host.", "k8s.", "os.", "process.", "telemetry.")
_DISTINCT = ("container.id", "container.name", "process.executable.name", "process.pid")
_OF_MACHINE = ("k8s.cluster.name", "k8s.node.name", "service.version")
_FOLDED = "process.pid"

_Pairs = tuple[tuple[str, str], ...]
_CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
NO_VALUE = 1
"""The flag of a data point that says that there is no value at this time."""


@dataclass(frozen=True)
class OtlpMetricsDecoder(Decoder):
    """Decodes gauges, sums, histograms and summaries.

    Monotonic cumulative sums are counters, delta sums are counts, other sums are gauges. A histogram is its count, sum
    and buckets (``name.bucket{le=...}``, each with all below it), which count in the same way, and its ``name.min`` and
    ``name.max``; an exponential histogram is the same without buckets. A summary is a gauge for each quantile, and
    counters of its count and sum. The attributes of a resource distinguish series, but for those that describe it.

    Args:
        labels: Which attributes name the machine and the series.
    """

    labels: LabelRule = LABELS

    def decode(self, messages: Messages) -> Decoded:
        refusals = Refusals()
        rows: list[int] = []
        times: list[int] = []
        values: list[float] = []
        entities: dict[str, int] = {}
        metrics: dict[str, int] = {}
        kinds: dict[str, int] = {}
        codes: list[tuple[int, int, int]] = []
        for row, value in enumerate(messages.values.to_pylist()):
            arrived, held = int(messages.arrived[row]), len(rows)
            try:
                request = otlp.read(value or b"", ExportMetricsServiceRequest)
                for resource, size, metric in _metrics(request, self.labels):
                    for part, kind, pairs, time, number in _points(metric):
                        long = size + sum(map(len, chain.from_iterable(pairs))) > LONGEST_REMEMBERED
                        machine, name = (_series if long else _remembered)(self.labels, part, resource, pairs)
                        rows.append(row)
                        times.append(time // 1_000_000 if time else arrived)
                        values.append(number)
                        entity = entities.setdefault(machine, len(entities))
                        named = metrics.setdefault(name, len(metrics))
                        codes.append((entity, named, kinds.setdefault(kind, len(kinds))))
            except RefusedError as error:
                refusals.add(row, error.code, str(error))
                continue
            if len(rows) == held:
                refusals.add(row, MESSAGE_EMPTY, "the request holds no data point with a value")
        coded = np.array(codes, np.int64).reshape(-1, 3)
        return table(
            np.array(rows, np.int32),
            np.array(times, np.int64),
            Coded(coded[:, 0], list(entities)),
            Coded(coded[:, 1], list(metrics)),
            np.array(values, np.float64),
            Coded(coded[:, 2], list(kinds)),
            refusals,
        )


def is_metrics(value: bytes) -> bool:
    """Whether a message in protobuf is a request with metrics; a request with logs has the same frame."""
    try:
        request = otlp.read(value, ExportMetricsServiceRequest)
    except RefusedError:
        return False
    scopes = (scope for resource in request.resource_metrics for scope in resource.scope_metrics)
    return any(metric.name for scope in scopes for metric in scope.metrics)


def _metrics(request: ExportMetricsServiceRequest, rule: LabelRule) -> Iterator[tuple[_Pairs, int, Metric]]:
    """The metrics, each with the attributes of its resource that may be needed, and the number of characters in these.

    Raises:
        RefusedError: If the name of a metric, or the attributes, are too long.
    """
    for resource in request.resource_metrics:
        given = otlp.labels(resource.resource.attributes)
        pairs = tuple((key, value) for key, value in given if key in rule.machine or _distinguishes(key))
        size = characters(_short(pairs))
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                if len(metric.name) > LONGEST:
                    raise RefusedError(FIELD_INVALID, f"the name of a metric is longer than {LONGEST} characters")
                yield pairs, size, metric


def _short(pairs: _Pairs) -> _Pairs:
    """Attributes which all series of a resource, or all buckets of a histogram, repeat.

    Raises:
        RefusedError: If they are too long.
    """
    if characters(pairs) > LONGEST_LABELS:
        raise RefusedError(FIELD_INVALID, f"attributes have together more than {LONGEST_LABELS} characters")
    return pairs


def _points(metric: Metric) -> Iterator[tuple[str, str, _Pairs, int, float]]:
    """Name, kind, attributes, time in nanoseconds and value of each sample.

    Raises:
        RefusedError: If the attributes of a histogram or summary are too long.
    """
    form = metric.WhichOneof("data")
    if form is None:
        return
    data: Any = getattr(metric, form)
    counting = "counter" if form == "summary" or getattr(data, "aggregation_temporality", 0) == _CUMULATIVE else "count"
    name = metric.name
    for point in data.data_points:
        if point.flags & NO_VALUE:
            continue
        pairs, time = otlp.labels(point.attributes), point.time_unix_nano
        if form in ("gauge", "sum"):
            kind = counting if form == "sum" and data.is_monotonic else "gauge"
            number = point.WhichOneof("value")
            if number is not None:
                yield name, kind, pairs, time, float(getattr(point, number))
            continue
        yield f"{name}.count", counting, _short(pairs), time, float(point.count)
        if form == "summary" or point.HasField("sum"):
            yield f"{name}.sum", counting, pairs, time, point.sum
        if form == "summary":
            for each in point.quantile_values:
                yield name, "gauge", (*pairs, ("quantile", f"{each.quantile:g}")), time, each.value
            continue
        for part in ("min", "max"):
            if point.HasField(part):
                yield f"{name}.{part}", "gauge", pairs, time, getattr(point, part)
        if form == "histogram" and len(point.bucket_counts) == len(point.explicit_bounds) + 1:
            bounds = [*(f"{bound:g}" for bound in point.explicit_bounds), "+Inf"]
            for bound, total in zip(bounds, accumulate(point.bucket_counts), strict=True):
                yield f"{name}.bucket", counting, (*pairs, ("le", bound)), time, float(total)


def _series(rule: LabelRule, name: str, resource: _Pairs, pairs: _Pairs) -> tuple[str, str]:
    """The machine and the metric's name with its instance."""
    both = (*resource, *pairs)
    label = next((each for each in rule.machine if any(key == each and value for key, value in both)), "")
    folded = "" if label == _FOLDED else _FOLDED
    kept = [(key, value) for key, value in resource if key == label or _distinguishes(key)]
    machine, instance = rule.apply((*((key, FOLDED if key == folded else value) for key, value in kept), *pairs))
    return machine, short(f"{name}{instance}")


_remembered = lru_cache(1 << 17)(_series)


def _distinguishes(attribute: str) -> bool:
    """Whether an attribute of a resource distinguishes two of them on one machine, rather than to describe them.

    >>> [_distinguishes(name) for name in ("process.pid", "k8s.deployment.name", "my.shard", "os.type", "k8s.pod.uid")]
    [True, True, True, False, False]
    """
    if attribute in _OF_MACHINE:
        return False
    named = attribute in _DISTINCT or (attribute.startswith("k8s.") and attribute.endswith(".name"))
    return named or not attribute.startswith(_DESCRIBING)

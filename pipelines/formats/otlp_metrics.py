"""The decoder of OTLP metrics (an export request in protobuf or JSON, as the collector's Kafka exporter writes)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, chain
from math import inf
from typing import Any

import numpy as np
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric, ResourceMetrics

from engine.formats.json_decoder import FIELD_INVALID
from engine.spec.decoder import Decoded, Decoder, Messages
from pipelines.formats import otlp, otlp_json
from pipelines.formats.distributions import Part, of_interval
from pipelines.formats.labels import FOLDED, LABELS, LabelRule
from pipelines.formats.otlp_json import NO_VALUE, Point
from pipelines.formats.refusals import MESSAGE_EMPTY, Refusals, RefusedError
from pipelines.formats.remembering import LONGEST_REMEMBERED, characters, remembered
from pipelines.formats.samples import LONGEST, LONGEST_LABELS, Coded, is_folded, short, table, wrong_metric

_DESCRIBING = ("cloud.", "container.", "deployment.", "device.", "host.", "k8s.", "os.", "process.", "telemetry.")
_DISTINCT = ("container.id", "container.name", "process.executable.name", "process.pid")
_OF_MACHINE = ("k8s.cluster.name", "k8s.node.name", "service.version")
_FOLDED = "process.pid"

_Pairs = tuple[tuple[str, str], ...]
_CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


@dataclass(frozen=True)
class OtlpMetricsDecoder(Decoder):
    """Decodes gauges, sums, histograms and summaries.

    Monotonic cumulative sums are counters, delta sums are counts, other sums are gauges. A delta histogram is its
    count, its ``name.mean`` and ``name.p95`` (of the kind latency), and its ``name.min`` and ``name.max``. A cumulative
    one is its count, sum and buckets (``name.bucket{le=...}``, each with all below it), all counters, and its extremes.
    An exponential histogram is the same without buckets and ``name.p95``. A summary is a gauge for each quantile, and
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
        codes: list[int] = []
        numbers = _SeriesNumbers(self.labels)
        for row, value in enumerate(messages.values.to_pylist()):
            arrived, held = int(messages.arrived[row]), len(rows)
            try:
                for resource, size, points in _metrics(_resources(value or b""), self.labels):
                    own = numbers.of_resource.setdefault(resource, {})
                    for part, kind, pairs, time, number in points:
                        code = own.get((part, kind, pairs))
                        codes.append(numbers.add(resource, size, part, kind, pairs) if code is None else code)
                        rows.append(row)
                        times.append(time // 1_000_000 if time else arrived)
                        values.append(number)
            except RefusedError as error:
                refusals.add(row, error.code, str(error))
                continue
            if len(rows) == held:
                refusals.add(row, MESSAGE_EMPTY, "the request holds no data point with a value")
        series = np.array(codes, np.int64)
        entity, metric, kinds = (np.array(each, np.int64)[series] for each in numbers.codes)
        return table(
            np.array(rows, np.int32),
            np.array(times, np.int64),
            Coded(entity, list(numbers.entities)),
            Coded(metric, list(numbers.metrics)),
            np.array(values, np.float64),
            Coded(kinds, list(numbers.kinds)),
            refusals,
        )


class _SeriesNumbers:
    """The series of some messages, each with a number.

    Attributes:
        of_resource: Their numbers, by resource, and by name, kind and attributes.
        codes: The numbers of the machine, metric and kind of each.
    """

    def __init__(self, rule: LabelRule) -> None:
        self._rule = rule
        self.of_resource: dict[_Pairs, dict[tuple[str, str, _Pairs], int]] = {}
        self.codes: tuple[list[int], list[int], list[int]] = ([], [], [])
        self.entities: dict[str, int] = {}
        self.metrics: dict[str, int] = {}
        self.kinds: dict[str, int] = {}

    def add(self, resource: _Pairs, size: int, part: str, kind: str, pairs: _Pairs) -> int:
        """Gives a series its number."""
        long = size + sum(map(len, chain.from_iterable(pairs))) > LONGEST_REMEMBERED
        machine, name = (_series if long else _remembered)(self._rule, part, resource, pairs)
        number = len(self.codes[0])
        self.codes[0].append(self.entities.setdefault(machine, len(self.entities)))
        self.codes[1].append(self.metrics.setdefault(name, len(self.metrics)))
        self.codes[2].append(self.kinds.setdefault(kind, len(self.kinds)))
        self.of_resource[resource][part, kind, pairs] = number
        return number


_Resource = tuple[_Pairs, Iterable[tuple[str, Iterable[Point]]]]


def _resources(value: bytes) -> Iterable[_Resource]:
    """The attributes of each resource of a request, and its metrics: name and data points.

    Raises:
        RefusedError: If the message is no request.
    """
    tree = otlp.tree(value)
    usual = None if tree is None else otlp_json.metrics(tree)
    if usual is None:
        request = otlp.read(value, ExportMetricsServiceRequest)
        return ((otlp.labels(each.resource.attributes), _of_scopes(each)) for each in request.resource_metrics)
    return ((common, [(name, _parsed(points)) for name, points in metrics]) for common, metrics in usual)


def _of_scopes(resource: ResourceMetrics) -> Iterator[tuple[str, Iterable[Point]]]:
    return ((metric.name, _points(metric)) for scope in resource.scope_metrics for metric in scope.metrics)


def _parsed(points: list[Point] | dict[str, Any]) -> Iterable[Point]:
    """The data points of a metric that is neither gauge nor sum, which are read by protobuf's own reader."""
    return points if isinstance(points, list) else _points(otlp.of_tree(points, Metric))


def is_metrics(value: bytes) -> bool:
    """Whether a message in protobuf is a request with metrics; a request with logs has the same frame."""
    try:
        request = otlp.read(value, ExportMetricsServiceRequest)
    except RefusedError:
        return False
    scopes = (scope for resource in request.resource_metrics for scope in resource.scope_metrics)
    return any(metric.name for scope in scopes for metric in scope.metrics)


def _metrics(resources: Iterable[_Resource], rule: LabelRule) -> Iterator[tuple[_Pairs, int, Iterable[Point]]]:
    """The metrics, each with the attributes of its resource that may be needed, and the number of characters in these.

    Raises:
        RefusedError: If the name of a metric, or the attributes, are too long.
    """
    for attributes, metrics in resources:
        pairs = _needed(rule, attributes)
        size = characters(_short(pairs))
        for name, points in metrics:
            if len(name) > LONGEST:
                raise RefusedError(FIELD_INVALID, f"the name of a metric is longer than {LONGEST} characters")
            yield pairs, size, points


def _needed(rule: LabelRule, resource: _Pairs) -> _Pairs:
    """The attributes of a resource that may name its machine or distinguish its series."""
    return tuple((key, value) for key, value in resource if key in rule.machine or _distinguishes(key))


def is_plain(rule: LabelRule, resource: _Pairs, name: str, pairs: _Pairs) -> bool:
    """Whether each value of a gauge or a sum, unless it is NaN, becomes a record of its own.

    Args:
        rule: Which attributes name the machine and the series.
        resource: The attributes of the resource.
        name: The name of the metric.
        pairs: The attributes of the data point.

    >>> is_plain(LABELS, (("host.name", "a"),), "load", ()), is_plain(LABELS, (), "load", ())
    (True, False)
    """
    machine, metric = _series(rule, name, _needed(rule, resource), pairs)
    return 0 < len(machine) <= LONGEST and not wrong_metric(metric) and not is_folded(metric)


def _short(pairs: _Pairs) -> _Pairs:
    """Attributes which all series of a resource, or all buckets of a histogram, repeat.

    Raises:
        RefusedError: If they are too long.
    """
    if characters(pairs) > LONGEST_LABELS:
        raise RefusedError(FIELD_INVALID, f"attributes have together more than {LONGEST_LABELS} characters")
    return pairs


def _points(metric: Metric) -> Iterator[Point]:
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
        parts = _of_summary(point) if form == "summary" else _of_histogram(point, form, counting)
        for part, more, number, kind in parts:
            yield f"{name}{part}", kind, (*pairs, *more), time, number


def _of_summary(point: Any) -> Iterator[Part]:
    yield ".sum", (), point.sum, "counter"
    for each in point.quantile_values:
        yield "", (("quantile", f"{each.quantile:g}"),), each.value, "gauge"


def _of_histogram(point: Any, form: str, counting: str) -> Iterator[Part]:
    """What is known of a data point beside its count: of an interval its mean and 95th percentile, else the buckets."""
    explicit = form == "histogram" and len(point.bucket_counts) == len(point.explicit_bounds) + 1
    bounds, counts = (point.explicit_bounds, point.bucket_counts) if explicit else ((), ())
    total = point.sum if point.HasField("sum") else None
    given_extremes = [part for part in ("min", "max") if point.HasField(part)]
    if total is not None and counting == "counter":
        yield ".sum", (), total, counting
    for part in given_extremes:
        yield f".{part}", (), getattr(point, part), "gauge"
    if counting == "count":
        extremes = (point.min if "min" in given_extremes else -inf, point.max if "max" in given_extremes else inf)
        yield from of_interval(point.count, total, bounds, counts, extremes)
    elif explicit:
        limits = [*(f"{bound:g}" for bound in bounds), "+Inf"]
        for limit, below in zip(limits, accumulate(counts), strict=True):
            yield ".bucket", (("le", limit),), float(below), counting


def _series(rule: LabelRule, name: str, resource: _Pairs, pairs: _Pairs) -> tuple[str, str]:
    """The machine and the metric's name with its instance."""
    both = (*resource, *pairs)
    label = next((each for each in rule.machine if any(key == each and value for key, value in both)), "")
    folded = "" if label == _FOLDED else _FOLDED
    kept = [(key, value) for key, value in resource if key == label or _distinguishes(key)]
    labels = (*((key, FOLDED if key == folded else value) for key, value in kept), *pairs)
    machine, instance = rule.apply(labels, metric=name)
    return machine, short(f"{name}{instance}")


_remembered = remembered(1 << 17, lambda rule, name, resource, pairs: len(name))(_series)
"""Whether the attributes are short, `_SeriesNumbers.add` knows."""


def _distinguishes(attribute: str) -> bool:
    """Whether an attribute of a resource distinguishes two of them on one machine, rather than to describe them.

    >>> [_distinguishes(name) for name in ("process.pid", "k8s.deployment.name", "my.shard", "os.type", "k8s.pod.uid")]
    [True, True, True, False, False]
    """
    if attribute in _OF_MACHINE:
        return False
    named = attribute in _DISTINCT or (attribute.startswith("k8s.") and attribute.endswith(".name"))
    return named or not attribute.startswith(_DESCRIBING)

"""Counts the data points of an OTLP request that are plain, several times faster than decoding them.

A data point is plain if it belongs to a gauge or a sum and becomes a record of its own, whatever else its request
holds: see `pipelines.formats.otlp_metrics.is_plain`. This depends on the attributes of its resource, the name of
its metric and its own attributes, which are the same in each request. So it is remembered by the bytes of the
attributes, and these are parsed once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.resource.v1 import resource_pb2

from pipelines.formats import otlp
from pipelines.formats.labels import LabelRule
from pipelines.formats.otlp_json import NO_VALUE
from pipelines.formats.otlp_metrics import is_plain
from pipelines.formats.remembering import BUDGET, LONGEST_REMEMBERED
from pipelines.formats.samples import LONGEST

_Attributes = tuple[bytes, ...]
_IsPlain = dict[tuple[str | bytes, ...], bool]
"""Whether the points are plain that have a metric's name, which comes first, and attributes."""


def _request_class() -> Any:
    """The type of requests in which attributes of resources, and of points of gauges and sums, are left as bytes."""
    pool = descriptor_pool.DescriptorPool()
    for module in (common_pb2, resource_pb2, metrics_pb2, metrics_service_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        for message in file.message_type:
            for field in message.field:
                if message.name in ("Resource", "NumberDataPoint") and field.name == "attributes":
                    field.type = field.TYPE_BYTES
                    field.ClearField("type_name")
        pool.Add(file)
    name = metrics_service_pb2.ExportMetricsServiceRequest.DESCRIPTOR.full_name
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


_Request = _request_class()


@dataclass
class Counted:
    """What is found in a request.

    Args:
        samples: How many records the plain points become.
        empty: How many of them hold no value, and do not say so themselves.
        rest: The metrics that are not plain, as a request; empty if there are none.
    """

    samples: int
    empty: int
    rest: bytes


class PlainPoints:
    """Counts plain points. Several threads may use it.

    Args:
        rule: Which attributes name the machine and the series.
    """

    def __init__(self, rule: LabelRule) -> None:
        self._rule = rule
        self._plain: dict[_Attributes, _IsPlain] = {}
        self._shared: dict[str | bytes, str | bytes] = {}  # so that series share what they have in common
        BUDGET.caches += [self._plain, self._shared]

    def count(self, value: bytes) -> Counted:
        """Counts the points of a request.

        Args:
            value: A request in protobuf that is well-formed.
        """
        rest, samples, empty = _Request(), 0, 0
        for resource in _Request.FromString(value).resource_metrics:
            common = tuple(resource.resource.attributes)
            if sum(map(len, common)) > LONGEST_REMEMBERED:
                rest.resource_metrics.append(resource)
                continue
            plain_series = self._plain.get(common, {})
            others = []
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    counted = self._counted(common, plain_series, metric)
                    if counted is None:
                        others.append(metric)
                    else:
                        samples += counted[0]
                        empty += counted[1]
            if others:
                rest.resource_metrics.add(resource=resource.resource).scope_metrics.add(metrics=others)
        return Counted(samples, empty, rest.SerializeToString())

    def _counted(self, common: _Attributes, plain_series: _IsPlain, metric: Any) -> tuple[int, int] | None:
        """How many points of a metric hold a number, and how many hold nothing; ``None`` if not all are plain."""
        name, form = metric.name, metric.WhichOneof("data")
        if form not in ("gauge", "sum") or len(name) > LONGEST:
            return None
        samples = empty = 0
        for point in getattr(metric, form).data_points:
            series = (name, *point.attributes)
            plain = plain_series.get(series)
            if plain is None:
                plain = self._learn(common, name, series[1:])
            if not plain:
                return None
            number = point.as_double  # 0.0 if the value is an integer
            if point.flags & NO_VALUE:
                continue
            if number == 0.0 and point.WhichOneof("value") is None:
                empty += 1
            elif not isnan(number):
                samples += 1
        return samples, empty

    def _learn(self, common: _Attributes, name: str, attributes: _Attributes) -> bool:
        """Whether a point is plain, which is found out and remembered."""
        if sum(map(len, attributes)) > LONGEST_REMEMBERED:
            return False
        plain = is_plain(self._rule, _labels(common), name, _labels(attributes))
        parts: tuple[str | bytes, ...] = (name, *attributes)
        BUDGET.add((*common, *parts), None)
        series = tuple(self._shared.setdefault(each, each) for each in parts)
        self._plain.setdefault(common, {})[series] = plain
        return plain


def _labels(attributes: Iterable[bytes]) -> tuple[tuple[str, str], ...]:
    return otlp.labels(map(common_pb2.KeyValue.FromString, attributes))

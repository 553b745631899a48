"""The decoder of Amazon CloudWatch: metric streams in JSON, and what ``GetMetricData`` answers.

Sources: the CloudWatch user guide, "JSON format" of metric streams; the API reference of ``GetMetricData``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipelines.formats.instants import moment
from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.message_decoder import MessageDecoder, Sample
from pipelines.formats.refusals import MACHINE_UNKNOWN, MESSAGE_EMPTY, RefusedError
from pipelines.formats.samples import short

_MACHINES = (
    "InstanceId", "DBInstanceIdentifier", "DBClusterIdentifier", "CacheClusterId", "LoadBalancer", "LoadBalancerName",
    "FunctionName", "QueueName", "TableName", "StreamName", "BucketName", "ClusterName", "AutoScalingGroupName",
    "VolumeId", "FileSystemId", "NatGatewayId", "Broker ID", "DomainName", "ApiName", "TopicName", "ServiceName",
)  # fmt: skip
"""Dimensions that name what a metric is about, where none of the labels of machines is there."""
_ADDED_UP = ("Count", "Bytes", "Bits", "Kilobytes", "Megabytes", "Gigabytes", "Terabytes")
_DIMENSION = "no dimension names the machine; known: {known}, and those in input.machine"
_LABEL = "accepted: the label 'machine metric', e.g. ${PROP('Dim.InstanceId')} ${PROP('MetricName')}"


@dataclass(frozen=True)
class CloudwatchDecoder(MessageDecoder):
    """Decodes records of metric streams (an object, or a list of them), and answers of ``GetMetricData``.

    A record becomes ``namespace.metric.mean``, ``.min`` and ``.max``, and where its unit is one that adds up (counts,
    bytes) ``.sum``, of the kind ``count``.

    Args:
        labels: Which dimensions name the machine and the series, before the usual ones of CloudWatch.
    """

    labels: LabelRule = LABELS

    def samples(self, message: Any) -> Iterator[Sample]:
        for one in message if type(message) is list else (message,):
            yield from self._results(one) if "MetricDataResults" in one else self._record(one)

    def _record(self, record: Any) -> Iterator[Sample]:
        dimensions, value = dict(record["dimensions"]), record["value"]
        machine, instance = self.labels.apply(dimensions.items())
        if not machine:
            name = next((each for each in _MACHINES if each in dimensions), None)
            if name is None:
                raise RefusedError(MACHINE_UNKNOWN, _DIMENSION.format(known=", ".join(_MACHINES)))
            machine = dimensions.pop(name)
            instance = self.labels.apply((("host", machine), *dimensions.items()))[1] if dimensions else ""
        time, metric = moment(record["timestamp"]), f"{record['namespace']}.{record['metric_name']}"
        if value["count"] > 0:
            yield time, machine, short(f"{metric}.mean{instance}"), value["sum"] / value["count"], "gauge"
            yield time, machine, short(f"{metric}.min{instance}"), float(value["min"]), "gauge"
            yield time, machine, short(f"{metric}.max{instance}"), float(value["max"]), "gauge"
        if record.get("unit") in _ADDED_UP or value["count"] <= 0:
            yield time, machine, short(f"{metric}.sum{instance}"), float(value["sum"]), "count"

    def _results(self, answer: Any) -> Iterator[Sample]:
        count = 0
        for result in answer["MetricDataResults"]:
            machine, _, metric = result["Label"].partition(" ")
            if not machine or not metric:
                raise RefusedError(MACHINE_UNKNOWN, f"{result['Label'][:80]!r}: {_LABEL}")
            for time, value in zip(result["Timestamps"], result["Values"], strict=True):
                yield moment(time), machine, short(metric), float(value), "gauge"
                count += 1
        if not count:
            raise RefusedError(MESSAGE_EMPTY, "no result has a value")

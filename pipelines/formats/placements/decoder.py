"""The decoder that looks for placements and planned ends only, in messages of agents that may be of any format.

Most messages say nothing of the kind: these are found by a few words, without being parsed. Of a request of OTLP only
the attributes of resources are read, each once, and the time of one data point. What cannot be read is left out, as the
normalizer that reads the same topic reports it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from engine.spec.decoder import Decoded, Decoder, Messages
from pipelines.formats import influx_lines, otlp
from pipelines.formats.by_message import table
from pipelines.formats.instants import moment
from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.measurement import epoch_ms
from pipelines.formats.otlp_json import NO_VALUE
from pipelines.formats.placements import agents, kubernetes, resources
from pipelines.formats.placements.facts import LONGEST, SLOT, Fact, Sighting
from pipelines.formats.prometheus import parsed
from pipelines.formats.refusals import RefusedError
from pipelines.formats.remembering import remembered
from pipelines.formats.remote_write_protocol import Label, Request, is_remote_write, message_classes, read
from pipelines.formats.telegraf import measurements, time_of

_NAMES = "|".join(kubernetes.SERIES)
_SERIES = re.compile(_NAMES.encode())
_SAYS = rf"k8s\.|container\.id|compose\.service|aws\.ecs\.|nomad\.job|\"kubernetes|{agents.MEASUREMENTS}|{_NAMES}"
"""What stands in each message that says something of a placement; of OTLP in JSON also as text."""
_LINE = re.compile(
    rb"^(?:" + _NAMES.encode() + rb")\s*\{(?:[^\"{}\n]|\"(?:[^\"\\\n]|\\.)*+\")*+\}\s*(\S++)[ \t]*+([0-9]++)?", re.M
)
_INFLUX = re.compile(rb"^(" + agents.MEASUREMENTS.encode() + rb"[a-z]*+,(?:[^\s\\]|\\.)++) ([^\n]*+)", re.M)
_ERRORS = (
    *(RefusedError, DecodeError, UnicodeDecodeError),
    *(ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError),
)
_LAZY = message_classes(
    "newnormal.placements",
    {
        "Scope": "bytes* metrics 2",
        "ResourceData": "bytes resource 1, bytes* scopes 2",
        "Data": "ResourceData* resources 1",
    },
)
"""A request of OTLP in which only the frame of resources is parsed; spans have the place of metrics."""
_CACHED = 1 << 16
_FARTHEST = 1 << 62
"""A time in JSON or in text may have any number of digits; one that is farther away does not fit into a column."""

Timed = tuple[Fact, int]
"""A fact and its event time, epoch milliseconds."""


@dataclass(frozen=True)
class TracedPlacementsDecoder(Decoder):
    """Decodes messages of traces to `Sighting`: what the attributes of resources say; it refuses none.

    A resource that says nothing of a place is a sighting of its service all the same, so that time goes on where only
    traces come.

    Args:
        labels: Which attributes name the machine.
    """

    labels: LabelRule = LABELS

    def decode(self, messages: Messages) -> Decoded:
        values, arrived = messages.values.to_pylist(), messages.arrived.tolist()
        return sighted(
            (row, _of_traces(value or b"", at, self.labels))
            for row, (value, at) in enumerate(zip(values, arrived, strict=True))
        )


@dataclass(frozen=True)
class PlacementsDecoder(Decoder):
    """Decodes messages of metrics to `Sighting`; it refuses none.

    Args:
        labels: Which labels and attributes name the machine.
    """

    labels: LabelRule = LABELS

    def decode(self, messages: Messages) -> Decoded:
        says = pc.fill_null(pc.match_substring_regex(messages.values, _SAYS), False)
        rows = np.flatnonzero(np.asarray(says))
        values, arrived = messages.values.take(pa.array(rows)).to_pylist(), messages.arrived[rows].tolist()
        return sighted(
            (row, facts_of(value, at, self.labels))
            for row, value, at in zip(rows.tolist(), values, arrived, strict=True)
        )


def sighted(messages: Iterable[tuple[int, Iterable[Timed]]]) -> Decoded:
    """The facts of some messages, each once within a slot of time; those of a message that is broken are left out.

    Of a condition the time is exact, as it may have changed within a slot.
    """
    seen: dict[tuple[Fact, int], int] = {}
    for row, facts in messages:
        try:
            found = [(fact, time if fact.condition else time - time % SLOT) for fact, time in facts]
            if any(abs(time) > _FARTHEST for _, time in found):
                continue
        except _ERRORS:
            continue
        for each in found:
            seen.setdefault(each, row)
    sightings = [(*fact, time) for fact, time in seen]
    return Decoded(table(Sighting, sightings, np.fromiter(seen.values(), np.int32, len(seen))))


def facts_of(value: bytes, arrived: int, rule: LabelRule) -> Iterator[Timed]:
    """What a message of any format says; reading on may raise one of `_ERRORS` if it is broken.

    Args:
        value: The message.
        arrived: When it arrived, epoch milliseconds.
        rule: Which labels name the machine.
    """
    if is_remote_write(value):
        yield from _of_remote_write(value, rule)
    elif value[:64].lstrip()[:1] == b"{" and not otlp.framed(value):
        yield from _of_json(orjson.loads(value), value, arrived, rule)
    elif value[:1] == b"\n" and otlp.framed(value):
        yield from _of_protobuf(value, arrived, rule)
    else:
        yield from _of_text(value, arrived, rule)


def _of_traces(value: bytes, arrived: int, rule: LabelRule) -> Iterator[Timed]:
    if otlp.is_json(value):
        for each in orjson.loads(value).get("resourceSpans", ()):
            scopes = (span for scope in each.get("scopeSpans", ()) for span in scope.get("spans", ())[:1])
            end = next((int(span.get("endTimeUnixNano", 0)) for span in scopes), 0)
            found = _of_resource(rule, orjson.dumps(each.get("resource", {})), True)
            yield from ((fact, end // 1_000_000 or arrived) for fact in found)
        return
    for each in _LAZY["Data"].FromString(value).resources:
        spans = chain.from_iterable(_LAZY["Scope"].FromString(scope).metrics[:1] for scope in each.scopes)
        end = next((Span.FromString(span).end_time_unix_nano for span in spans), 0)
        yield from ((fact, end // 1_000_000 or arrived) for fact in _of_resource(rule, each.resource, True))


@remembered(_CACHED, lambda rule, resource, traced: len(resource))
def _of_resource(rule: LabelRule, resource: bytes, traced: bool) -> tuple[Fact, ...]:
    """What a resource in protobuf or JSON says; one of traces that says nothing else names its service."""
    in_json = resource[:1] == b"{"
    read_one = otlp.of_tree(orjson.loads(resource), Resource) if in_json else Resource.FromString(resource)
    pairs = otlp.labels(read_one.attributes)
    found = resources.facts(rule, pairs)
    if found or not traced:
        return found
    service = resources.machine_of(rule, pairs) or resources.workload_of(dict(pairs)) or ""
    return (Fact(service),) if 0 < len(service) <= LONGEST else ()


def _of_protobuf(value: bytes, arrived: int, rule: LabelRule) -> Iterator[Timed]:
    for each in _LAZY["Data"].FromString(value).resources:
        if found := _of_resource(rule, each.resource, False):
            time = _time(each.scopes) or arrived
            yield from ((fact, time) for fact in found)
    if _SERIES.search(value):
        yield from _of_series(ExportMetricsServiceRequest.FromString(value), arrived, rule)


def _of_json(tree: Any, value: bytes, arrived: int, rule: LabelRule) -> Iterator[Timed]:
    if "resourceMetrics" not in tree:
        yield from _of_agent(tree, rule)
        return
    for each in tree["resourceMetrics"]:
        if found := _of_resource(rule, orjson.dumps(each.get("resource", {})), False):
            metrics = (metric for scope in each.get("scopeMetrics", ()) for metric in scope.get("metrics", ()))
            time = next((time for metric in metrics if (time := _time_in_json(metric))), arrived)
            yield from ((fact, time) for fact in found)
    if _SERIES.search(value):
        yield from _of_series(otlp.of_tree(tree, ExportMetricsServiceRequest), arrived, rule)


def _of_agent(tree: Any, rule: LabelRule) -> Iterator[Timed]:
    """What a document of Metricbeat, or a message of Telegraf, says."""
    if "metricset" in tree and "@timestamp" in tree:
        yield from ((fact, moment(tree["@timestamp"])) for fact in resources.facts(rule, agents.of_document(tree)))
        return
    for each in measurements(tree) if "tags" in tree or "metrics" in tree else ():
        pairs = agents.of_measurement(each["name"], each["tags"])
        yield from ((fact, time_of(each)) for fact in resources.facts(rule, pairs))


def _time_in_json(metric: Mapping[str, Any]) -> int:
    """The event time of a metric's first data point, epoch milliseconds; 0: there is none."""
    for form in metric.values():
        if isinstance(form, dict) and form.get("dataPoints"):
            return int(form["dataPoints"][0].get("timeUnixNano", 0)) // 1_000_000
    return 0


def _time(scopes: Iterable[bytes]) -> int:
    """The event time of the first data point, epoch milliseconds; 0: there is none, or it does not say."""
    for metric in chain.from_iterable(_LAZY["Scope"].FromString(scope).metrics for scope in scopes):
        if time := _time_of(Metric.FromString(metric)):
            return time
    return 0


def _time_of(metric: Any) -> int:
    form = metric.WhichOneof("data")
    points = getattr(metric, form).data_points if form else ()
    return points[0].time_unix_nano // 1_000_000 if points else 0


def _of_series(request: Any, arrived: int, rule: LabelRule) -> Iterator[Timed]:
    """What series of Prometheus say that came over OTLP."""
    for each in request.resource_metrics:
        common = otlp.labels(each.resource.attributes)
        for metric in (metric for scope in each.scope_metrics for metric in scope.metrics):
            form = metric.WhichOneof("data") if metric.name in kubernetes.SERIES else None
            for point in getattr(metric, form).data_points if form in ("gauge", "sum") else ():
                number = point.WhichOneof("value")
                if number is None or point.flags & NO_VALUE:
                    continue
                labels = dict((*common, *otlp.labels(point.attributes)))
                time = point.time_unix_nano // 1_000_000 or arrived
                found = kubernetes.facts(rule, metric.name, labels, getattr(point, number))
                yield from ((fact, time) for fact in found)


def _of_remote_write(value: bytes, rule: LabelRule) -> Iterator[Timed]:
    request = read(value)
    symbols = list(request.symbols) if isinstance(request, Request) else None
    for series in request.timeseries:
        if symbols is None:
            if not any(map(_SERIES.search, series.labels)):
                continue
            pairs = [(label.name, label.value) for label in map(Label.FromString, series.labels)]
        else:
            refs = series.labels_refs
            pairs = [(symbols[name], symbols[text]) for name, text in zip(refs[::2], refs[1::2], strict=True)]
        labels = dict(pairs)
        name = labels.pop("__name__", "")
        if name in kubernetes.SERIES:
            for sample in series.samples:
                yield from ((fact, sample.timestamp) for fact in kubernetes.facts(rule, name, labels, sample.value))


def _of_text(value: bytes, arrived: int, rule: LabelRule) -> Iterator[Timed]:
    for line in _LINE.finditer(value):
        read_line = parsed(line[0][: line.start(1) - line.start()].decode().rstrip())
        if read_line is not None:
            name, labels = read_line
            time = int(line[2]) if line[2] else arrived
            yield from ((fact, time) for fact in kubernetes.facts(rule, name, dict(labels), float(line[1])))
    for line in _INFLUX.finditer(value):
        name, tags = influx_lines.head(line[1].decode()) or ("", ())
        found = resources.facts(rule, agents.of_measurement(name, dict(tags)))
        _, space, last = line[2].rstrip().rpartition(b" ")
        yield from ((fact, epoch_ms(int(last)) if space and last.isdigit() else arrived) for fact in found)

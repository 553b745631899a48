"""OTLP over HTTP: metrics and logs, in protobuf and in JSON; `pipelines.gateway.traces` has the traces.

Source: the OTLP specification, OTLP/HTTP: a request of which a part is refused is answered with 200 and
``partial_success``; one of which nothing can be used with 400 and a ``Status``; an empty one with 200.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from google.protobuf import json_format
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics

from engine.spec.decoder import Decoder, Messages
from engine.spec.record import Record
from pipelines.contracts import topics
from pipelines.contracts.records import Log, Telemetry
from pipelines.formats import otlp, parts
from pipelines.formats.catalogue import BY_NAME, guess
from pipelines.formats.otlp_json import NO_VALUE
from pipelines.formats.otlp_logs import OtlpLogsDecoder
from pipelines.formats.otlp_plain import PlainPoints
from pipelines.formats.refusals import FORMAT_UNKNOWN, MESSAGE_EMPTY, WITHOUT_LOSS, RefusedError
from pipelines.formats.rules import Rules
from pipelines.gateway.protocol import Body, MalformedError, NotTakenError, Protocol, Reply, Taken, wrong_type

_JSON, _PROTOBUF = "application/json", "application/x-protobuf"
_MOST_DIVIDED = 20_000
"""The most resources, and data points or log records, of a request that is divided if a part of it cannot be used."""
_CODES = {400: 3, 401: 16, 403: 7, 413: 3, 415: 3, 429: 14, 500: 13, 503: 14}
"""The code of gRPC for each status: invalid argument, unauthenticated, permission denied, unavailable, internal."""


@dataclass(frozen=True)
class Signal:
    """What distinguishes metrics and logs.

    Args:
        name: Its name, and the first part of the names of its formats.
        topic: The topic.
        record: The records.
        request: The type of requests.
        response: The type of answers.
        resources: The field of requests that holds the resources.
        rejected: The field of answers that counts what was refused.
        size: Counts the data points or log records of a resource.
        empty: Counts those among them that hold no value or no text, but should.
        items: The data points or log records, in words.
        content: What each must hold, in words.
    """

    name: str
    topic: str
    record: type[Record]
    request: type[Any]
    response: type[Any]
    resources: str
    rejected: str
    size: Callable[[Any], int]
    empty: Callable[[Any], int]
    items: str
    content: str


def _points(resource: Any) -> Iterator[tuple[str, Any]]:
    """Form and content of each data point, but for those that say themselves that there is no value."""
    for scope in resource.scope_metrics:
        for metric in scope.metrics:
            form = metric.WhichOneof("data")
            for point in getattr(metric, form).data_points if form else ():
                if not point.flags & NO_VALUE:
                    yield form, point


def _valueless(resource: Any) -> int:
    return sum(form in ("gauge", "sum") and point.WhichOneof("value") is None for form, point in _points(resource))


def _records(resource: Any) -> Iterator[Any]:
    return (record for scope in resource.scope_logs for record in scope.log_records)


def _textless(resource: Any) -> int:
    return sum(not otlp.text(record.body).strip() for record in _records(resource))


METRICS = Signal(
    "otlp", topics.RAW_AGENTS, Telemetry, metrics.ExportMetricsServiceRequest, metrics.ExportMetricsServiceResponse,
    "resource_metrics", "rejected_data_points",
    lambda resource: sum(1 for _ in _points(resource)), _valueless, "data points", "a value",
)  # fmt: skip
LOGS = Signal(
    "otlp-logs", topics.LOGS_AGENTS, Log, logs.ExportLogsServiceRequest, logs.ExportLogsServiceResponse,
    "resource_logs", "rejected_log_records",
    lambda resource: sum(1 for _ in _records(resource)), _textless, "log records", "text",
)  # fmt: skip


class Otlp(Protocol):
    """The protocol for one signal.

    Args:
        signal: Metrics or logs.
        rules: How labels are read.
    """

    def __init__(self, signal: Signal, rules: Rules) -> None:
        self.name = signal.name.replace("-", "_")
        self._signal = signal
        self._decoder: Decoder = BY_NAME[signal.name].build(rules)
        self._plain = PlainPoints(rules.labels) if signal is METRICS else None

    def parts(self, body: Body, most: int) -> int:
        if is_json_body(body):
            return parts.of_json(body.data, most)
        return parts.of_protobuf(body.data, self._signal.request.DESCRIPTOR, most) or 0

    def take(self, body: Body) -> Taken:
        as_json, signal = is_json_body(body), self._signal
        request, data = read_body(body, signal.request)
        counted = None if as_json else self._plainly(data)
        records, refused = (counted[0], None) if counted else self._decoded(data)
        if not refused or refused[0] == MESSAGE_EMPTY:
            empty = counted[1] if counted else self._empty(request)
            reply = self._success(as_json, empty, f"{MESSAGE_EMPTY}: {empty} {signal.items} without {signal.content}")
            if refused:
                return Taken(signal.topic, None, 0, reply)
            value = data if self._recognised(data) else self._anew(request)
            return Taken(signal.topic, value, records, reply)
        return self._divided(request, refused, as_json)

    def refusal(self, error: NotTakenError, content_type: str) -> Reply:
        return refusal_of(error, content_type)

    def _plainly(self, data: bytes) -> tuple[int, int] | None:
        """Number of records, and of data points without a value, of metrics that are all used; ``None``: not so easily.

        Args:
            data: A request in protobuf that is well-formed.
        """
        if self._plain is None:
            return None
        counted = self._plain.count(data)
        records, empty = counted.samples, counted.empty
        if counted.rest:
            more, refused = self._decoded(counted.rest)
            if refused and refused[0] != MESSAGE_EMPTY:
                return None
            records, empty = records + more, empty + self._empty(self._signal.request.FromString(counted.rest))
        return (records, empty) if records else None

    def _empty(self, request: Any) -> int:
        """How many data points or log records of a request hold nothing, but should."""
        return sum(map(self._signal.empty, getattr(request, self._signal.resources)))

    def _divided(self, request: Any, refused: tuple[str, str], as_json: bool) -> Taken:
        """What can be used, if anything can: the pipeline would refuse it with the rest.

        A request with very many is not divided, as each data point or log record is looked at alone.
        """
        signal = self._signal
        kept, lost = signal.request(), 0
        resources = getattr(request, signal.resources)
        if len(resources) > _MOST_DIVIDED or sum(map(signal.size, resources)) > _MOST_DIVIDED:
            raise MalformedError(*refused)
        for resource in resources:
            part, left_out = resource, 0
            count, wrong = self._decoded(self._alone(resource).SerializeToString())
            if wrong and wrong[0] != MESSAGE_EMPTY:
                part, left_out = self._without_wrong(resource)
                count, wrong = self._decoded(self._alone(part).SerializeToString())
            lost += left_out if isinstance(self._decoder, OtlpLogsDecoder) else left_out + signal.empty(part)
            if not wrong and count:
                getattr(kept, signal.resources).append(part)
        records = self._decoded(kept.SerializeToString())[0]  # resources may hold the same series
        if not records:
            raise MalformedError(*refused)
        code, why = refused
        reply = self._success(as_json, lost, f"{code}: {lost} {signal.items} are left out, the first: {why}")
        return Taken(signal.topic, self._anew(kept), records, reply)

    def _without_wrong(self, resource: Any) -> tuple[Any, int]:
        """A resource without the data points or log records that cannot be used, and the number of these."""
        if isinstance(self._decoder, OtlpLogsDecoder):
            part, left_out = self._decoder.without_wrong(resource)
            return part, len(left_out)
        part, lost = type(resource)(), 0
        part.CopyFrom(resource)
        one = type(resource)(resource=resource.resource)
        holder = one.scope_metrics.add().metrics.add()
        for metric in (metric for scope in part.scope_metrics for metric in scope.metrics):
            holder.CopyFrom(metric)
            form = metric.WhichOneof("data")
            if form is None or not self._is_wrong(one):
                continue
            points, held = getattr(metric, form).data_points, getattr(holder, form).data_points
            fine = []
            for point in points:
                del held[:]
                held.add().CopyFrom(point)
                if not self._is_wrong(one):
                    fine.append(point)
            lost += len(points) - len(fine)
            del held[:]
            held.extend(fine)
            metric.CopyFrom(holder)
        return part, lost

    def _is_wrong(self, resource: Any) -> bool:
        wrong = self._decoded(self._alone(resource).SerializeToString())[1]
        return wrong is not None and wrong[0] != MESSAGE_EMPTY

    def _alone(self, resource: Any) -> Any:
        return self._signal.request(**{self._signal.resources: [resource]})

    def _decoded(self, value: bytes) -> tuple[int, tuple[str, str] | None]:
        """Number of records; and code and reason if the message, or a part of it, is refused."""
        decoded = self._decoder.decode(Messages.of([value]))
        records = decoded.records.num_rows
        left_out = (each[1:] for each in decoded.refused if not records or each[1] not in WITHOUT_LOSS)
        return records, next(left_out, None)

    def _recognised(self, value: bytes) -> bool:
        form = guess(value, self._signal.record)
        return form is not None and form.name in (self._signal.name, f"{self._signal.name}-json")

    def _anew(self, request: Any) -> bytes:
        request.DiscardUnknownFields()
        value = bytes(request.SerializeToString())
        if not self._recognised(value):
            raise MalformedError(FORMAT_UNKNOWN, "the request is not recognised as one of OTLP")
        return value

    def _success(self, as_json: bool, lost: int = 0, why: str = "") -> Reply:
        response = self._signal.response()
        if lost:
            setattr(response.partial_success, self._signal.rejected, lost)
            response.partial_success.error_message = why
        return reply_of(HTTPStatus.OK, response, as_json)


def read_body(body: Body, request: type[Any]) -> tuple[Any, bytes]:
    """The request that a body holds, and its bytes, without blanks around JSON.

    Raises:
        MalformedError: If it holds none, or is not of the type that its header says.
    """
    as_json = is_json_body(body)
    data = body.data.strip() if as_json else body.data
    if data and as_json != otlp.is_json(data):
        raise MalformedError(FORMAT_UNKNOWN, "the body is not of the type that its header says")
    try:
        return otlp.read(data, request, as_json and bool(data)), data
    except RefusedError as error:
        raise MalformedError(error.code, str(error)) from None


def is_json_body(body: Body) -> bool:
    """Whether a body is JSON by its header, and not protobuf.

    Raises:
        NotTakenError: ``GATEWAY_TYPE`` if it is neither.
    """
    if body.media_type not in (_JSON, _PROTOBUF):
        raise wrong_type(body, f"{_PROTOBUF}, {_JSON}")
    return body.media_type == _JSON


def refusal_of(error: NotTakenError, content_type: str) -> Reply:
    """The answer to a request of which nothing was taken."""
    status = Status(code=_CODES.get(error.status, 2), message=error.text)
    return reply_of(error.status, status, content_type.startswith(_JSON))


def reply_of(status: int, message: Any, as_json: bool) -> Reply:
    """An answer that holds a message."""
    if as_json:
        return Reply(status, json_format.MessageToJson(message, indent=None).encode(), _JSON)
    return Reply(status, message.SerializeToString(), _PROTOBUF)

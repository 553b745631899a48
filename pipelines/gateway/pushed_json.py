"""JSON of the vendors' own intakes: Datadog, Splunk, CloudWatch by Data Firehose, GELF over HTTP, OpenTSDB.

Each body is made the JSON that the decoder of its format reads. What cannot be used is left out, if the rest can be,
and reported; nothing is written of a body of which nothing can be used.
"""

from __future__ import annotations

import base64
import json
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from itertools import count
from typing import Any

import orjson
from google.protobuf.message import DecodeError

from engine.spec.decoder import Decoder, Messages
from pipelines.contracts import topics
from pipelines.contracts.records import Log
from pipelines.formats import parts
from pipelines.formats.catalogue import BY_NAME, guess
from pipelines.formats.refusals import FORMAT_UNKNOWN, MESSAGE_EMPTY, WITHOUT_LOSS
from pipelines.formats.remote_write_protocol import message_classes
from pipelines.formats.rules import Rules
from pipelines.formats.splunk import is_metric
from pipelines.gateway.access import NO_TOKEN
from pipelines.gateway.protocol import Body, MalformedError, NotTakenError, Protocol, Reply, Taken

_MOST_DIVIDED = 20_000
"""The most objects of a body of which those that cannot be used are left out; each is looked at alone."""
_JSON = "application/json"
_CODES = {MESSAGE_EMPTY: 5}
"""Splunk's codes of reasons; that of others is 6, "invalid data format"."""
_OF_AN_EVENT = 8
"""At most so many parts has the JSON of an event that was sent raw."""
_ACKNOWLEDGED = count()
"""Numbers of requests to Splunk's collector that were written; a sender asks for those that it was given."""
_MESSAGES = {
    "Resource": "string type 1, string name 2",
    "Point": "double value 1, int64 timestamp 2",
    "Series": "Resource* resources 1, string metric 2, string* tags 3, Point* points 4, int32 type 5",
    "Payload": "Series* series 1",
}
_PAYLOAD = message_classes("newnormal.datadog", _MESSAGES)["Payload"]
_KIND = _PAYLOAD.DESCRIPTOR
"""The type of the message in which Datadog's agent sends series, with the fields that are used.

Source: ``agent_payload.proto`` of Datadog's agent-payload, message ``MetricPayload``.
"""


class JsonPush(Protocol):
    """A protocol whose bodies hold objects of JSON.

    Args:
        rules: How labels are read.
    """

    encodings: tuple[str, ...] = ("identity", "gzip", "deflate", "zstd")

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def parts(self, body: Body, most: int) -> int:
        return parts.of_json(body.data, most)

    def _written(
        self, name: str, objects: list[Any], reply: Callable[[str], Reply], wrap: Callable[[list[Any]], Any] = list
    ) -> Taken:
        """What is written of objects.

        Args:
            name: The format.
            objects: The objects.
            reply: The answer, given a word on what is left out, empty if nothing is.
            wrap: Makes the message of some of the objects; by default a list of them.
        """
        form = BY_NAME[name]
        decoder, topic = form.build(self._rules), topics.LOGS_AGENTS if form.record is Log else topics.RAW_AGENTS

        def read(some: list[Any]) -> tuple[bytes, int, tuple[str, str] | None]:
            try:
                value = orjson.dumps(wrap(some))
            except orjson.JSONEncodeError as error:  # what is read may be nested more deeply than what is written
                return b"", 0, ("JSON_MALFORMED", str(error))
            return value, *_decoded(decoder, value)

        value, records, refused = read(objects)
        reason = ""
        if refused and 1 < len(objects) <= _MOST_DIVIDED:
            good = [one for one in objects if read([one])[1]]
            if good:
                lost = len(objects) - len(good)
                reason = f"{refused[0]}: {lost} of {len(objects)} are left out, the first: {refused[1]}" if lost else ""
                value, records, refused = read(good)
        if refused and not records:
            raise MalformedError(*refused)
        reason = reason or (f"{refused[0]}: {refused[1]}" if refused else "")
        seen_as = guess(value, form.record, self._rules)
        if seen_as is None or seen_as.name != name:
            raise MalformedError(FORMAT_UNKNOWN, f"the body looks like {seen_as.name if seen_as else 'no format'}")
        return Taken(topic, value, records, reply(reason))

    @abstractmethod
    def take(self, body: Body) -> Taken:
        """See `Protocol`."""


class Datadog(JsonPush):
    """Series of versions 1 and 2, in JSON, and in protobuf as the agent sends them."""

    name = "datadog"

    def parts(self, body: Body, most: int) -> int:
        if _is_protobuf(body):
            return parts.of_protobuf(body.data, _KIND, most) or 0
        return super().parts(body, most)

    def take(self, body: Body) -> Taken:
        objects = _series_of(body.data) if _is_protobuf(body) else _json(body.data).get("series")
        if not isinstance(objects, list):
            raise MalformedError(FORMAT_UNKNOWN, "the body has no list of series")
        if not objects:
            return Taken(topics.RAW_AGENTS, None, 0, _of_datadog(HTTPStatus.ACCEPTED, ""))
        return self._written(
            "datadog", objects, lambda reason: _of_datadog(HTTPStatus.ACCEPTED, reason), lambda some: {"series": some}
        )

    def refusal(self, error: NotTakenError, content_type: str) -> Reply:
        unknown = error.status == HTTPStatus.UNAUTHORIZED
        return _of_datadog(HTTPStatus.FORBIDDEN if unknown else error.status, error.text)


class Sketches(Datadog):
    """Sketches of distributions, as the agent of Datadog sends them: none is taken, with a reason."""

    def parts(self, body: Body, most: int) -> int:
        return 0

    def take(self, body: Body) -> Taken:
        accepted = "series; send distributions to the gateway's port of StatsD, which computes their quantiles"
        raise MalformedError(FORMAT_UNKNOWN, "sketches of distributions are not taken", accepted)


class Gelf(JsonPush):
    """A message of GELF, as Graylog's input over HTTP takes it."""

    name = "gelf_http"

    def take(self, body: Body) -> Taken:
        objects = _objects(body.data)
        if len(objects) > 1:
            raise MalformedError(FORMAT_UNKNOWN, "the body holds several messages", "one message of GELF")
        return self._written("gelf", objects, lambda _: Reply(HTTPStatus.ACCEPTED), lambda some: some[0])

    def refusal(self, error: NotTakenError, content_type: str) -> Reply:
        return Reply(error.status, error.text.encode())


class OpenTsdb(JsonPush):
    """Data points of OpenTSDB in JSON, one or a list, as its `/api/put` takes and answers them."""

    name = "opentsdb"

    def take(self, body: Body) -> Taken:
        objects = _objects(body.data)
        if not all("metric" in one and "value" in one for one in objects):
            raise MalformedError(FORMAT_UNKNOWN, "a data point has no metric or no value", '{"metric":...,"value":...}')
        taken = self._written("flat-json", objects, lambda reason: Reply(HTTPStatus.OK, reason.encode()))
        reason = taken.reply.content.decode()
        failed = len(objects) - taken.records if reason else 0
        status = HTTPStatus.BAD_REQUEST if failed else HTTPStatus.OK
        counts = {"success": taken.records, "failed": failed}
        if "details" in body.parameters:
            return replace(taken, reply=_json_reply(status, counts | {"errors": [{"error": reason}] if reason else []}))
        if "summary" in body.parameters:
            return replace(taken, reply=_json_reply(status, counts))
        error = {"error": {"code": status, "message": reason}}
        return replace(taken, reply=_json_reply(status, error) if failed else Reply(HTTPStatus.NO_CONTENT))

    def refusal(self, error: NotTakenError, content_type: str) -> Reply:
        return _json_reply(error.status, {"error": {"code": error.status, "message": error.text}})


class Splunk(JsonPush):
    """The HTTP Event Collector: objects one after the other, events or metrics.

    A request that names a channel is answered with a number, which `SplunkAcknowledgements` knows.
    """

    name = "splunk"
    encodings = ("identity", "gzip")
    later = HTTPStatus.SERVICE_UNAVAILABLE

    def take(self, body: Body) -> Taken:
        objects = _objects(body.data)
        metrics = [is_metric(one) for one in objects]
        if any(metrics) and not all(metrics):
            raise MalformedError(FORMAT_UNKNOWN, "the body mixes events and metrics", "one of both in each request")
        name = "splunk-metrics" if any(metrics) else "splunk-events"
        # Splunk's index, where it names none, so that the JSON is known for that of the collector
        extra = {"event": "metric"} if any(metrics) else {"index": "main"}
        objects = [extra | one for one in objects]
        return self._answered(name, objects, body)

    def _answered(self, name: str, objects: list[Any], body: Body) -> Taken:
        number = next(_ACKNOWLEDGED) if _channel(body) else None
        return self._written(name, objects, lambda reason: _of_splunk(HTTPStatus.OK, reason, number))

    def refusal(self, error: NotTakenError, content_type: str) -> Reply:
        if error.status == HTTPStatus.UNAUTHORIZED:
            missing = error.error.what == NO_TOKEN
            return _of_splunk(error.status if missing else HTTPStatus.FORBIDDEN, error.text)
        return _of_splunk(error.status, error.text, code=_CODES.get(error.error.code))


class SplunkRaw(Splunk):
    """The collector's raw form: each line is an event; host, source and sourcetype are parameters of the address."""

    def parts(self, body: Body, most: int) -> int:
        return _OF_AN_EVENT * (body.data.count(b"\n") + 1)

    def take(self, body: Body) -> Taken:
        names = [name for name in ("host", "source", "sourcetype") if body.parameters.get(name)]
        metadata = {"sourcetype": "raw", **{name: body.parameters[name] for name in names}}
        lines = (line.strip() for line in body.data.decode(errors="replace").split("\n"))
        objects = [{"event": line, **metadata} for line in lines if line]
        if not objects:
            raise MalformedError(MESSAGE_EMPTY, "the body holds nothing")
        return self._answered("splunk-events", objects, body)


class SplunkAcknowledgements(Splunk):
    """Says which requests were written: all that were answered with a number, as only then they are answered."""

    def take(self, body: Body) -> Taken:
        if not _channel(body):
            accepted = "X-Splunk-Request-Channel or ?channel="
            raise MalformedError(FORMAT_UNKNOWN, "the request names no channel", accepted)
        numbers = _json(body.data).get("acks")
        if not isinstance(numbers, list) or not all(type(each) is int for each in numbers):
            raise MalformedError(FORMAT_UNKNOWN, "the body has no list of numbers", '{"acks":[0,1]}')
        reply = _json_reply(HTTPStatus.OK, {"acks": {str(each): True for each in numbers}})
        return Taken(topics.LOGS_AGENTS, None, 0, reply)


class Firehose(JsonPush):
    """Metric streams of CloudWatch in JSON, as Amazon Data Firehose delivers them to an endpoint of HTTP."""

    name = "firehose"
    encodings = ("identity", "gzip")
    later = HTTPStatus.SERVICE_UNAVAILABLE

    def parts(self, body: Body, most: int) -> int:
        outside = super().parts(body, most)
        return outside if outside > most else sum(parts.of_json(each, most) for each in _data(_json(body.data)))

    def take(self, body: Body) -> Taken:
        request = _json(body.data)
        objects = [each for line in _data(request) for each in _objects(line)]

        def reply(reason: str) -> Reply:
            return _of_firehose(HTTPStatus.OK, str(request.get("requestId", "")), request.get("timestamp"), reason)

        if not objects:
            return Taken(topics.RAW_AGENTS, None, 0, reply(""))
        return self._written("cloudwatch", objects, reply)

    def refusal(self, error: NotTakenError, content_type: str) -> Reply:
        return _of_firehose(error.status, error.request, None, error.text)


def _data(request: dict[str, Any]) -> list[bytes]:
    """The data of the records of a request of Data Firehose.

    Raises:
        MalformedError: If it is none.
    """
    try:
        return [base64.b64decode(each["data"], validate=True) for each in request["records"]]
    except (KeyError, TypeError, ValueError):
        raise MalformedError(FORMAT_UNKNOWN, "the body is no request of Amazon Data Firehose") from None


def _is_protobuf(body: Body) -> bool:
    return body.media_type == "application/x-protobuf"


def _json(data: bytes) -> dict[str, Any]:
    try:
        content = orjson.loads(data)
    except ValueError as error:
        raise MalformedError("JSON_MALFORMED", str(error)[:200]) from None
    if not isinstance(content, dict):
        raise MalformedError(FORMAT_UNKNOWN, "the body is no object of JSON")
    return content


def _objects(data: bytes) -> list[dict[str, Any]]:
    r"""The objects of JSON that stand one after the other.

    >>> _objects(b'{"a":1}{"a":2}\n{"a":3}')
    [{'a': 1}, {'a': 2}, {'a': 3}]
    """
    objects: list[Any] = []
    try:
        text, at = data.decode().strip(), 0
        decoder = json.JSONDecoder()
        while at < len(text):
            one, at = decoder.raw_decode(text, at)
            objects += one if isinstance(one, list) else [one]
            at += len(text[at : at + 64]) - len(text[at : at + 64].lstrip())
    except (ValueError, RecursionError) as error:
        raise MalformedError("JSON_MALFORMED", f"{type(error).__name__}: {str(error)[:200]}") from None
    if not objects:
        raise MalformedError(MESSAGE_EMPTY, "the body holds nothing")
    if not all(isinstance(one, dict) for one in objects):
        raise MalformedError(FORMAT_UNKNOWN, "the body holds something else than objects of JSON")
    return objects


def _decoded(decoder: Decoder, value: bytes) -> tuple[int, tuple[str, str] | None]:
    """The number of records; and code and reason if the message, or a part of it, is refused."""
    decoded = decoder.decode(Messages.of([value]))
    records = decoded.records.num_rows
    return records, next((each[1:] for each in decoded.refused if not records or each[1] not in WITHOUT_LOSS), None)


def _json_reply(status: int, content: Any) -> Reply:
    return Reply(status, orjson.dumps(content), _JSON)


def _of_datadog(status: int, why: str) -> Reply:
    return _json_reply(
        status, {"status": "ok" if status < HTTPStatus.BAD_REQUEST else "error", "errors": [why] if why else []}
    )


def _channel(body: Body) -> str:
    return body.channel or body.parameters.get("channel", "")


def _of_splunk(status: int, why: str, number: int | None = None, code: int | None = None) -> Reply:
    usual = {HTTPStatus.OK: 0, HTTPStatus.UNAUTHORIZED: 2, HTTPStatus.FORBIDDEN: 4, HTTPStatus.SERVICE_UNAVAILABLE: 9}
    answer = {"text": why or "Success", "code": code or usual.get(HTTPStatus(status), 6)}
    return _json_reply(status, answer if number is None else {**answer, "ackId": number})


def _of_firehose(status: int, request: str, time: Any, why: str) -> Reply:
    answer = {"requestId": request, "timestamp": time if isinstance(time, int) else 0}
    return _json_reply(status, answer | ({"errorMessage": why} if why else {}))


def _series_of(data: bytes) -> list[dict[str, Any]]:
    """The series of a request in protobuf, as the JSON of ``/api/v2/series``.

    Raises:
        MalformedError: If it is none.
    """
    try:
        payload = _PAYLOAD.FromString(data)
    except DecodeError as error:
        raise MalformedError(FORMAT_UNKNOWN, f"no series of Datadog in protobuf: {str(error)[:200]}") from None
    return [
        {
            "metric": series.metric,
            "type": series.type,
            "points": [{"timestamp": point.timestamp, "value": point.value} for point in series.points],
            "resources": [{"type": resource.type, "name": resource.name} for resource in series.resources],
            "tags": list(series.tags),
        }
        for series in payload.series
    ]

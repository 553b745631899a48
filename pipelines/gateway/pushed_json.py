"""JSON of the vendors' own intakes: Datadog's series, Splunk's HTTP Event Collector, CloudWatch by Data Firehose.

Each body is made the JSON that the decoder of its format reads. What cannot be used is left out, if the rest can be,
and told; nothing is written of a body of which nothing can be used.
"""

from __future__ import annotations

import base64
import json
from abc import abstractmethod
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import orjson

from engine.spec.decoder import Decoder
from pipelines.contracts import topics
from pipelines.contracts.records import Log
from pipelines.gateway.datadog_payload import KIND, series_of
from pipelines.gateway.protocol import Body, MalformedError, NotTakenError, Protocol, Reply, Taken, as_message
from pipelines.jobs.normalize import parts
from pipelines.jobs.normalize.formats import BY_NAME, Rules, guess
from pipelines.jobs.normalize.refusals import FORMAT_UNKNOWN, MESSAGE_EMPTY
from pipelines.jobs.normalize.splunk import is_metric

_MOST_DIVIDED = 20_000
"""The most objects of a body of which those that cannot be used are left out; each is looked at alone."""
_JSON = "application/json"


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
        self, name: str, objects: list[Any], reply: Callable[[str], Reply], wrap: Callable[[list[Any]], Any]
    ) -> Taken:
        """What is written of objects.

        Args:
            name: The format.
            objects: The objects.
            reply: The answer, given a word on what is left out, empty if nothing is.
            wrap: Makes the message of some of the objects.
        """
        form = BY_NAME[name]
        decoder, topic = form.build(self._rules), topics.LOGS_AGENTS if form.record is Log else topics.RAW_AGENTS
        value = orjson.dumps(wrap(objects))
        count, refused = _decoded(decoder, value)
        told = ""
        if refused and len(objects) > 1 and len(objects) <= _MOST_DIVIDED:
            good = [one for one in objects if not _decoded(decoder, orjson.dumps(wrap([one])))[1]]
            if good:
                lost = len(objects) - len(good)
                told = f"{refused[0]}: {lost} of {len(objects)} are left out, the first: {refused[1]}"
                value = orjson.dumps(wrap(good))
                count, refused = _decoded(decoder, value)
        if refused:
            raise MalformedError(*refused)
        found = guess(value, form.record, self._rules)
        if found is None or found.name != name:
            raise MalformedError(FORMAT_UNKNOWN, f"the body looks like {found.name if found else 'no format'}")
        return Taken(topic, value, count, reply(told))

    @abstractmethod
    def take(self, body: Body) -> Taken:
        """See `Protocol`."""


class Datadog(JsonPush):
    """Series of versions 1 and 2, in JSON, and in protobuf as the agent sends them."""

    name = "datadog"

    def parts(self, body: Body, most: int) -> int:
        if _is_protobuf(body):
            return parts.of_protobuf(body.data, KIND, most) or 0
        return super().parts(body, most)

    def take(self, body: Body) -> Taken:
        objects = series_of(body.data) if _is_protobuf(body) else _json(body.data).get("series")
        if not isinstance(objects, list):
            raise MalformedError(FORMAT_UNKNOWN, "the body has no list of series")
        if not objects:
            return Taken(topics.RAW_AGENTS, None, 0, _of_datadog(HTTPStatus.ACCEPTED, ""))
        return self._written(
            "datadog", objects, lambda told: _of_datadog(HTTPStatus.ACCEPTED, told), lambda some: {"series": some}
        )

    def refusal(self, error: NotTakenError, content_type: str) -> Reply:
        return _of_datadog(error.status, error.text)


class Splunk(JsonPush):
    """The HTTP Event Collector: objects one after the other, events or metrics."""

    name = "splunk"
    encodings = ("identity", "gzip")
    later = HTTPStatus.SERVICE_UNAVAILABLE

    def take(self, body: Body) -> Taken:
        objects = _objects(body.data)
        metrics = [is_metric(each) for each in objects]
        if any(metrics) and not all(metrics):
            raise MalformedError(FORMAT_UNKNOWN, "the body mixes events and metrics", "one of both in each request")
        name = "splunk-metrics" if any(metrics) else "splunk-events"
        objects = [each | {"event": each.get("event", "metric")} if any(metrics) else each for each in objects]
        return self._written(name, objects, lambda told: _of_splunk(HTTPStatus.OK, told), lambda some: some)

    def refusal(self, error: NotTakenError, content_type: str) -> Reply:
        return _of_splunk(error.status, error.text)


class Firehose(JsonPush):
    """Metric streams of CloudWatch in JSON, as Amazon Data Firehose delivers them to an endpoint of HTTP."""

    name = "firehose"
    encodings = ("identity", "gzip")
    later = HTTPStatus.SERVICE_UNAVAILABLE

    def parts(self, body: Body, most: int) -> int:
        outside = super().parts(body, most)
        return outside if outside > most else sum(parts.of_json(each, most) for each in _data(_json(body.data)))

    def take(self, body: Body) -> Taken:
        given = _json(body.data)
        lines, request = _data(given), str(given.get("requestId", ""))
        objects = [each for line in lines for each in _objects(line)]

        def reply(told: str) -> Reply:
            return _of_firehose(HTTPStatus.OK, request, given.get("timestamp"), told)

        return self._written("cloudwatch", objects, reply, lambda some: some)

    def refusal(self, error: NotTakenError, content_type: str) -> Reply:
        return _of_firehose(error.status, "", None, error.text)


def _data(given: dict[str, Any]) -> list[bytes]:
    """The data of the records of a request of Data Firehose.

    Raises:
        MalformedError: If it is none.
    """
    try:
        return [base64.b64decode(each["data"], validate=True) for each in given["records"]]
    except (KeyError, TypeError, ValueError):
        raise MalformedError(FORMAT_UNKNOWN, "the body is no request of Amazon Data Firehose") from None


def _is_protobuf(body: Body) -> bool:
    return body.media_type == "application/x-protobuf"


def _json(data: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(data)
    except ValueError as error:
        raise MalformedError("JSON_MALFORMED", str(error)[:200]) from None
    if not isinstance(found, dict):
        raise MalformedError(FORMAT_UNKNOWN, "the body is no object of JSON")
    return found


def _objects(data: bytes) -> list[dict[str, Any]]:
    r"""The objects of JSON that stand one after the other.

    >>> _objects(b'{"a":1}{"a":2}\n{"a":3}')
    [{'a': 1}, {'a': 2}, {'a': 3}]
    """
    found: list[Any] = []
    try:
        text, at = data.decode().strip(), 0
        decoder = json.JSONDecoder()
        while at < len(text):
            one, at = decoder.raw_decode(text, at)
            found += one if isinstance(one, list) else [one]
            at += len(text[at : at + 64]) - len(text[at : at + 64].lstrip())
    except (ValueError, RecursionError) as error:
        raise MalformedError("JSON_MALFORMED", f"{type(error).__name__}: {str(error)[:200]}") from None
    if not found:
        raise MalformedError(MESSAGE_EMPTY, "the body holds nothing")
    if not all(isinstance(one, dict) for one in found):
        raise MalformedError(FORMAT_UNKNOWN, "the body holds something else than objects of JSON")
    return found


def _decoded(decoder: Decoder, value: bytes) -> tuple[int, tuple[str, str] | None]:
    """The number of records; and code and reason if the message is refused."""
    decoded = decoder.decode(as_message(value))
    found = decoded.records.num_rows
    return found, None if found or not decoded.refused else decoded.refused[0][1:]


def _told(status: int, content: Any) -> Reply:
    return Reply(status, orjson.dumps(content), _JSON)


def _of_datadog(status: int, why: str) -> Reply:
    return _told(
        status, {"status": "ok" if status < HTTPStatus.BAD_REQUEST else "error", "errors": [why] if why else []}
    )


def _of_splunk(status: int, why: str) -> Reply:
    code = {HTTPStatus.OK: 0, HTTPStatus.UNAUTHORIZED: 4, HTTPStatus.FORBIDDEN: 4, HTTPStatus.SERVICE_UNAVAILABLE: 9}
    return _told(status, {"text": why or "Success", "code": code.get(HTTPStatus(status), 6)})


def _of_firehose(status: int, request: str, time: Any, why: str) -> Reply:
    told = {"requestId": request, "timestamp": time if isinstance(time, int) else 0}
    return _told(status, told | ({"errorMessage": why} if why else {}))

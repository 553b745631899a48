"""Series of Datadog in protobuf, which its agent sends, as the JSON of ``/api/v2/series``.

Source: ``agent_payload.proto`` of Datadog's agent-payload, message ``MetricPayload``; fields that are not used are left
out.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from pipelines.formats.refusals import FORMAT_UNKNOWN
from pipelines.formats.remote_write_protocol import message_classes
from pipelines.gateway.protocol import MalformedError

_MESSAGES = {
    "Resource": "string type 1, string name 2",
    "Point": "double value 1, int64 timestamp 2",
    "Series": "Resource* resources 1, string metric 2, string* tags 3, Point* points 4, int32 type 5",
    "Payload": "Series* series 1",
}
_PAYLOAD = message_classes("newnormal.datadog", _MESSAGES)["Payload"]
KIND = _PAYLOAD.DESCRIPTOR
"""The type of the message."""


def series_of(data: bytes) -> list[dict[str, Any]]:
    """The series of a request.

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

"""Prometheus remote write 1.0 and 2.0.

Source: the specifications of Remote-Write 1.0 and 2.0: a request of which a part cannot be written is answered with 400
when the rest is written, and not sent again; headers say how much was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from pipelines.contracts import topics
from pipelines.formats import parts
from pipelines.formats.labels import LabelRule
from pipelines.formats.refusals import FORMAT_UNKNOWN, RefusedError
from pipelines.formats.remote_write import Wrong, histograms, named
from pipelines.formats.remote_write_protocol import Request, WriteRequest, is_remote_write, read
from pipelines.gateway.protocol import Body, MalformedError, NotTakenError, Protocol, Reply, Taken, wrong_type

_SECOND = {"": False, "prometheus.writerequest": False, "io.prometheus.write.v2.request": True}
_TYPES = "application/x-protobuf, with proto=prometheus.WriteRequest or proto=io.prometheus.write.v2.Request"
_WRITTEN = "X-Prometheus-Remote-Write-{}-Written"


class RemoteWrite(Protocol):
    """The protocol. Prometheus drops what is answered with 429 unless it is configured otherwise, hence 503.

    Args:
        rule: Which labels name the machine and the series.
    """

    name = "remote_write"
    encodings = ("snappy",)
    later = HTTPStatus.SERVICE_UNAVAILABLE

    def __init__(self, rule: LabelRule) -> None:
        self._rule = rule

    def parts(self, body: Body, most: int) -> int:
        kind = (Request if _is_second(body) else WriteRequest).DESCRIPTOR
        return parts.of_protobuf(body.data, kind, most) or 0

    def take(self, body: Body) -> Taken:
        second = _is_second(body)
        wrong, kept, samples, native, real = Wrong(), [], 0, 0, False
        try:
            request = read(body.data, second)
            for series, timeseries in named(request, self._rule):
                if series.wrong:
                    wrong.add(series.wrong, timeseries)
                    continue
                kept.append(timeseries)
                samples += len(timeseries.samples)
                native += len(timeseries.histograms)
                real = real or bool(histograms(timeseries)) or any(s.value == s.value for s in timeseries.samples)
        except RefusedError as error:
            raise MalformedError(error.code, str(error), "a request of remote write, see docs/gateway.md") from None
        counted = {"Samples": samples, "Histograms": native, "Exemplars": 0}
        headers = {_WRITTEN.format(name): str(count) for name, count in counted.items()}
        value = _message(body.data, request, kept) if real else None
        return Taken(topics.RAW_AGENTS, value, samples + native, _reply(wrong, headers))

    def refusal(self, error: NotTakenError, content_type: str) -> Reply:
        headers = {_WRITTEN.format(name): "0" for name in ("Samples", "Histograms", "Exemplars")}
        return Reply(error.status, error.text.encode(), headers=headers)


def _is_second(body: Body) -> bool:
    """Whether the header says version 2.0.

    Raises:
        NotTakenError: ``GATEWAY_TYPE``.
    """
    parameters: Mapping[str, str] = {
        name.strip(): value.strip().strip('"')
        for name, _, value in (part.partition("=") for part in body.content_type.split(";")[1:])
    }
    second = _SECOND.get(parameters.get("proto", ""))
    if body.media_type != "application/x-protobuf" or second is None:
        raise wrong_type(body, _TYPES)
    return second


def _message(data: bytes, request: Any, kept: Sequence[Any]) -> bytes:
    """The message for Kafka: the body, if all of it is used and the pipeline recognises it; else the same anew.

    Args:
        data: The body.
        request: The same, parsed.
        kept: The series that are used.
    """
    if len(kept) == len(request.timeseries) and is_remote_write(data):
        return data
    made = type(request)(timeseries=kept)
    if isinstance(request, Request):
        made.symbols.extend(request.symbols)
    made.DiscardUnknownFields()
    again = bytes(made.SerializeToString())
    if not is_remote_write(again):
        raise MalformedError(FORMAT_UNKNOWN, "the first label has no name, or the first symbol is not empty")
    return again


def _reply(wrong: Wrong, headers: Mapping[str, str]) -> Reply:
    reasons = [f"{code}: {why}" for code, why in wrong.reasons()]
    if not reasons:
        return Reply(HTTPStatus.NO_CONTENT, headers=headers)
    return Reply(HTTPStatus.BAD_REQUEST, "\n".join([*reasons, "the others were written"]).encode(), headers=headers)

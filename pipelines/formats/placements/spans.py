"""The decoder of OTLP traces: of each span its service, and the span that it came from.

Source: OTLP's ``trace.proto``, and OpenTelemetry's semantic conventions for spans of clients (``peer.service``,
``server.address``, formerly ``net.peer.name``).
"""

from __future__ import annotations

import base64
import ipaddress
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan

from engine.spec.decoder import Decoded, Decoder, Messages
from engine.spec.record import Instant, Keyword, Record
from pipelines.formats import otlp
from pipelines.formats.by_message import table
from pipelines.formats.labels import LABELS, LabelRule, machine_and_port
from pipelines.formats.placements.facts import LONGEST
from pipelines.formats.placements.resources import machine_of, workload_of
from pipelines.formats.pods import within
from pipelines.formats.refusals import RefusedError

FEW = 128
"""A message with more spans says enough with a part of them: those of every second, fourth, ... trace."""
MOST_SPANS = 500
"""The most spans of a trace that count; others are left out, in a message and in all of them together."""
_CLIENTS = (OtlpSpan.SPAN_KIND_CLIENT, OtlpSpan.SPAN_KIND_PRODUCER)
_PEERS = ("peer.service", "server.address", "net.peer.name")
_HERE = ("localhost", "localhost.localdomain")
_SERVICE = ".svc"
_HEX = re.compile("[0-9a-f]+")


class Span(Record):
    """A span as the job `calls` joins it with others of its trace."""

    identity: ClassVar[tuple[str, ...]] = ("trace",)

    trace: str
    span: str
    parent: str
    service: Keyword
    """The workload, or the machine, to which the span belongs."""
    peer: Keyword | None = None
    """What a span of a client calls, as its attributes name it."""
    time: Instant


@dataclass(frozen=True)
class SpansDecoder(Decoder):
    """Decodes export requests with traces, in protobuf and JSON.

    Args:
        labels: Which attributes name the machine.
    """

    labels: LabelRule = LABELS

    def decode(self, messages: Messages) -> Decoded:
        spans: list[tuple[Any, ...]] = []
        index: list[int] = []
        refused = []
        for row, value in enumerate(messages.values.to_pylist()):
            try:
                found = list(_spans(otlp.read(value or b"", ExportTraceServiceRequest), self.labels))
            except RefusedError as error:
                refused.append((row, error.code, str(error)))
                continue
            spans += found
            index += [row] * len(found)
        return Decoded(table(Span, spans, np.array(index, np.int32)), refused)


def _spans(request: Any, rule: LabelRule) -> Iterator[tuple[Any, ...]]:
    count = sum(len(scope.spans) for resource in request.resource_spans for scope in resource.scope_spans)
    mask = (1 << max(0, (count - 1) // FEW).bit_length()) - 1
    of_trace = Counter[str]()
    for resource in request.resource_spans:
        pairs = otlp.labels(resource.resource.attributes)
        attributes = dict(pairs)
        service = workload_of(attributes) or machine_of(rule, pairs)
        if not 0 < len(service) <= LONGEST:
            continue
        namespace = attributes.get("k8s.namespace.name", "")
        for span in (span for scope in resource.scope_spans for span in scope.spans):
            trace, end = _id(span.trace_id, 16), span.end_time_unix_nano or span.start_time_unix_nano
            if not trace or not end or int(trace[-8:], 16) & mask or of_trace[trace] == MOST_SPANS:
                continue
            if own := _id(span.span_id, 8):
                of_trace[trace] += 1
                peer = _peer(dict(otlp.labels(span.attributes)), namespace) if span.kind in _CLIENTS else None
                yield trace, own, _id(span.parent_span_id, 8), service, peer, end // 1_000_000


def _id(raw: bytes, size: int) -> str:
    r"""An id in hexadecimal; empty if it is none, as one of zeros is by OTLP.

    OTLP's JSON has ids in hexadecimal, which protobuf's reader of JSON takes for base64: it is made what it was.

    >>> _id(b"\x01\x02", 2), _id(base64.b64decode("0a0b"), 2), _id(b"\x01", 2)
    ('0102', '0a0b', '')
    """
    found = base64.b64encode(raw).decode().lower() if 2 * len(raw) == 3 * size else raw.hex()
    return found if _HEX.fullmatch(found) and len(found) == 2 * size and found.strip("0") else ""


def _peer(attributes: dict[str, str], namespace: str) -> str | None:
    name = next((attributes[each] for each in _PEERS if attributes.get(each)), "")
    found = peer_named(name, namespace)
    return found if 0 < len(found) <= LONGEST else None


def peer_named(name: str, namespace: str) -> str:
    """The machine or workload that a client names; empty for itself.

    A service of Kubernetes is taken for the workload of its name, as it mostly is.

    Args:
        name: A name or an address, with a port or without.
        namespace: The namespace of the client; empty: it is in none.

    >>> peer_named("cart", "shop"), peer_named("cart.pay.svc.cluster.local:8080", "shop"), peer_named("cart", "")
    ('shop/cart', 'pay/cart', 'cart')
    >>> peer_named("db-1.example.com:5432", "shop"), peer_named("10.0.0.7", "shop"), peer_named("127.0.0.1:80", "")
    ('db-1.example.com', '10.0.0.7', '')
    """
    host = machine_and_port(name)[0].rstrip(".")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        return "" if address.is_loopback or address.is_unspecified else host
    if host.lower() in _HERE:
        return ""
    if _SERVICE in host:
        service, _, rest = host.partition(".")
        return within(rest.partition(".")[0], service)
    return within(namespace, host) if "." not in host and "/" not in host else host

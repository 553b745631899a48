"""The decoders of what is sent to Splunk's HTTP Event Collector: metrics and events.

Source: the Splunk documentation, "Format events for HTTP Event Collector" and "Get metrics in from other sources".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import orjson

from pipelines.formats.instants import moment
from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.line_decoder import NO_PROGRAM, Line, LineDecoder
from pipelines.formats.message_decoder import MessageDecoder, Sample
from pipelines.formats.refusals import MACHINE_UNKNOWN, MESSAGE_EMPTY, RefusedError, no_machine
from pipelines.formats.samples import short
from pipelines.formats.severities import with_level

_METRIC = "metric_name:"
_IS_METRICS = re.compile(rb'"metric_name(?::|"\s*:)')
_IS_EVENT = re.compile(rb'"event"\s*:\s*(?:"|\{)')
_IS_SPLUNK = re.compile(rb'"(?:sourcetype|index|fields)"\s*:\s*["{]|"event"\s*:\s*\{"line"\s*:')
_IS_TEXT = re.compile(rb'"event"\s*:\s*"')
_OF_LOGGERS = re.compile(rb'"(?:level|timestamp|@timestamp|message)"\s*:')
"""Beside a text ``event`` the collector has no such field, but structlog has."""
_TEXTS = ("message", "msg", "log", "MESSAGE", "line")
_LEVELS = ("severity", "level", "log_level")


def looks_like_metrics(value: bytes) -> bool:
    """Whether a message is JSON of metrics for the collector."""
    return value[:1] in (b"{", b"[") and b'"fields"' in value and _IS_METRICS.search(value) is not None


def looks_like_events(value: bytes) -> bool:
    """Whether a message is JSON of events for the collector.

    >>> looks_like_events(b'{"event":"x","host":"a"}'), looks_like_events(b'{"event":{"dataset":"x"},"message":"y"}')
    (True, False)
    >>> looks_like_events(b'{"event":"x","level":"info","host":"a"}')
    False
    """
    if not (value[:1] in (b"{", b"[") and _IS_EVENT.search(value)) or looks_like_metrics(value):
        return False
    text = _IS_TEXT.search(value) is not None and _OF_LOGGERS.search(value) is None
    return text or _IS_SPLUNK.search(value) is not None


def is_metric(event: Mapping[str, Any]) -> bool:
    """Whether an object for the collector is one of metrics."""
    fields = event.get("fields")
    return type(fields) is dict and any(name.startswith("metric_name") for name in fields)


def _of(message: Any) -> list[Any]:
    return message if type(message) is list else [message]


@dataclass(frozen=True)
class SplunkMetricsDecoder(MessageDecoder):
    """Decodes ``{"time": …, "host": …, "fields": {"metric_name:cpu.usr": 11.1, "region": "x"}}``, and lists of such.

    The older form is read too: ``"fields": {"metric_name": "cpu.usr", "_value": 11.1}``. All are gauges. Without a time
    it is that of the message's arrival.

    Args:
        labels: Which dimensions name the machine, where ``host`` does not, and the series.
    """

    labels: LabelRule = LABELS

    def samples(self, message: Any) -> Iterator[Sample]:
        for event in _of(message):
            time = moment(_time(event["time"])) if event.get("time") is not None else None
            fields = event["fields"]
            values = {name[len(_METRIC) :]: value for name, value in fields.items() if name.startswith(_METRIC)}
            if "metric_name" in fields:
                values[fields["metric_name"]] = fields["_value"]
            if not values:
                raise RefusedError(MESSAGE_EMPTY, "no field metric_name:NAME holds a number")
            rest = {
                name: str(value)
                for name, value in fields.items()
                if not name.startswith("metric_name") and name != "_value" and type(value) in (str, int, float)
            }
            if event.get("host"):
                rest["host"] = str(event["host"])
            machine, instance = self.labels.apply(rest.items())
            if not machine:
                raise RefusedError(MACHINE_UNKNOWN, no_machine(rest))
            for name, value in values.items():
                yield time, machine, short(f"{name}{instance}"), float(value), "gauge"


@dataclass(frozen=True)
class SplunkEventsDecoder(LineDecoder):
    """Decodes ``{"time": …, "host": …, "source": …, "sourcetype": …, "event": …, "fields": {…}}``, and lists of such.

    The event is the text; of an object its ``message``, else all of it as JSON. The program is the sourcetype, else the
    name of the source's file.

    Args:
        labels: Which fields name the machine, where ``host`` does not.
    """

    labels: LabelRule = LABELS

    def lines(self, message: Any, arrived: int) -> Iterator[Line]:
        for entry in _of(message):
            event, fields = entry["event"], entry.get("fields") or {}
            inside = event if type(event) is dict else {}
            text = next((inside[field] for field in _TEXTS if type(inside.get(field)) is str), None)
            if text is None:
                text = event if isinstance(event, str) else orjson.dumps(event).decode()
            machine = self.labels.pod_of(fields) or entry.get("host") or self.labels.machine_of({**inside, **fields})
            if not machine:
                raise RefusedError(MACHINE_UNKNOWN, no_machine((*inside, *fields)))
            if not text.strip():
                raise RefusedError(MESSAGE_EMPTY, "an event is empty")
            name = next((field for field in _LEVELS if field in fields or field in inside), "")
            severity, text = with_level(fields.get(name, inside.get(name)), text, name)
            program = entry.get("sourcetype") or PurePosixPath(str(entry.get("source") or "")).name
            program = program or str(inside.get("tag") or NO_PROGRAM)
            time = moment(_time(entry["time"])) if entry.get("time") is not None else arrived
            yield time, machine, program, severity, text


def _time(seconds: Any) -> Any:
    """The time as a number; the collector takes text such as ``"1433188255.500"`` too."""
    return float(seconds) if isinstance(seconds, str) and seconds.count(".") == 1 else seconds

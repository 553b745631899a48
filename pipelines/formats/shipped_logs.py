"""The decoders of log lines as shippers write them in JSON: Filebeat and Elastic Agent (ECS), Fluent Bit, Vector.

Parsing only the wanted fields (msgspec) would save 0.25 to 1.7 µs of a line of some 5, but it takes infinite numbers
and broken UTF-8 in what it skips, which are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from engine.formats.json_decoder import FIELD_INVALID
from pipelines.formats.instants import moment
from pipelines.formats.labels import LABELS, LabelRule, machine_and_port
from pipelines.formats.line_decoder import Line, LineDecoder
from pipelines.formats.nested_fields import Alternatives, FieldNames, first, flat, nested
from pipelines.formats.pods import FIELDS, SHIPPED, pod_name
from pipelines.formats.refusals import MACHINE_UNKNOWN, RefusedError, no_machine
from pipelines.formats.severities import with_level
from pipelines.formats.syslog_times import UTC, Zones

_TIMES = (
    *("@timestamp", "timestamp", "date", "time", "ts"),
    *("_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP"),  # of journald
    *("timereported", "timegenerated", "ISODATE"),  # of rsyslog's jsonmesg, of syslog-ng
    *("EventTime", "EventReceivedTime"),  # of NXLog
    *("DATE", "datetime", "asctime", "Timestamp", "@t"),  # of syslog-ng, Monolog, Python, Serilog
    *("timeMillis", "instant.epochSecond"),  # of Log4j
)
_TEXTS = (
    *("message", "log", "msg", "MESSAGE", "event.original", "event", "Message", "@m", "@mt", "RenderedMessage"),
    *("textPayload", "jsonPayload.message", "fields.message"),  # of Google Cloud, Rust's tracing
)
_LEVELS = (
    *("log.syslog.severity.code", "log.syslog.severity.name", "log.level", "severity", "levelname", "level_name"),
    *("level", "PRIORITY", "syslog.severity.code", "syslogseverity", "syslogseverity-text", "log_level", "loglevel"),
    *("lvl", "LEVEL", "@level", "@l", "severity_text", "severityText", "levelno", "Severity"),
    *("Level", "error_severity"),  # of Serilog, PostgreSQL
)
_PROGRAMS = (
    *["process.name", "log.syslog.appname", "appname", "ident", "SYSLOG_IDENTIFIER", "_COMM", "program"],
    *("programname", "app-name", "PROGRAM", "service.name", "service", "container.name", "kubernetes.container_name"),
    *("container_name", "kubernetes.container.name", "resource.labels.container_name", "app", "application"),
    *("processName", "log.file.path", "file", "tag", "source_type", "name", "SourceName", "winlog.provider_name"),
    *("logName",),
)
_NODES = ("kubernetes.host", "kubernetes.node.name", "kubernetes.pod_node_name")
"""Shippers name the node of a container here; an application's own ``host`` beside it is something else."""
_MACHINES = (
    *("host.hostname", "_HOSTNAME", "HOST", "Hostname", "HOSTNAME", "hostName", "sysloghost", "extra.hostname"),
    *("MachineName", "Properties.MachineName", "machinename"),  # of Serilog, NLog
    *("labels.compute.googleapis.com/resource_name", "resource.labels.instance_id"),  # of Google Cloud
)
_SCALES = {name: nested([name]) for name in ("severity", "levelno", "Level")}
"""Fields whose numbers mean something else than those of most loggers."""


@dataclass(frozen=True)
class ShippedLogsDecoder(LineDecoder):
    """Decodes objects with a time, a text, and a machine; fields may be nested or have dots in their names.

    Args:
        labels: Which fields name the machine; besides them Kubernetes' node does.
        zones: The zones of times that name none.

    >>> message = {"@timestamp": "2026-11-21T00:27:00.013Z", "host": {"name": "a"}, "log": {"level": "error"},
    ...     "process": {"name": "sshd"}, "message": "no"}
    >>> list(ShippedLogsDecoder().lines(message, 0))
    [(1795220820013, 'a', 'sshd', 3, 'no')]
    """

    labels: LabelRule = LABELS
    zones: Zones = UTC

    @cached_property
    def _field_names(self) -> FieldNames:
        """The fields that may hold text, time, program, level and machine."""
        return FieldNames.of(
            (*_TEXTS, *_TIMES, *_PROGRAMS, *_LEVELS, *self.labels.machine, *_NODES, *_MACHINES, *FIELDS)
        )

    @cached_property
    def _nested(self) -> _Places:
        return _Places.of(nested, self.labels)

    @cached_property
    def _flat(self) -> _Places:
        return _Places.of(flat, self.labels)

    @staticmethod
    def _place(name: str) -> Alternatives:
        return (*nested([name]), *flat([name]))

    def lines(self, message: Any, arrived: int) -> Iterator[Line | None]:
        for line in message if isinstance(message, list) else [message]:
            if not isinstance(line, dict):
                raise TypeError("an object, or a list of objects, is accepted")
            if self._field_names.each_part_is_an_object(line):
                fields, places = line, self._nested
            else:
                fields, places = self._field_names.flat(line), self._flat
            text = first(fields, places.texts)
            if type(text) is list:
                text = _of_bytes(text)
            if not (isinstance(text, str) and (text := text.strip())):
                yield None
                continue
            machine = (self.labels.pods and places.pod(fields)) or first(fields, places.nodes, text=True)
            if not machine:
                machine, _ = machine_and_port(first(fields, places.labels, text=True) or "")
                machine = machine or self.labels.default
                if not machine:
                    raise RefusedError(MACHINE_UNKNOWN, no_machine(name.partition(".")[0] for name in line))
            stamp = first(fields, places.times)
            time = arrived if stamp is None else self._time(fields, stamp, machine, arrived)
            program, level = first(fields, places.programs) or "", first(fields, places.levels)
            if type(program) is list:
                program = _of_bytes(program) or ""
            field = ""
            if type(level) is int and level > 7:
                field = next((name for name, place in _SCALES.items() if first(fields, place) == level), "")
            severity, text = with_level(level, text, field)
            yield time, machine, str(program), severity, text

    def _time(self, fields: dict[str, Any], stamp: Any, machine: str, arrived: int) -> int:
        try:
            zoned = type(stamp) is not str or stamp[-1:] == "Z"
            return moment(stamp) if zoned else self.zones.moment(stamp, machine, arrived)
        except RefusedError:
            raise
        except ValueError as error:
            field = next((name for name in _TIMES if first(fields, self._place(name)) == stamp), "time")
            raise RefusedError(FIELD_INVALID, f"{field}: {error}") from None


@dataclass(frozen=True, slots=True)
class _Places:
    """Where each part of a line is looked up in an object."""

    texts: Alternatives
    times: Alternatives
    nodes: Alternatives
    labels: Alternatives
    programs: Alternatives
    levels: Alternatives
    pods: tuple[tuple[Alternatives, Alternatives], ...]

    def pod(self, fields: dict[str, Any]) -> str:
        """The pod that wrote a line; empty if it was none."""
        for pod, namespaces in self.pods:
            if name := first(fields, pod, text=True):
                return pod_name(name, first(fields, namespaces, text=True) or "")
        return ""

    @classmethod
    def of(cls, places: Callable[[Iterable[str]], Alternatives], labels: LabelRule) -> _Places:
        """The places of all parts, made of their names by a function."""
        usual = labels.machine == LABELS.machine
        late = tuple(name for name in labels.machine if usual and name.startswith("service."))  # beside a host none
        machines = (*(name for name in labels.machine if name not in late), *_MACHINES, *late)
        pods = tuple((places([pod]), places(namespaces)) for pod, namespaces in SHIPPED)
        texts, times, nodes, named, programs, levels = map(
            places, (_TEXTS, _TIMES, _NODES, machines, _PROGRAMS, _LEVELS)
        )
        return cls(texts, times, nodes, named, programs, levels, pods)


def _of_bytes(value: list[Any]) -> str | None:
    r"""The text of a field of journald that is not all printable, a list of its bytes; ``None`` if it is none.

    Of a field that is there several times, a list of texts, it is the first.

    >>> _of_bytes([27, 91, 49, 109, 110, 111]), _of_bytes(["a", "b"]), _of_bytes([{}])
    ('\x1b[1mno', 'a', None)
    """
    if value and isinstance(value[0], str):
        return value[0]
    try:
        return bytes(value).decode(errors="replace")
    except (TypeError, ValueError):  # no bytes
        return None

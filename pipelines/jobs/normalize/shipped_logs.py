"""The decoders of log lines as shippers write them in JSON: Filebeat and Elastic Agent (ECS), Fluent Bit, Vector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pipelines.jobs.normalize.instants import moment
from pipelines.jobs.normalize.labels import LABELS, LabelRule
from pipelines.jobs.normalize.line_decoder import Line, LineDecoder
from pipelines.jobs.normalize.measurement import severity_of

_TIMES = ("@timestamp", "timestamp", "date", "time", "ts")
_TEXTS = ("message", "log", "msg", "MESSAGE", "event.original")
_LEVELS = (
    *("log.syslog.severity.code", "log.syslog.severity.name", "log.level", "severity", "level", "PRIORITY"),
    *("syslog.severity.code",),
)
_PROGRAMS = [
    "process.name",
    "log.syslog.appname",
    "appname",
    "ident",
    "SYSLOG_IDENTIFIER",
    "program",
    "service.name",
    "container.name",
    "kubernetes.container_name",
    "container_name",
    "kubernetes.container.name",
    "log.file.path",
    "file",
    "tag",
    "source_type",
]
_MACHINES = ("kubernetes.host", "_HOSTNAME", "kubernetes.node.name", "kubernetes.pod_node_name")
_DEEPEST = 5


@dataclass(frozen=True)
class ShippedLogsDecoder(LineDecoder):
    """Decodes objects with a time, a text, and a machine; fields may be nested or have dots in their names.

    Args:
        labels: Which fields name the machine; besides them Kubernetes' node does.

    >>> message = {"@timestamp": "2026-11-21T00:27:00.013Z", "host": {"name": "a"}, "log": {"level": "error"},
    ...     "process": {"name": "sshd"}, "message": "no"}
    >>> list(ShippedLogsDecoder().lines(message, 0))
    [(1795220820013, 'a', 'sshd', 3, 'no')]
    """

    labels: LabelRule = LABELS

    @cached_property
    def _wanted(self) -> _Wanted:
        """The fields that may hold text, time, program, level and machine."""
        wanted = _Wanted()
        for name in (*_TEXTS, *_TIMES, *_PROGRAMS, *_LEVELS, *self.labels.machine, *_MACHINES):
            wanted.add(name.split("."), name)
        return wanted

    def lines(self, message: Any, arrived: int) -> Iterator[Line]:
        for each in message if isinstance(message, list) else [message]:
            if not isinstance(each, dict):
                raise TypeError("an object, or a list of objects, is accepted")
            flat: dict[str, Any] = {}
            _flatten(each, self._wanted, flat)
            text = _first(flat, _TEXTS)
            if isinstance(text, str) and (text := text.strip()):
                given = _first(flat, _TIMES)
                time = arrived if given is None else moment(given)
                machine = self.labels.machine_of({name: value for name, value in flat.items() if type(value) is str})
                machine = machine or _first(flat, _MACHINES) or ""
                program, level = _first(flat, _PROGRAMS) or "", _first(flat, _LEVELS)
                yield time, machine, str(program), severity_of(_number(level)), text


@dataclass
class _Wanted:
    """What is wanted of a value: itself by a name, if it is no object; if it is one, fields inside of it."""

    name: str = ""
    inside: dict[str, _Wanted] = field(default_factory=dict)

    def add(self, parts: Sequence[str], name: str, depth: int = 0) -> None:
        """Adds a field by its parts, of which the names of several objects, one in another, may consist."""
        for end in range(1, len(parts) + 1):
            part = self.inside.setdefault(".".join(parts[:end]), _Wanted())
            if end == len(parts):
                part.name = name
            elif depth < _DEEPEST:
                part.add(parts[end:], name, depth + 1)


def _flatten(fields: Mapping[str, Any], wanted: _Wanted, flat: dict[str, Any]) -> None:
    """Adds those fields of a tree of objects to ``flat`` that are wanted, by their dotted names."""
    inside = wanted.inside
    for name, value in fields.items():
        part = inside.get(name)
        if part is not None:
            if type(value) is dict:
                if not part.inside.keys().isdisjoint(value):
                    _flatten(value, part, flat)
            elif part.name:
                flat[part.name] = value


def _first(flat: Mapping[str, Any], names: Iterable[str]) -> Any:
    for name in names:
        value = flat.get(name)
        if value is not None and value != "":
            return value
    return None


def _number(level: Any) -> Any:
    """A level that is a digit as text, as journald writes it, is a number."""
    return int(level) if isinstance(level, str) and len(level) == 1 and level.isascii() and level.isdigit() else level

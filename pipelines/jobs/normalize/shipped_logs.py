"""The decoders of log lines as shippers write them in JSON: Filebeat and Elastic Agent (ECS), Fluent Bit, Vector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pipelines.jobs.normalize.instants import moment
from pipelines.jobs.normalize.labels import LABELS, LabelRule, machine_and_port
from pipelines.jobs.normalize.line_decoder import Line, LineDecoder
from pipelines.jobs.normalize.measurement import severity_of
from pipelines.jobs.normalize.nested_fields import Alternatives, Wanted, first, flat, nested

_TIMES = (
    *("@timestamp", "timestamp", "date", "time", "ts"),
    *("_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP"),  # of journald
)
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
    def _wanted(self) -> Wanted:
        """The fields that may hold text, time, program, level and machine."""
        return Wanted.of((*_TEXTS, *_TIMES, *_PROGRAMS, *_LEVELS, *self.labels.machine, *_MACHINES))

    @cached_property
    def _nested(self) -> _Places:
        return _Places.of(nested, self.labels)

    @cached_property
    def _flat(self) -> _Places:
        return _Places.of(flat, self.labels)

    def lines(self, message: Any, arrived: int) -> Iterator[Line]:
        for each in message if isinstance(message, list) else [message]:
            if not isinstance(each, dict):
                raise TypeError("an object, or a list of objects, is accepted")
            if self._wanted.each_part_is_an_object(each):
                fields, places = each, self._nested
            else:
                fields, places = self._wanted.flat(each), self._flat
            text = first(fields, places.texts)
            if isinstance(text, str) and (text := text.strip()):
                given = first(fields, places.times)
                time = arrived if given is None else moment(given)
                machine, _ = machine_and_port(first(fields, places.labels, text=True) or "")
                machine = machine or first(fields, places.machines) or ""
                program, level = first(fields, places.programs) or "", first(fields, places.levels)
                yield time, machine, str(program), severity_of(_number(level)), text


@dataclass(frozen=True, slots=True)
class _Places:
    """Where each part of a line is looked up in an object."""

    texts: Alternatives
    times: Alternatives
    labels: Alternatives
    machines: Alternatives
    programs: Alternatives
    levels: Alternatives

    @classmethod
    def of(cls, places: Callable[[Iterable[str]], Alternatives], labels: LabelRule) -> _Places:
        """The places of all parts, made of their names by a function."""
        return cls(*map(places, (_TEXTS, _TIMES, labels.machine, _MACHINES, _PROGRAMS, _LEVELS)))


def _number(level: Any) -> Any:
    """A level that is a digit as text, as journald writes it, is a number."""
    return int(level) if isinstance(level, str) and len(level) == 1 and level.isascii() and level.isdigit() else level

"""The decoders of log lines as shippers write them in JSON: Filebeat and Elastic Agent (ECS), Fluent Bit, Vector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.jobs.normalize.instants import moment
from pipelines.jobs.normalize.labels import LABELS, LabelRule
from pipelines.jobs.normalize.line_decoder import Line, LineDecoder
from pipelines.jobs.normalize.measurement import severity_of
from pipelines.jobs.normalize.remembering import remembered

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

    def lines(self, message: Any, arrived: int) -> Iterator[Line]:
        for each in message if isinstance(message, list) else [message]:
            if not isinstance(each, dict):
                raise TypeError("an object, or a list of objects, is accepted")
            flat: dict[str, Any] = {}
            _flatten(((name, each[name]) for name in _useful(self.labels, tuple(each))), "", 0, flat)
            texts, times, programs, levels, machines, others = _places(self.labels, tuple(flat))
            text = _first(flat, texts)
            if isinstance(text, str) and text.strip():
                given = _first(flat, times)
                time = arrived if given is None else moment(given)
                machine = self.labels.machine_of({name: flat[name] for name in machines if isinstance(flat[name], str)})
                machine = machine or _first(flat, others) or ""
                program, level = _first(flat, programs) or "", _first(flat, levels)
                yield time, machine, str(program), severity_of(_number(level)), text.strip()


def _flatten(fields: Iterable[tuple[str, Any]], prefix: str, depth: int, flat: dict[str, Any]) -> None:
    """Adds the fields of a tree of objects to ``flat``, by their dotted names."""
    for name, value in fields:
        if type(value) is dict and depth < _DEEPEST:
            _flatten(value.items(), f"{prefix}{name}.", depth + 1, flat)
        else:
            flat[prefix + name] = value


@remembered(1 << 10, lambda rule, names: sum(map(len, names)))
def _useful(rule: LabelRule, names: tuple[str, ...]) -> tuple[str, ...]:
    """Which fields at the top of a message may hold something that is wanted of it, themselves or inside."""
    wanted = [f"{each}." for some in _wanted(rule) for each in some]
    return tuple(name for name in names if any(each.startswith(f"{name}.") for each in wanted))


@remembered(1 << 10, lambda rule, names: sum(map(len, names)))
def _places(rule: LabelRule, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Which of a message's fields may hold text, time, program, level and machine."""
    there = frozenset(names)
    return tuple(tuple(name for name in some if name in there) for some in _wanted(rule))


def _wanted(rule: LabelRule) -> tuple[Iterable[str], ...]:
    """The fields that may hold text, time, program, level and machine, and those that name it besides the rule's."""
    return _TEXTS, _TIMES, _PROGRAMS, _LEVELS, rule.machine, _MACHINES


def _first(flat: Mapping[str, Any], names: Iterable[str]) -> Any:
    for name in names:
        if flat[name] not in (None, ""):
            return flat[name]
    return None


def _number(level: Any) -> Any:
    """A level that is a digit as text, as journald writes it, is a number."""
    return int(level) if isinstance(level, str) and level.isascii() and level.isdigit() and len(level) == 1 else level

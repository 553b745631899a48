"""The decoders of log lines as shippers write them in JSON: Filebeat and Elastic Agent (ECS), Fluent Bit, Vector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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

    def lines(self, message: Any, arrived: int) -> Iterator[Line]:
        for each in message if isinstance(message, list) else [message]:
            flat = dict(_flat(each, "", 0))
            text = _first(flat, _TEXTS)
            if isinstance(text, str) and text.strip():
                given = _first(flat, _TIMES)
                time = arrived if given is None else moment(given)
                machine = self.labels.machine_of({name: each for name, each in flat.items() if isinstance(each, str)})
                machine = machine or _first(flat, _MACHINES) or ""
                program, level = _first(flat, _PROGRAMS) or "", _first(flat, _LEVELS)
                yield time, machine, str(program), severity_of(_number(level)), text.strip()


def _flat(tree: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    """The fields of a tree of objects, by their dotted names."""
    for name, value in tree.items():
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from _flat(value, f"{prefix}{name}.", depth + 1)
        else:
            yield f"{prefix}{name}", value


def _first(flat: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((flat[name] for name in names if flat.get(name) not in (None, "")), None)


def _number(level: Any) -> Any:
    """A level that is a digit as text, as journald writes it, is a number."""
    return int(level) if isinstance(level, str) and level.isascii() and level.isdigit() and len(level) == 1 else level

"""The decoder of OTLP logs (an export request in protobuf or JSON)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs

from pipelines.formats import otlp, otlp_json
from pipelines.formats.labels import LABELS, LabelRule, machine_and_port
from pipelines.formats.line_decoder import Line, LineDecoder, checked
from pipelines.formats.otlp_json import Record
from pipelines.formats.pods import pod_of
from pipelines.formats.refusals import RefusedError
from pipelines.formats.severities import with_level

_NODES = frozenset(("host.name", "k8s.node.name"))
_PROGRAMS = (
    "service.name", "process.executable.name", "k8s.container.name", "container.name", "k8s.deployment.name",
    "k8s.statefulset.name", "k8s.daemonset.name", "log.file.path", "log.file.name",
)  # fmt: skip
_SEVERITIES = (7,) * 9 + (6,) * 4 + (4,) * 4 + (3,) * 4 + (2,)
"""The severity of syslog by the severity number of OTLP: trace and debug, info, warn, error; from 21 on fatal."""


@dataclass(frozen=True)
class OtlpLogsDecoder(LineDecoder):
    """Decodes log records; the program is the ``service.name``, the executable, the container, or the file.

    Args:
        labels: Which attributes name the machine.
    """

    labels: LabelRule = LABELS

    def parsed(self, value: bytes) -> Any:
        """The resources of a request: for each its attributes and its records."""
        tree = otlp.tree(value)
        usual = None if tree is None else otlp_json.logs(tree)
        if usual is None:
            request = otlp.read(value, ExportLogsServiceRequest)
            return ((otlp.labels(each.resource.attributes), _records(each)) for each in request.resource_logs)
        return usual

    def lines(self, message: Any, arrived: int) -> Iterator[Line | None]:
        for common, records in message:
            shared = dict(common)
            for record in records:
                yield self._line(shared, record, arrived)

    def without_wrong(self, resource: Any) -> tuple[Any, list[tuple[str, str]]]:
        """A resource with the log records that can be used alone; and code and reason of each of the others.

        Args:
            resource: ``ResourceLogs``.
        """
        common, wrong = dict(otlp.labels(resource.resource.attributes)), []
        kept = ResourceLogs(resource=resource.resource)
        for scope in resource.scope_logs:
            usable = []
            for record in scope.log_records:
                try:
                    checked(partial(self.lines, [(common, [_plain(record)])], 0), "OtlpLogs")
                    usable.append(record)
                except RefusedError as error:
                    wrong.append((error.code, str(error)))
            if usable:
                kept.scope_logs.add(scope=scope.scope, log_records=usable)
        return kept, wrong

    def _line(self, common: dict[str, str], record: Record, arrived: int) -> Line | None:
        """The line that a record becomes; ``None`` if it has no text."""
        own, text, nanoseconds, number, level = record
        text = text.strip()
        if not text:
            return None
        attributes = dict(own) | common
        machine = self._machine(common, attributes)
        program = next((found for name in _PROGRAMS if (found := attributes.get(name))), "")
        severity, text = (_SEVERITIES[min(number, 21)], text) if number > 0 else with_level(level, text)
        return nanoseconds // 1_000_000 if nanoseconds else arrived, machine, program, severity, text

    def _machine(self, resource: dict[str, str], attributes: dict[str, str]) -> str:
        """The machine: the pod, or what the resource says, as an application's own ``host`` is something else."""
        if self.labels.pods and (pod := pod_of(attributes)):
            return pod
        node = resource.get("host.name") or resource.get("k8s.node.name")
        return (
            machine_and_port(node)[0]
            if node and _NODES & set(self.labels.machine)
            else self.labels.machine_of(attributes)
        )


def _records(resource: ResourceLogs) -> Iterator[Record]:
    return (_plain(record) for scope in resource.scope_logs for record in scope.log_records)


def _plain(record: Any) -> Record:
    """What is needed of a record in protobuf."""
    nanoseconds = record.time_unix_nano or record.observed_time_unix_nano
    pairs, text = otlp.labels(record.attributes), record.body.string_value or otlp.text(record.body)
    return pairs, text, nanoseconds, record.severity_number, record.severity_text

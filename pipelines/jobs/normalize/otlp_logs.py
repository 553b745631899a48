"""The decoder of OTLP logs (an export request in protobuf or JSON)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs

from pipelines.jobs.normalize import otlp
from pipelines.jobs.normalize.labels import LABELS, LabelRule
from pipelines.jobs.normalize.line_decoder import Line, LineDecoder, checked
from pipelines.jobs.normalize.measurement import severity_of
from pipelines.jobs.normalize.refusals import RefusedError

_SEVERITIES = ((21, 2), (17, 3), (13, 4), (9, 6), (1, 7))
"""The least severity number of OTLP for each severity of syslog: fatal, error, warn, info, debug and trace."""


@dataclass(frozen=True)
class OtlpLogsDecoder(LineDecoder):
    """Decodes log records; the program is the resource's ``service.name``, or the ``process.executable.name``.

    Args:
        labels: Which attributes name the machine.
    """

    labels: LabelRule = LABELS

    def parsed(self, value: bytes) -> Any:
        return otlp.read(value, ExportLogsServiceRequest)

    def lines(self, message: Any, arrived: int) -> Iterator[Line]:
        for resource in message.resource_logs:
            common = otlp.labels(resource.resource.attributes)
            for scope in resource.scope_logs:
                for record in scope.log_records:
                    yield from self._line(common, record, arrived)

    def without_wrong(self, resource: Any) -> tuple[Any, list[tuple[str, str]]]:
        """A resource with the log records that can be used alone; and code and reason of each of the others.

        Args:
            resource: ``ResourceLogs``.
        """
        common, wrong = otlp.labels(resource.resource.attributes), []
        kept = ResourceLogs(resource=resource.resource)
        for scope in resource.scope_logs:
            usable = []
            for record in scope.log_records:
                try:
                    checked(partial(self._line, common, record, 0), "OtlpLogs")
                    usable.append(record)
                except RefusedError as error:
                    wrong.append((error.code, str(error)))
            if usable:
                kept.scope_logs.add(scope=scope.scope, log_records=usable)
        return kept, wrong

    def _line(self, common: tuple[tuple[str, str], ...], record: Any, arrived: int) -> Iterator[Line]:
        """The line that a record becomes; none if it has no text."""
        text = otlp.text(record.body).strip()
        if not text:
            return
        attributes = dict((*otlp.labels(record.attributes), *common))
        machine = self.labels.machine_of(attributes)
        program = attributes.get("service.name") or attributes.get("process.executable.name", "")
        nanoseconds, number = record.time_unix_nano or record.observed_time_unix_nano, record.severity_number
        by_number = next((severity for least, severity in _SEVERITIES if number >= least), None)
        severity = severity_of(record.severity_text) if by_number is None else by_number
        yield nanoseconds // 1_000_000 if nanoseconds else arrived, machine, program, severity, text

"""The decoder of OTLP logs (an export request in protobuf or JSON)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from pipelines.jobs.normalize import otlp
from pipelines.jobs.normalize.labels import LABELS, LabelRule
from pipelines.jobs.normalize.line_decoder import Line, LineDecoder
from pipelines.jobs.normalize.measurement import severity_of

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
                    text = otlp.text(record.body).strip()
                    if text:
                        yield self._line(dict((*otlp.labels(record.attributes), *common)), record, text, arrived)

    def _line(self, attributes: dict[str, str], record: Any, text: str, arrived: int) -> Line:
        machine = self.labels.machine_of(attributes)
        program = attributes.get("service.name") or attributes.get("process.executable.name", "")
        nanoseconds, number = record.time_unix_nano or record.observed_time_unix_nano, record.severity_number
        by_number = next((severity for least, severity in _SEVERITIES if number >= least), None)
        severity = severity_of(record.severity_text) if by_number is None else by_number
        return nanoseconds // 1_000_000 if nanoseconds else arrived, machine, program, severity, text

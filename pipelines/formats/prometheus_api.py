"""The decoder of answers of Prometheus' HTTP API to instant and range queries.

Source: the Prometheus documentation, "HTTP API", "Expression query result formats".
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.message_decoder import MessageDecoder, Sample
from pipelines.formats.prometheus import COUNTING
from pipelines.formats.refusals import MACHINE_UNKNOWN, MESSAGE_EMPTY, RefusedError, no_machine
from pipelines.formats.samples import short


@dataclass(frozen=True)
class PrometheusApiDecoder(MessageDecoder):
    """Decodes vectors and matrices: ``{"status": "success", "data": {"resultType": "vector", "result": [...]}}``.

    What counts is told by the end of the name, as without metadata. A result of an expression, which has no name, is
    the gauge ``value``.

    Args:
        labels: Which labels name the machine and the series.
    """

    labels: LabelRule = LABELS

    def samples(self, message: Any) -> Iterator[Sample]:
        data, count = message["data"], 0
        if data["resultType"] not in ("vector", "matrix"):
            raise ValueError(f"the result is of the type {str(data['resultType'])[:40]!r}; accepted: vector, matrix")
        for series in data["result"]:
            labels = dict(series["metric"])
            name = labels.pop("__name__", "value")
            counter = name.endswith(COUNTING)
            machine, inside = self.labels.apply(labels.items(), fold=not counter)
            if not machine:
                raise RefusedError(MACHINE_UNKNOWN, f"{name[:80]}: {no_machine(labels)}")
            for time, text in series["values"] if "values" in series else (series["value"],):
                value = float(text)
                if not math.isnan(value):
                    kind = "counter" if counter else "gauge"
                    yield round(time * 1000), machine, short(f"{name}{inside}"), value, kind
                    count += 1
        if not count:
            raise RefusedError(MESSAGE_EMPTY, "the answer holds no number")

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        return None

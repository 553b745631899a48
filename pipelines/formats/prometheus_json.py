"""The decoders of Prometheus' JSON: what prometheus-kafka-adapter writes, and answers of the HTTP API to queries.

Source: the Prometheus documentation, "HTTP API", "Expression query result formats".
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from engine.formats.instants import instant
from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.message_decoder import MessageDecoder, Sample
from pipelines.formats.prometheus import COUNTING
from pipelines.formats.refusals import MACHINE_UNKNOWN, MESSAGE_EMPTY, NO_MACHINE, RefusedError, no_machine
from pipelines.formats.remembering import characters, remembered
from pipelines.formats.samples import short


@dataclass(frozen=True)
class PrometheusAdapterDecoder(MessageDecoder):
    """Decodes messages with ``name``, ``labels``, ``value`` (a number as text) and ``timestamp`` (RFC 3339).

    A remote write does not say what is a counter: names that end in ``_total``, ``_count``, ``_sum`` or
    ``_bucket`` are.
    The labels of a counter are not folded, as samples of several counters that come alone cannot be summed.

    Args:
        labels: Which labels name the machine and the series.

    >>> message = {"name": "up_total", "labels": {"__name__": "up_total", "instance": "a:9100", "job": "node"},
    ...     "value": "3", "timestamp": "2026-11-21T00:27:00Z"}
    >>> list(PrometheusAdapterDecoder().samples(message))
    [(1795220820000, 'a', 'up_total{job=node,port=9100}', 3.0, 'counter')]
    """

    labels: LabelRule = LABELS

    def samples(self, message: Any) -> Iterator[Sample]:
        value = float(message["value"])
        machine, metric, kind = _series(self.labels, message["name"], tuple(message["labels"].items()))
        if not machine:
            raise RefusedError(MACHINE_UNKNOWN, NO_MACHINE)
        if math.isnan(value):
            raise RefusedError(MESSAGE_EMPTY, "its value is NaN; accepted: a number")
        yield _instant(message["timestamp"]), machine, metric, value, kind

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        return value


@remembered(1 << 17, lambda rule, name, labels: len(name) + characters(labels))
def _series(rule: LabelRule, name: str, labels: tuple[tuple[str, str], ...]) -> tuple[str, str, str]:
    """The machine, the metric and its kind."""
    counter = name.endswith(COUNTING)
    machine, inside = rule.apply((pair for pair in labels if pair[0] != "__name__"), not counter, name)
    return machine, f"{name}{inside}", "counter" if counter else "gauge"


_instant = remembered(1 << 12, len)(instant)
"""All samples of a scrape have the same time."""


@dataclass(frozen=True)
class PrometheusApiDecoder(MessageDecoder):
    """Decodes vectors and matrices: ``{"status": "success", "data": {"resultType": "vector", "result": [...]}}``.

    A counter is recognised by the end of its name, as without metadata. A result of an expression, which has no name,
    is the gauge ``value``.

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
            machine, inside = self.labels.apply(labels.items(), not counter, name)
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

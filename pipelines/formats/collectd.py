"""The decoder of collectd's JSON (write_kafka, Format JSON): each message is a list of value lists."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from pipelines.formats.message_decoder import MessageDecoder, Sample, metric_name, number
from pipelines.formats.samples import short


@dataclass(frozen=True)
class CollectdDecoder(MessageDecoder):
    """Decodes collectd messages. Times are seconds with a fraction; a value of ``null`` is skipped.

    Args:
        store_rates: The agent's setting StoreRates: true if derived values are rates already, false if counters.

    >>> value = {"values": [5], "dstypes": ["gauge"], "dsnames": ["value"], "time": 1.5, "host": "a",
    ...     "plugin": "memory", "plugin_instance": "", "type": "memory", "type_instance": "used"}
    >>> list(CollectdDecoder().samples([value]))
    [(1500, 'a', 'memory.memory.used', 5.0, 'gauge')]
    """

    store_rates: bool = True

    def samples(self, message: Any) -> Iterator[Sample]:
        if not isinstance(message, list):
            raise TypeError("a list of values is accepted")
        for item in message:
            time = round(float(item["time"]) * 1000)
            parts = [item["plugin"], item["type"], item.get("type_instance")]
            instance = {"instance": item["plugin_instance"]} if item.get("plugin_instance") else {}
            for raw, source, kind in zip(item["values"], item["dsnames"], item["dstypes"], strict=True):
                value = number(raw)
                if value is not None:
                    name = ".".join(part for part in [*parts, source if source != "value" else ""] if part)
                    yield time, item["host"], short(metric_name(name, instance)), value, self._kind(kind)

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        """The message with ``null`` in place of the other values, without value lists that hold none of the records."""
        at, kept = 0, []
        for item in orjson.loads(value):
            values: list[Any] = []
            for raw in item["values"]:
                sample = number(raw) is not None
                values.append(raw if sample and at in records else None)
                at += sample
            kept += [item | {"values": values}] if any(raw is not None for raw in values) else []
        return orjson.dumps(kept)

    def _kind(self, dstype: str) -> str:
        if dstype == "gauge":
            return "gauge"
        return "rate" if self.store_rates else "counter"

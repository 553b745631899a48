"""The decoder of Telegraf's JSON (outputs.kafka, data_format json): each message is one measurement, or a batch."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from pipelines.formats.counters import COUNTERS
from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.measurement import TEXT, TextRule, epoch_ms, series_tags
from pipelines.formats.message_decoder import MessageDecoder, Sample, number
from pipelines.formats.refusals import MACHINE_UNKNOWN, RefusedError, no_machine
from pipelines.formats.samples import LONGEST, short


@dataclass(frozen=True)
class TelegrafDecoder(MessageDecoder):
    """Decodes Telegraf messages: `{"fields": {...}, "name": "cpu", "tags": {"host": ...}, "timestamp": ...}`.

    Timestamps are in seconds to nanoseconds, by their magnitude. Fields of text are a dead letter; flags
    are skipped.

    Args:
        labels: Which tags name the machine and the series.
        text: Which fields of text are left out without a dead letter.

    >>> message = {"fields": {"used": 5, "ok": True}, "name": "mem", "tags": {"host": "a"}, "timestamp": 1795220820}
    >>> list(TelegrafDecoder().samples(message))
    [(1795220820000, 'a', 'mem.used', 5.0, 'gauge')]
    """

    labels: LabelRule = LABELS
    text: TextRule = TEXT

    def samples(self, message: Any) -> Iterator[Sample]:
        for measurement in measurements(message):
            name, tags, time = measurement["name"], measurement["tags"], time_of(measurement)
            machine, instance = self.labels.apply(series_tags(name, tags.items()))
            if len(name) > LONGEST:
                raise ValueError(f"the name of the measurement is longer than {LONGEST} characters")
            if not machine:
                raise RefusedError(MACHINE_UNKNOWN, no_machine(measurement["tags"]))
            for field, raw in measurement["fields"].items():
                value, full = number(raw), f"{name}.{field}"
                if value is not None:
                    kind = "counter" if COUNTERS.says(full) else "gauge"
                    yield time, machine, short(f"{full}{instance}"), value, kind

    def read(self, message: Any) -> tuple[list[Sample], tuple[str, str] | None]:
        samples = list(self.samples(message))
        fields = ((m["name"], field, raw) for m in measurements(message) for field, raw in m["fields"].items())
        return samples, self.text.refusal(f"{name}.{field}" for name, field, raw in fields if isinstance(raw, str))

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        message, at, kept = orjson.loads(value), 0, []
        for measurement in measurements(message):
            samples = [field for field, raw in measurement["fields"].items() if number(raw) is not None]
            wanted = {name for i, name in enumerate(samples, at) if i in records}
            fields = {name: raw for name, raw in measurement["fields"].items() if name in wanted}
            at += len(samples)
            kept += [measurement | {"fields": fields}] if fields else []
        return orjson.dumps({"metrics": kept} if "metrics" in message else kept[0])


def measurements(message: Any) -> list[Any]:
    """The measurements of a message: a batch holds several."""
    return list(message.get("metrics", [message]))


def time_of(measurement: Any) -> int:
    """The time of a measurement, epoch milliseconds.

    Raises:
        TypeError: If it is no integer.
    """
    stamp = measurement["timestamp"]
    if not isinstance(stamp, int) or isinstance(stamp, bool):
        raise TypeError(f"timestamp {stamp!r} is not an integer")
    return epoch_ms(stamp)

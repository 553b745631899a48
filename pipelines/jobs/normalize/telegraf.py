"""The decoder of Telegraf's JSON (outputs.kafka, data_format json): each message is one measurement."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from pipelines.jobs.normalize.message_decoder import MessageDecoder, Sample, metric_name, number

COUNTERS = frozenset(
    {
        *(f"net.{f}" for f in ("bytes_recv", "bytes_sent", "packets_recv", "packets_sent", "err_in", "err_out")),
        *(f"net.{f}" for f in ("drop_in", "drop_out")),
        *(
            f"diskio.{f}"
            for f in ("reads", "writes", "read_bytes", "write_bytes", "read_time", "write_time", "io_time")
        ),
        *(f"diskio.{f}" for f in ("weighted_io_time", "merged_reads", "merged_writes")),
        *(f"kernel.{f}" for f in ("context_switches", "interrupts", "processes_forked")),
        *(f"swap.{f}" for f in ("in", "out")),
    }
)
"""Fields that are counters; Telegraf's JSON does not say which fields are."""

DESCRIPTIVE = frozenset({"host", "dc", "region", "rack", "fstype", "mode"})
"""Tags that describe the machine or the instance, but do not distinguish two series."""

_SECONDS_BEFORE = 100_000_000_000


@dataclass(frozen=True)
class TelegrafDecoder(MessageDecoder):
    """Decodes Telegraf messages: `{"fields": {...}, "name": "cpu", "tags": {"host": ...}, "timestamp": ...}`.

    Timestamps are in seconds or milliseconds; fields that are not numbers are skipped.

    >>> message = {"fields": {"used": 5, "ok": True}, "name": "mem", "tags": {"host": "a"}, "timestamp": 1795220820}
    >>> list(TelegrafDecoder().samples(message))
    [(1795220820000, 'a', 'mem.used', 5.0, 'gauge')]
    """

    def samples(self, message: Any) -> Iterator[Sample]:
        tags, name, stamp = message["tags"], message["name"], message["timestamp"]
        if not isinstance(stamp, int) or isinstance(stamp, bool):
            raise TypeError(f"timestamp {stamp!r} is not an integer")
        time = stamp * 1000 if abs(stamp) < _SECONDS_BEFORE else stamp
        instance = {k: v for k, v in tags.items() if k not in DESCRIPTIVE}
        for field, raw in message["fields"].items():
            value, full = number(raw), f"{name}.{field}"
            if value is not None:
                kind = "counter" if full in COUNTERS else "gauge"
                yield time, tags["host"], metric_name(full, instance), value, kind

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        message = orjson.loads(value)
        samples = [field for field, raw in message["fields"].items() if number(raw) is not None]
        kept = {samples[at] for at in records}
        return orjson.dumps(
            message | {"fields": {name: raw for name, raw in message["fields"].items() if name in kept}}
        )

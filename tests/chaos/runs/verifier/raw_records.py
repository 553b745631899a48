"""Reads what agents sent as docs/input.md describes it: which messages are records, and which must be dead letters."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import polars as pl

from tests.chaos.runs.verifier.log_reader import LogMessage

KINDS = ("gauge", "counter", "rate", "count", "latency", "ratio")
_Parse = Callable[[dict[str, Any]], dict[str, Any] | None]
_AHEAD_MS, _EARLIEST = 60_000, 946_684_800_000
_SECONDS_BELOW, _EXACT = 100_000_000_000, 2**53
_RULE = (
    *("id", "@timestamp", "active", "host.name", "metric", "event.start", "event.end", "dates", "times"),
    *("timezone", "above", "below", "skip_result", "skip_learning", "report", "weekend", "only", "min_change"),
    *("min_change_share", "store", "note"),
)
RULE_FIELDS = frozenset(_RULE)
LABEL_FIELDS = frozenset(("host.name", "metric", "event.start", "event.end", "event.created", "verdict", "note"))
_PLACE = {"partition": pl.Int64, "offset": pl.Int64, "time": pl.Int64, "entity": pl.String}
SAMPLES = _PLACE | {"metric": pl.String, "value": pl.Float64, "kind": pl.String}
LINES = _PLACE | {"program": pl.String, "severity": pl.Int64, "message": pl.String}


@dataclass(frozen=True)
class RawTopic:
    """The content of a topic of agents.

    Attributes:
        records: Its good records, with partition and offset; columns as `SAMPLES` or `LINES`.
        refused: The code of the dead letter that each other message must become, by partition and offset.
    """

    records: pl.DataFrame
    refused: dict[tuple[int, int], str]

    def since(self, begin: int | None) -> RawTopic:
        """The same without the good records of event times before an instant, epoch milliseconds; ``None``: all."""
        return self if begin is None else RawTopic(self.records.filter(pl.col("time") >= begin), self.refused)


def samples(messages: Iterable[LogMessage]) -> RawTopic:
    """The samples in messages of `telemetry.json`."""

    def sample(fields: dict[str, Any]) -> dict[str, Any] | None:
        value, kind = fields.get("value"), fields.get("kind", "gauge")
        if not (_text(fields.get("metric")) and _number(value) and kind in KINDS and "Kind" not in fields):
            return None
        return {"metric": fields["metric"], "value": float(value or 0), "kind": kind}

    return _read(messages, sample, SAMPLES)


def lines(messages: Iterable[LogMessage]) -> RawTopic:
    """The lines in messages of `logs.json`."""

    def line(fields: dict[str, Any]) -> dict[str, Any] | None:
        severity = fields.get("log.syslog.severity.code", 6)
        if not (isinstance(fields.get("message"), str) and isinstance(severity, int) and 0 <= severity <= 8):
            return None
        return {"program": fields.get("process.name", ""), "severity": severity, "message": fields["message"]}

    return _read(messages, line, LINES)


def refused_controls(messages: Iterable[LogMessage], fields: frozenset[str], code: str) -> dict[tuple[int, int], str]:
    """The rules or labels that cannot be used: no JSON object, or one with an unknown field.

    Args:
        messages: The messages of the topic.
        fields: The names of the fields that such a record may have.
        code: The code of the dead letter of an object that is none.

    Returns:
        The code of each message that must become a dead letter, by partition and offset.
    """
    found = {}
    for message in messages:
        try:
            record = json.loads(message.value)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            found[message.partition, message.offset] = "JSON_MALFORMED"
        elif record.keys() - fields:
            found[message.partition, message.offset] = code
    return found


def _read(messages: Iterable[LogMessage], parse: _Parse, schema: dict[str, Any]) -> RawTopic:
    rows, refused = [], {}
    for message in messages:
        place = {"partition": message.partition, "offset": message.offset}
        found = _record(message, parse)
        if isinstance(found, str):
            refused[message.partition, message.offset] = found
        else:
            rows.append(place | found)
    return RawTopic(pl.DataFrame(rows, schema), refused)


def _record(message: LogMessage, parse: _Parse) -> dict[str, Any] | str:
    """The columns of a message, or the code of its dead letter."""
    try:
        fields = json.loads(message.value)
    except ValueError:
        return "JSON_MALFORMED"
    if not isinstance(fields, dict):
        return "JSON_MALFORMED"
    time, found = fields.get("@timestamp"), parse(fields)
    if found is None or not _text(fields.get("host.name")) or type(time) is not int or abs(time) > _EXACT:
        return "FIELD_INVALID"
    return _clock(time, message.arrived) or {"time": time, "entity": fields["host.name"]} | found


def _clock(time: int, arrived: int) -> str | None:
    """The code of a dead letter with a wrong time; ``None`` for a time that is accepted."""
    if 0 < time < _SECONDS_BELOW or time > _SECONDS_BELOW * 1000:
        return "TIME_UNIT"
    if time > arrived + _AHEAD_MS:
        return "TIME_AHEAD"
    return "TIME_TOO_EARLY" if time < _EARLIEST else None


def _text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

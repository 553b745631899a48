"""The decoders of log lines that Telegraf sends as fields of text: its JSON, and Influx line protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from engine.spec.decoder import Decoded, Decoder, Messages
from pipelines.jobs.normalize import influx_lines
from pipelines.jobs.normalize.influx import times_of, usable_fields
from pipelines.jobs.normalize.labels import LABELS, LabelRule
from pipelines.jobs.normalize.line_decoder import Line, LineDecoder, collect
from pipelines.jobs.normalize.measurement import severity_of, text_of
from pipelines.jobs.normalize.refusals import Refusals, RefusedError
from pipelines.jobs.normalize.telegraf import measurements, time_of

_PROGRAMS = ("appname", "program", "container_name", "source", "service", "path")
_LEVELS = ("severity_code", "severity", "level", "Level", "LevelText")
_ABOUT = frozenset((*_PROGRAMS, *_LEVELS))


@dataclass(frozen=True)
class TelegrafLogDecoder(LineDecoder):
    """Decodes measurements with fields of text, such as those of the inputs syslog, tail, docker_log, win_eventlog.

    The line is the field ``message`` (or ``msg``, ``log``, ``body``, ``value``, ...); without such a field it is all
    text of the measurement, ``state=up role=db``. Severity and program come from the tags and fields that usually hold
    them; without any the program is the measurement's name. Numbers are not used.

    Args:
        labels: Which tags name the machine.

    >>> message = {"name": "syslog", "tags": {"host": "a", "appname": "sshd", "severity": "err"},
    ...     "fields": {"message": "no", "version": 1}, "timestamp": 1795220820}
    >>> list(TelegrafLogDecoder().lines(message, 0))
    [(1795220820000, 'a', 'sshd', 3, 'no')]
    """

    labels: LabelRule = LABELS

    def lines(self, message: Any, arrived: int) -> Iterator[Line]:
        for each in measurements(message):
            yield from line_of(self.labels, each["name"], each["tags"], each["fields"], time_of(each))


@dataclass(frozen=True)
class InfluxLogDecoder(Decoder):
    """Decodes lines of Influx line protocol with fields of text, like `TelegrafLogDecoder`.

    Args:
        labels: Which tags name the machine.
    """

    labels: LabelRule = LABELS

    def decode(self, messages: Messages) -> Decoded:
        refusals = Refusals()
        return self.of_fields(usable_fields(messages, refusals), messages, refusals)

    def of_fields(self, found: pl.DataFrame, messages: Messages, refusals: Refusals) -> Decoded:
        """Decodes the fields of messages, see `usable_fields`."""
        times, columns = times_of(found, messages).tolist(), ("row", "number", "head", "key", "raw", "value", "text")
        lines: dict[int, list[tuple[int, str, dict[str, Any]]]] = {}
        fields: dict[str, Any] = {}
        last = (-1, -1)
        told = zip(times, *(found[column].to_list() for column in columns), strict=True)
        for time, row, number, head, key, raw, value, text in told:
            if (row, number) != last:
                last, fields = (row, number), {}
                lines.setdefault(row, []).append((time, head, fields))
            fields[influx_lines.unescaped(key)] = influx_lines.quoted(raw) if text else value

        def lines_of(row: int) -> Iterator[Line]:
            if row in refusals.whole:
                raise RefusedError(*refusals.whole[row])
            for time, head, fields in lines[row]:
                name, tags = influx_lines.head(head) or ("", ())
                yield from line_of(self.labels, name, dict(tags), fields, time)

        return collect(len(messages.values), lines_of, "Influx")


def line_of(
    labels: LabelRule, name: str, tags: Mapping[str, str], fields: Mapping[str, Any], time: int
) -> Iterator[Line]:
    """The log line that the text of a measurement makes; none if it has no text."""
    texts = {field: value for field, value in fields.items() if isinstance(value, str) and value.strip()}
    text, _ = text_of({field: texts[field] for field in texts if field not in _ABOUT})
    text = text.strip()
    if not text:
        return
    level = next(
        (tags[each] if each in tags else fields[each] for each in _LEVELS if each in tags or each in fields), None
    )
    program = next((given for each in _PROGRAMS if (given := tags.get(each, texts.get(each)))), name)
    yield time, labels.machine_of(tags), str(program), severity_of(level), text

"""The decoders of log lines that Telegraf sends as fields of text: its JSON, and Influx line protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from engine.spec.decoder import Decoded, Decoder, Messages
from pipelines.formats import influx_lines
from pipelines.formats.influx import begin_lines, times_of, usable_fields
from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.line_decoder import Line, LineDecoder, collect
from pipelines.formats.refusals import Refusals, RefusedError
from pipelines.formats.samples import codes_of
from pipelines.formats.severities import with_level
from pipelines.formats.telegraf import measurements, time_of

_TEXTS = ("message", "msg", "Message", "log", "body", "value", "event")
_PROGRAMS = ("appname", "program", "container_name", "source", "Source", "service", "path")
_LEVELS = ("severity_code", "severity", "level", "LevelText", "Level")
_ABOUT = frozenset((*_PROGRAMS, *_LEVELS))
_ORIGINS = {"syslog": "hostname", "win_eventlog": "Computer"}
"""Tags that name the machine of a line where Telegraf collects lines of others; ``host`` is its own."""


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
            line = line_of(self.labels, each["name"], each["tags"], each["fields"], time_of(each))
            if line:
                yield line


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

    def of_fields(self, fields_frame: pl.DataFrame, messages: Messages, refusals: Refusals) -> Decoded:
        """Decodes the fields of messages, see `usable_fields`."""
        begins = np.flatnonzero(begin_lines(fields_frame))
        ends = np.append(begins, fields_frame.height)[1:]
        first = fields_frame[begins]
        keys, names = codes_of(fields_frame["key"])
        plain = [influx_lines.unescaped(name) for name in names]
        fields = [plain[code] for code in keys.tolist()]
        triples = zip(*(fields_frame[column].to_list() for column in ("text", "raw", "value")), strict=True)
        values = [influx_lines.quoted(raw) if text else value for text, raw, value in triples]
        heads, texts = codes_of(first["head"])
        measured = [(name, dict(tags)) for name, tags in (influx_lines.head(text) or ("", ()) for text in texts)]
        lines = [column.tolist() for column in (times_of(first, messages), heads, begins, ends)]
        of_row = np.searchsorted(first["row"].to_numpy(), np.arange(len(messages.values) + 1)).tolist()

        def lines_of(row: int) -> Iterator[Line]:
            if row in refusals.whole:
                raise RefusedError(*refusals.whole[row])
            mine = slice(of_row[row], of_row[row + 1])
            for time, head, begin, end in zip(*(column[mine] for column in lines), strict=True):
                name, tags = measured[head]
                of_line = dict(zip(fields[begin:end], values[begin:end], strict=True))
                line = line_of(self.labels, name, tags, of_line, time)
                if line:
                    yield line

        return collect(len(messages.values), lines_of, "Influx")


def line_of(labels: LabelRule, name: str, tags: Mapping[str, str], fields: Mapping[str, Any], time: int) -> Line | None:
    """The log line that the text of a measurement makes; ``None`` if it has no text."""
    text = _text_of(fields)
    if not text:
        return None
    severity, text = with_level(*_level_of(tags, fields, text))
    origin = tags.get(_ORIGINS.get(name, "")) if labels.machine == LABELS.machine else None
    return (
        time,
        labels.pod_of(tags) or origin or labels.machine_of(tags),
        _program_of(tags, fields) or str(name),
        severity,
        text,
    )


def _text_of(fields: Mapping[str, Any]) -> str:
    """The message among the fields of a measurement; without one all its text; empty if it has none.

    >>> _text_of({"message": "no ", "facility": "auth"}), _text_of({"state": "up", "role": "db", "level": "warn"})
    ('no', 'role=db state=up')
    """
    for name in _TEXTS:
        value = fields.get(name)
        if isinstance(value, str) and (text := value.strip()):
            return text
    texts = {name: text for name, text in fields.items() if isinstance(text, str) and name not in _ABOUT}
    return " ".join(f"{name}={text}" for name, text in sorted(texts.items()) if text.strip()).strip()


def _level_of(tags: Mapping[str, str], fields: Mapping[str, Any], text: str) -> tuple[Any, str, str]:
    """The first tag or field that holds a level, ``None`` if there is none; the text; and the name of the field."""
    for name in _LEVELS:
        if name in tags:
            return tags[name], text, name
        if name in fields:
            return fields[name], text, name
    return None, text, ""


def _program_of(tags: Mapping[str, str], fields: Mapping[str, Any]) -> str:
    """The first tag or text that names the program; empty if there is none. A tag hides a field of the same name."""
    for name in _PROGRAMS:
        if name in tags:
            if tags[name]:
                return str(tags[name])
        elif name in fields and isinstance(text := fields[name], str) and text.strip():
            return text
    return ""

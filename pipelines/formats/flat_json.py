"""The decoder of JSON objects that hold numbers and belong to no agent's format: home-made, Fluent Bit, jmxtrans.

It is tried last. What could be log lines, or a document of Elasticsearch, is not taken.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from pipelines.formats.by_message import json_of
from pipelines.formats.counters import COUNTERS, CounterRule
from pipelines.formats.csv_layout import CSV, CsvRule
from pipelines.formats.instants import moment
from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.measurement import TEXT, TextRule
from pipelines.formats.message_decoder import MessageDecoder, Sample
from pipelines.formats.refusals import MACHINE_UNKNOWN, MESSAGE_EMPTY, RefusedError, no_machine
from pipelines.formats.samples import if_same, short

_BEGIN = re.compile(rb'\s*(?:\[\s*)?\{\s*"')
_NUMBER = re.compile(rb'"\s*:\s*(?:[-0-9]|true|false|\[)|"value"\s*:\s*"[-0-9.]')
_OTHERS = re.compile(
    rb'"(?:message|log|msg|MESSAGE|short_message|Message|full_message|body|text)"\s*:\s*"'
    rb'|"(?:ecs|metricset|_index|_source|resourceMetrics|resourceLogs|resourceSpans|scopeMetrics|dstypes)"\s*:'
)
"""What shows that a message is of log lines, a document of Elasticsearch, or of another format."""
_SHARED = frozenset({"tags", "labels", "dimensions"})
"""Objects whose fields are labels of all numbers of the message, under their own names."""
_LONG = ("keyspace",)
"""Fields beside those of CSV that name the metric of ``value``; jmxtrans writes this one."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]")
_LABEL = re.compile(r"\S{1,128}")
_DEEPEST = 16
_MOST_LISTED = 64


def looks_like_flat_json(value: bytes) -> bool:
    """Whether a message is JSON of objects with numbers that no other format is recognised by.

    >>> looks_like_flat_json(b'{"host":"a","cpu":0.3}'), looks_like_flat_json(b'{"host":"a","message":"x","n":1}')
    (True, False)
    """
    return _BEGIN.match(value) is not None and _NUMBER.search(value) is not None and _OTHERS.search(value) is None


Labels = tuple[tuple[str, str], ...]
Number = tuple[str, float, Labels]
"""(name, value, labels of the objects around it)"""


@dataclass(frozen=True)
class FlatJsonDecoder(MessageDecoder):
    """Decodes objects such as ``{"time": …, "host": "a", "cpu": 0.3, "mem": {"used": 12}}``, and lists of them.

    A number is a metric, named by the path to it with dots; a flag is 1 or 0. A text without blanks is a label of the
    numbers in its object and in those inside it; other texts are dead letters unless they are left out, as Telegraf's
    are. Objects in a list must differ in a label. Fields of the names of times (`CsvRule.time`) are no metrics; the
    first of them is the time, else the time is that of the message's arrival. If a field names the metric
    (`CsvRule.metric`), ``value`` is its value.

    Args:
        labels: Which labels name the machine and the series.
        text: Which texts are left out without a dead letter.
        counters: Which metrics are counters.
        csv: Which fields hold the time and the name of the metric.

    >>> message = {"time": 1795220820, "host": "a", "cpu": 0.3, "mem": {"used": 12, "type": "ram"}}
    >>> [sample[1:4] for sample in FlatJsonDecoder().samples(message)]
    [('a', 'cpu', 0.3), ('a', 'mem.used{mem.type=ram}', 12.0)]
    """

    labels: LabelRule = LABELS
    text: TextRule = TEXT
    counters: CounterRule = COUNTERS
    csv: CsvRule = CSV

    def samples(self, message: Any) -> Iterator[Sample]:
        yield from self.read(message)[0]

    def read(self, message: Any) -> tuple[list[Sample], tuple[str, str] | None]:
        samples: list[Sample] = []
        texts: set[str] = set()
        for one in message if type(message) is list else (message,):
            samples += self._of_object(one, texts)
        if not samples:
            raise RefusedError(MESSAGE_EMPTY, "the message holds no number")
        return samples, self.text.refusal(texts) if texts else None

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        message, flat = json_of(value), []
        for one in message if type(message) is list else (message,):
            time = self._time(one)
            at = {} if time is None else {self.csv.time[0]: time}
            flat += [{**at, **dict(labels), name: number} for name, number, labels in self._numbers(one, set())]
        part = orjson.dumps([flat[at] for at in sorted(records) if at < len(flat)])
        return if_same(self, value, records, part) if looks_like_flat_json(part) else None

    @cached_property
    def _times(self) -> dict[str, int]:
        """The fields that may hold the time, in any usual case, with their rank."""
        return {
            written: rank for rank, name in enumerate(self.csv.time) for written in (name, name.upper(), name.title())
        }

    @cached_property
    def _paths(self) -> tuple[tuple[str, list[str]], ...]:
        """The labels that may name the machine and may stand in an object of their own."""
        return tuple((name, name.split(".")) for name in self.labels.machine if "." in name)

    def _of_object(self, fields: Any, texts: set[str]) -> list[Sample]:
        if type(fields) is not dict:
            raise TypeError("accepted: an object of numbers and labels, or a list of such objects")
        named = next((name for name in (*self.csv.metric, *_LONG) if type(fields.get(name)) is str), None)
        time = self._time(fields)
        samples: list[Sample] = []
        before: Labels | None = None
        machine = instance = ""
        for path, value, labels in self._numbers(fields, texts):
            if labels is not before:
                before = labels
                mine = labels if named is None else tuple(label for label in labels if label[0] != named)
                machine, instance = self.labels.apply(mine)
                if not machine:
                    raise RefusedError(MACHINE_UNKNOWN, no_machine(label for label, _ in labels))
            name = path
            if named is not None:
                name = fields[named] if path == "value" else f"{fields[named]}.{path}"
            kind = "counter" if self.counters.says(name) else "gauge"
            samples.append((time, machine, short(f"{name}{instance}"), value, kind))
        long = any(not metric for _, _, metric, _, _ in samples)
        if len({sample[1:3] for sample in samples}) < len(samples) and not long:
            raise ValueError("two numbers have one name and labels; accepted: objects in a list that differ in a text")
        return samples

    def _time(self, fields: dict[str, Any]) -> int | None:
        """The time of an object in epoch milliseconds, if it has one."""
        times = self._times
        names = [name for name in fields if name in times and fields[name] is not None]
        if not names:
            return None
        name = min(names, key=times.__getitem__)
        try:
            return moment(fields[name])
        except ValueError:
            raise ValueError(f"{name} is {str(fields[name])[:80]!r}; accepted: ISO 8601, or an epoch") from None

    def _numbers(self, fields: dict[str, Any], texts: set[str]) -> list[Number]:
        shared: list[tuple[str, str]] = []
        rest: dict[str, Any] = {}
        for name, value in fields.items():
            if name in _SHARED and type(value) is dict:
                shared += ((key, str(each)) for key, each in value.items() if type(each) in (str, int, float))
            elif name == "value" and type(value) is str:
                rest[name] = _number(value)
            elif name not in self._times:
                rest[name] = value
        for path, parts in self._paths:
            inside: Any = rest
            for part in parts:
                inside = inside.get(part) if type(inside) is dict else None
            if type(inside) is str:
                shared.append((path, inside))
        numbers: list[Number] = []
        _walk(rest, "", tuple(shared), numbers, texts, 0)
        return numbers


def _number(text: str) -> float | str:
    """The number in a text, as jmxtrans writes it; the text if it is none."""
    try:
        return float(text) if "_" not in text else text
    except ValueError:
        return text


def _walk(tree: dict[str, Any], path: str, labels: Labels, numbers: list[Number], texts: set[str], depth: int) -> None:
    """Adds the numbers of an object, and of those inside it; and the names of texts that are no labels."""
    if depth > _DEEPEST:
        raise ValueError(f"objects are nested more than {_DEEPEST} deep")
    own_numbers: list[tuple[str, float]] = []
    inside: list[tuple[str, Any]] = []
    own: list[tuple[str, str]] = []
    for key, value in tree.items():
        kind = type(value)
        if kind is float or kind is int or kind is bool:
            own_numbers.append((path + key, float(value)))
        elif kind is dict or kind is list:
            inside.append((path + key, value))
        elif kind is str and value and not _DATE.match(value):
            if _LABEL.fullmatch(value):
                own.append((path + key, value))
            else:
                texts.add(path + key)
    labels = (*labels, *own) if own else labels
    numbers += [(name, value, labels) for name, value in own_numbers]
    for name, value in inside:
        if type(value) is dict:
            _walk(value, f"{name}.", labels, numbers, texts, depth + 1)
        else:
            _walk_list(value, name, labels, numbers, texts, depth)


def _walk_list(tree: list[Any], name: str, labels: Labels, numbers: list[Number], texts: set[str], depth: int) -> None:
    """Adds the numbers in a list, and those of objects in it."""
    if len(tree) > _MOST_LISTED:
        raise ValueError(f"{name[:80]} is a list of more than {_MOST_LISTED}")
    for at, element in enumerate(tree):
        if type(element) is dict:
            _walk(element, f"{name}.", labels, numbers, texts, depth + 1)
        elif type(element) in (int, float):
            numbers.append((f"{name}.{at}", float(element), labels))

"""The decoder of metrics that Metricbeat and Elastic Agent write in JSON (ECS): each message is one metricset."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from pipelines.formats.counters import COUNTERS, CounterRule
from pipelines.formats.distributions import Part, weighted
from pipelines.formats.ecs_fields import ABOUT, MEASURED, describes, is_dimension, is_id, kind_of
from pipelines.formats.instants import moment
from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.measurement import TEXT, TextRule
from pipelines.formats.message_decoder import MessageDecoder, Sample
from pipelines.formats.refusals import MACHINE_UNKNOWN, MESSAGE_EMPTY, RefusedError, no_machine
from pipelines.formats.samples import LONGEST, if_same, short

_DEEPEST = 24


@dataclass(frozen=True)
class MetricbeatDecoder(MessageDecoder):
    """Decodes documents of metricsets: each number of a module is a sample ``system.cpu.total.pct{instance}``.

    Fields that tell instances apart (``system.network.name``, ``process.name``, ...) become the instance; which
    these are, and what is a counter, follows from the field definitions. ``metricset.period`` and ``event.duration``
    are about the agent, and no samples. Flags are skipped; other text of a module is a dead letter. As each
    document comes alone, labels of counters are not folded.

    Args:
        labels: Which fields name the machine.
        text: Which fields of text are left out without a dead letter.
        counters: Which fields are counters besides those of the field definitions.

    >>> document = {"@timestamp": "2026-11-21T00:27:00.013Z", "host": {"name": "a"}, "metricset": {"period": 10000},
    ...     "system": {"network": {"name": "eth0", "in": {"bytes": 5}}}}
    >>> list(MetricbeatDecoder().samples(document))
    [(1795220820013, 'a', 'system.network.in.bytes{system.network.name=eth0}', 5.0, 'counter')]
    """

    labels: LabelRule = LABELS
    text: TextRule = TEXT
    counters: CounterRule = COUNTERS

    def samples(self, message: Any) -> Iterator[Sample]:
        return iter(self.read(message)[0])

    def read(self, message: Any) -> tuple[list[Sample], tuple[str, str] | None]:
        time = moment(message["@timestamp"])
        numbers, others = _fields(message)
        labels = self._machine(message)
        labels += [(field, value) for field, value in others if isinstance(value, str) and is_dimension(field)]
        labels += [(field, str(value)) for field, value in numbers if is_id(field)]
        about = numbers[0][0] if numbers else ""
        machine, inside = self.labels.apply(labels, metric=about)
        _, whole = self.labels.apply(labels, fold=False, metric=about)
        samples: list[Sample] = []
        for field, value in numbers:
            if not is_id(field):
                kind = "counter" if self.counters.says(field) else kind_of(field)
                name = short(f"{field}{inside if kind == 'gauge' else whole}")
                samples.append((time, machine, name, float(value), kind))
        for field, value in others:
            if _is_histogram(value):
                samples += self._quantiles(time, field, labels, value, about)
        if not samples:
            error = text_at(message, "error.message")
            raise RefusedError(MESSAGE_EMPTY, f"the agent reports: {error[:200]}" if error else "it measures no number")
        return samples, self.text.refusal(name for name, value in others if _is_left(name, value))

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        message = orjson.loads(value)
        numbers, others = _fields(message)
        names = [field for field, _ in numbers if not is_id(field)]
        names += [field for field, held in others if _is_histogram(held) for _ in _parts(held)]
        wanted = {name for at, name in enumerate(names) if at in records}
        texts = (field for field, held in others if _is_left(field, held))
        return if_same(self, value, records, orjson.dumps(_without(message, {*names, *texts} - wanted)))

    def _machine(self, message: Any) -> list[tuple[str, str]]:
        """The labels that name the machine."""
        labels = [(label, value) for label in self.labels.machine if (value := text_at(message, label))]
        if not labels and (value := text_at(message, "agent.name")):
            labels = [(self.labels.machine[0], value)] if self.labels.machine else []
        if not labels and not self.labels.default:
            raise RefusedError(MACHINE_UNKNOWN, no_machine(message))
        return labels

    def _quantiles(
        self, time: int, field: str, labels: list[tuple[str, str]], value: Any, about: str
    ) -> Iterator[Sample]:
        for part, label, number, kind in _parts(value):
            machine, inside = self.labels.apply((*labels, *label), kind == "gauge", about)
            yield time, machine, short(f"{field}{part}{inside}"), number, kind


def _fields(message: Mapping[str, Any]) -> tuple[list[tuple[str, int | float]], list[tuple[str, Any]]]:
    """The numbers that are measured, and texts, lists and histograms; each with its dotted name.

    Raises:
        ValueError: If objects are nested too deep.
    """
    numbers: list[tuple[str, int | float]] = []
    texts: list[tuple[str, Any]] = []
    for name, value in message.items():
        first = name.partition(".")[0]
        if first not in ABOUT:
            _leaves(name, value, numbers, texts, 0)
        elif first in MEASURED:
            inside: list[tuple[str, int | float]] = []
            _leaves(name, value, inside, texts, 0)
            wanted = tuple(f"{first}.{part}." for part in MEASURED[first])
            numbers += [(field, number) for field, number in inside if field.startswith(wanted) or is_id(field)]
        elif first == "service":
            _leaves(name, value, [], texts, 0)
    return numbers, texts


def _leaves(
    name: str, value: Any, numbers: list[tuple[str, int | float]], texts: list[tuple[str, Any]], depth: int
) -> None:
    kind = type(value)
    if kind is int or kind is float:
        numbers.append((name, value))
    elif kind is dict and not _is_histogram(value):
        if depth == _DEEPEST:
            raise ValueError(f"objects are nested deeper than {_DEEPEST}")
        if len(name) > LONGEST:
            raise ValueError(f"the name of a field is longer than {LONGEST} characters")
        for part, inner in value.items():
            _leaves(f"{name}.{part}", inner, numbers, texts, depth + 1)
    elif value is not None and kind is not bool and value not in ("", []):
        texts.append((name, value))


def _is_histogram(value: Any) -> bool:
    """Whether a value is a histogram as Elasticsearch stores it: values, and how often each was seen."""
    return isinstance(value, dict) and value.keys() == {"values", "counts"}


def _parts(histogram: dict[str, Any]) -> Iterator[Part]:
    return weighted(zip(histogram["values"], histogram["counts"], strict=True))


def _is_left(name: str, value: Any) -> bool:
    """Whether a field that is no number is text of the module which becomes neither a sample nor an instance."""
    return not (_is_histogram(value) or is_dimension(name) or describes(name))


def _without(tree: dict[str, Any], names: Collection[str], above: str = "") -> dict[str, Any]:
    """An object without the fields of some dotted names."""
    return {
        key: _without(inner, names, f"{above}{key}.") if isinstance(inner, dict) else inner
        for key, inner in tree.items()
        if f"{above}{key}" not in names
    }


def text_at(message: Any, field: str) -> str:
    """The text of a field by its dotted name, which a document may have as it is or in parts; empty: there is none."""
    if isinstance(given := message.get(field), str):
        return given
    for part in field.split("."):
        message = message.get(part) if isinstance(message, dict) else None
    return message if isinstance(message, str) else ""

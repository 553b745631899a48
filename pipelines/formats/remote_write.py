"""The decoder of Prometheus remote write, 1.0 and 2.0, as the gateway writes its requests: protobuf, not compressed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, AnyStr

import numpy as np
from google.protobuf.message import DecodeError

from engine.formats.dead_letters import payload_text
from engine.formats.json_decoder import FIELD_INVALID
from engine.spec.decoder import Decoded, Decoder, Messages
from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.prometheus import COUNTING
from pipelines.formats.refusals import MACHINE_UNKNOWN, MESSAGE_EMPTY, Refusals, RefusedError, no_machine
from pipelines.formats.remembering import remembered
from pipelines.formats.remote_write_protocol import Label, Request, read
from pipelines.formats.samples import LONGEST, LONGEST_METRIC, Coded, divisible, table

_COUNTER, _HISTOGRAM, _GAUGE_HISTOGRAM, _SUMMARY = 1, 3, 4, 5
_CACHED = 1 << 18
"""How many series of each version are remembered; one takes half a kilobyte to one and a half."""
_FROM_NAME = (0, _HISTOGRAM, _SUMMARY)
"""Types of metadata with which the end of a name decides whether a series counts; 0: no type is given."""


@dataclass(frozen=True, slots=True)
class Series:
    """What a series is called.

    Args:
        machine: The machine.
        name: The name of the metric.
        instance: The other labels, in braces.
        kind: The kind of the metric.
        counts: The kind of the count and the sum, if it holds native histograms.
        wrong: Code and reason if the series cannot be used.
    """

    machine: str = ""
    name: str = ""
    instance: str = ""
    kind: str = "gauge"
    counts: str = "counter"
    wrong: tuple[str, str] | None = None

    def metric(self, suffix: str) -> str:
        """The name of the metric, or of a part of a native histogram, with the instance."""
        return f"{self.name}{suffix}{self.instance}"


_MOST_LABELS = 256
_MANY_LABELS = Series(wrong=(FIELD_INVALID, f"a series has more than {_MOST_LABELS} labels"))


@dataclass(frozen=True)
class RemoteWriteDecoder(Decoder):
    """Decodes ``WriteRequest`` (1.0) and ``io.prometheus.write.v2.Request`` (2.0).

    A series that no label gives a machine, or that has no usable name, is left out, and its message is a dead letter
    beside the samples of the others. A counter is recognised by the metadata of 2.0, else by the end of its name. Of a
    native histogram count and sum are used. NaN, also as the sum of a histogram, is no value: Prometheus so says that a
    series has ended. Labels of counters are not folded, as a request holds any part of the series, and sums of parts
    would be mixed up.

    Args:
        labels: Which labels name the machine and the series.
    """

    labels: LabelRule = LABELS

    def decode(self, messages: Messages) -> Decoded:
        refusals, columns = Refusals(), _Columns()
        for row, value in enumerate(messages.values.to_pylist()):
            held, wrong = len(columns.rows), Wrong()
            try:
                for series, timeseries in named(read(value or b""), self.labels):
                    if series.wrong:
                        wrong.add(series.wrong, timeseries)
                    else:
                        columns.add(row, series, timeseries)
            except RefusedError as error:
                columns.cut(held)
                refusals.add(row, error.code, str(error))
                continue
            if len(columns.rows) > held:
                refusals.parts += [(row, code, why) for code, why in wrong.reasons()]
            else:
                nothing = (MESSAGE_EMPTY, "the request holds no sample")
                refusals.add(row, *next(iter(wrong.reasons()), nothing))
        return columns.table(refusals)

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        request = read(value)
        usable = [message for series, message in named(request, self.labels) if not series.wrong]
        places = [(message, at) for message in usable for at, s in enumerate(message.samples) if s.value == s.value]
        if any(map(histograms, usable)) or not divisible(self, value, len(places)):
            return None
        kept = type(request)()
        if isinstance(request, Request):
            kept.symbols.extend(request.symbols)
        for message, at in (places[record] for record in sorted(records)):
            series = kept.timeseries.add()
            series.CopyFrom(message)
            del series.samples[:], series.histograms[:]
            series.samples.add().CopyFrom(message.samples[at])
        return bytes(kept.SerializeToString())


@dataclass
class Wrong:
    """Counts samples that cannot be used, by code, each with its first reason."""

    samples: Counter[str] = field(default_factory=Counter)
    why: dict[str, str] = field(default_factory=dict)

    def add(self, wrong: tuple[str, str], timeseries: Any) -> None:
        """Counts the samples of a series."""
        code, why = wrong
        self.samples[code] += len(timeseries.samples) + len(timeseries.histograms)
        self.why.setdefault(code, why)

    def reasons(self) -> Iterator[tuple[str, str]]:
        """Code and reason of each kind."""
        for code, count in self.samples.items():
            yield code, f"{count} samples of the request are left out, the first: {self.why[code]}"


def named(request: Any, rule: LabelRule) -> Iterator[tuple[Series, Any]]:
    """The series of a request, each with its name.

    Raises:
        RefusedError: ``FIELD_INVALID`` if labels cannot be read.
    """
    if not isinstance(request, Request):
        for timeseries in request.timeseries:
            labels = timeseries.labels
            few = len(labels) <= _MOST_LABELS
            yield _of_labels(rule, b"".join(labels), tuple(map(len, labels))) if few else _MANY_LABELS, timeseries
        return
    symbols = list(request.symbols)
    for timeseries in request.timeseries:
        refs = timeseries.labels_refs
        if len(refs) > 2 * _MOST_LABELS:
            yield _MANY_LABELS, timeseries
            continue
        if len(refs) < 2 or len(refs) % 2 or max(refs) >= len(symbols):
            raise RefusedError(FIELD_INVALID, "labels_refs are no pairs, or name symbols that are not there")
        texts = itemgetter(*refs)(symbols)
        yield _of_pairs(rule, "".join(texts), tuple(map(len, texts)), timeseries.metadata.type), timeseries


def histograms(timeseries: Any) -> Sequence[Any]:
    """The native histograms of a series that hold something. One whose sum is NaN says that the series has ended."""
    return [each for each in timeseries.histograms if each.sum == each.sum] if timeseries.histograms else ()


def _of_texts(rule: LabelRule, texts: tuple[str, ...], kind: int) -> Series:
    """What a series is called, from the names and values of its labels by turns, and the type of its metadata."""
    pairs = list(zip(texts[::2], texts[1::2], strict=True))
    labels = dict(pairs)
    if len(labels) < len(pairs):
        return Series(wrong=(FIELD_INVALID, "a label is there twice"))
    name = labels.get("__name__", "")
    if not name or len(name) > LONGEST:
        return Series(wrong=(FIELD_INVALID, f"__name__ is missing, or longer than {LONGEST} characters"))
    by_name = name.endswith(COUNTING) if kind in _FROM_NAME else kind == _COUNTER and not name.endswith("_created")
    machine, instance = rule.apply_once((pair for pair in pairs if pair[0] != "__name__"), not by_name, name)
    shown = payload_text(f"{name}{instance}".encode())[:200]
    if not machine:
        return Series(wrong=(MACHINE_UNKNOWN, f"{shown}: {no_machine(labels.keys() - {'__name__'})}"))
    if len(machine) > LONGEST or len(name) + len(instance) + len("_count") > LONGEST_METRIC:
        why = (
            f"{shown}: the name of the machine has more than {LONGEST} characters, or the metric over {LONGEST_METRIC}"
        )
        return Series(wrong=(FIELD_INVALID, why))
    counts = "gauge" if kind == _GAUGE_HISTOGRAM else "counter"
    return Series(sys.intern(machine), sys.intern(name), instance, "counter" if by_name else "gauge", counts)


@remembered(_CACHED, lambda rule, joined, lengths, kind: len(joined))
def _of_pairs(rule: LabelRule, joined: str, lengths: tuple[int, ...], kind: int) -> Series:
    """`_of_texts` of texts that are joined, which takes less memory to remember than each alone."""
    return _of_texts(rule, tuple(_divided(joined, lengths)), kind)


@remembered(_CACHED, lambda rule, joined, lengths: len(joined))
def _of_labels(rule: LabelRule, joined: bytes, lengths: tuple[int, ...]) -> Series:
    """The same of labels in protobuf."""
    try:
        parsed = [Label.FromString(each) for each in _divided(joined, lengths)]
    except DecodeError:
        raise RefusedError(FIELD_INVALID, "a label is not readable, or no UTF-8") from None
    return _of_texts(rule, tuple(text for each in parsed for text in (each.name, each.value)), 0)


def _divided(joined: AnyStr, lengths: Iterable[int]) -> Iterator[AnyStr]:
    """The parts of some lengths.

    >>> list(_divided("hosta", (4, 1)))
    ['host', 'a']
    """
    end = 0
    for length in lengths:
        begin, end = end, end + length
        yield joined[begin:end]


_SUFFIXES = ("", "_count", "_sum")


class _Columns:
    """The columns of samples as they are filled."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self._times: list[int] = []
        self._values: list[float] = []
        self._codes: list[int] = []
        self._series: list[Series] = []
        self._code_of: dict[int, int] = {}

    def add(self, row: int, series: Series, timeseries: Any) -> None:
        """Adds the samples and histograms of a series."""
        code = self._code_of.get(id(series))
        if code is None:
            code = self._code_of[id(series)] = len(self._series) * 3
            self._series.append(series)  # kept, so that no other gets its id
        for sample in timeseries.samples:
            self.rows.append(row)
            self._times.append(sample.timestamp)
            self._values.append(sample.value)
            self._codes.append(code)
        for histogram in histograms(timeseries):
            self._append(row, histogram.timestamp, float(histogram.count_int or histogram.count_float), code + 1)
            self._append(row, histogram.timestamp, histogram.sum, code + 2)

    def cut(self, length: int) -> None:
        """Takes back what was added beyond a length."""
        for column in (self.rows, self._times, self._values, self._codes):
            del column[length:]

    def table(self, refusals: Refusals) -> Decoded:
        """The decoded samples."""
        used, codes = np.unique(np.array(self._codes, np.int64), return_inverse=True)
        parts = [code % 3 for code in used.tolist()]
        series = [self._series[code // 3] for code in used.tolist()]
        metrics = [one.metric(_SUFFIXES[part]) for one, part in zip(series, parts, strict=True)]
        kinds = [one.counts if part else one.kind for one, part in zip(series, parts, strict=True)]
        return table(
            np.array(self.rows, np.int32),
            np.array(self._times, np.int64),
            Coded(codes, [one.machine for one in series]),
            Coded(codes, metrics),
            np.array(self._values, np.float64),
            Coded(codes, kinds),
            refusals,
        )

    def _append(self, row: int, time: int, value: float, code: int) -> None:
        self.rows.append(row)
        self._times.append(time)
        self._values.append(value)
        self._codes.append(code)

"""The decoder of CSV: a message is a header and lines, in wide form (a metric a column) or in long form."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.formats.instants import instant, instants
from engine.spec.decoder import Decoded, Decoder, Messages
from pipelines.jobs.normalize.coded import codes_of, pairs_of
from pipelines.jobs.normalize.counters import COUNTERS, CounterRule
from pipelines.jobs.normalize.csv_layout import CSV, LONGEST_HEADER, CsvRule, Layout
from pipelines.jobs.normalize.labels import LABELS, LabelRule
from pipelines.jobs.normalize.measurement import TEXT, TextRule
from pipelines.jobs.normalize.refusals import FORMAT_UNKNOWN, LINE_INVALID, MESSAGE_EMPTY, Refusals, RefusedError
from pipelines.jobs.normalize.samples import Coded, if_same, short, table

_MISSING = ["", "-", "nan", "null", "none", "n/a", "na", "inf", "-inf", "+inf"]
_NUMBER = r"^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"
_VALUE = "value"


@dataclass
class _Lines:
    """Lines of messages that have the same header.

    Args:
        layout: What the columns are for.
        cells: The fields of each line.
        rows: Index of the message of each line, ascending.
        numbers: Number of each line in its message; the header is line 1.
    """

    layout: Layout
    cells: list[list[str]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)


@dataclass
class _Found:
    """Columns of samples, shape (n,) each; ``at`` sorts the samples of a message."""

    rows: list[npt.NDArray[np.int64]] = field(default_factory=list)
    at: list[npt.NDArray[np.int64]] = field(default_factory=list)
    times: list[npt.NDArray[np.int64]] = field(default_factory=list)
    entities: list[npt.NDArray[np.int64]] = field(default_factory=list)
    metrics: list[npt.NDArray[np.int64]] = field(default_factory=list)
    values: list[npt.NDArray[np.float64]] = field(default_factory=list)


@dataclass(frozen=True)
class CsvDecoder(Decoder):
    """Decodes messages such as ``time,host,cpu,mem`` and lines ``1795220820,a,0.5,17``.

    A message with a broken line is refused as a whole. Text in a column of numbers is a dead letter.

    Args:
        rule: Which columns are what.
        labels: Which labels are left out or folded, and how a port in a machine's name is read.
        text: Which columns of text are left out without a dead letter; the measurement is ``csv``.
        counters: Which metrics are counters.
    """

    rule: CsvRule = CSV
    labels: LabelRule = LABELS
    text: TextRule = TEXT
    counters: CounterRule = COUNTERS

    def decode(self, messages: Messages) -> Decoded:
        refusals = Refusals()
        groups: dict[tuple[str, ...], _Lines] = {}
        for row, value in enumerate(messages.values.to_pylist()):
            try:
                self._read(row, value or b"", groups)
            except RefusedError as error:
                refusals.add(row, error.code, str(error))
        found, entities, metrics = _Found(), {"": 0}, {"": 0}
        for header, lines in groups.items():
            if lines.rows:
                self._samples(header, lines, refusals, found, entities, metrics)
        rows, at, times, entity, metric, values = (
            np.concatenate([*arrays, np.zeros(0, arrays[0].dtype if arrays else np.int64)])
            for arrays in (found.rows, found.at, found.times, found.entities, found.metrics, found.values)
        )
        order = np.lexsort((at, rows))
        names = list(metrics)
        counter = np.array([self.counters.says(name.partition("{")[0]) for name in names], np.int64)
        held = {int(row) for row in np.unique(rows)} | {row for row, _, _ in refusals.parts}
        for row in {row for lines in groups.values() for row in lines.rows} - held:
            refusals.add(row, MESSAGE_EMPTY, "no line holds a number in a column of values")
        return table(
            rows[order].astype(np.int32),
            times[order].astype(np.int64),
            Coded(entity[order], list(entities)),
            Coded(metric[order], names),
            values[order].astype(np.float64),
            Coded(counter[metric[order]], ("gauge", "counter")),
            refusals,
        )

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        groups: dict[tuple[str, ...], _Lines] = {}
        self._read(0, value, groups)
        ((header, lines),) = groups.items()
        _, read, labels = self._columns(header, lines)
        there = {at: ~np.isnan(read[at][0]) & ~labels[at] for at in read}
        numbers = sorted((line, at) for at, mask in there.items() for line in np.flatnonzero(mask).tolist())
        kept = {numbers[each] for each in records}
        part = io.StringIO()
        writer = csv.writer(part, delimiter=self.rule.separates(_first_line(value.decode("utf-8-sig"))))
        writer.writerow(header)
        for line in sorted({line for line, _ in kept}):
            blank = {at for at in read if not (labels[at][line] or (line, at) in kept)}
            writer.writerow("" if at in blank else cell for at, cell in enumerate(lines.cells[line]))
        return if_same(self, value, records, part.getvalue().encode())

    def _read(self, row: int, value: bytes, groups: dict[tuple[str, ...], _Lines]) -> None:
        """Adds the lines of a message to those with the same header.

        Raises:
            RefusedError: If it cannot be used.
        """
        try:
            text = value.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise RefusedError(FORMAT_UNKNOWN, "the message is no text (UTF-8)") from None
        first = _first_line(text)
        if len(first) > LONGEST_HEADER:
            raise RefusedError(LINE_INVALID, f"the header has more than {LONGEST_HEADER} characters")
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=self.rule.separates(first), strict=True)
        header: tuple[str, ...] = ()
        cells: list[list[str]] = []
        numbers: list[int] = []
        try:
            for line in reader:
                if not line:
                    continue
                if not header:
                    header = tuple(line)
                elif len(line) != len(header):
                    why = f"line {reader.line_num}: {len(line)} fields; the header has {len(header)}"
                    raise RefusedError(LINE_INVALID, why)
                else:
                    cells.append(line)
                    numbers.append(reader.line_num)
        except csv.Error as error:
            raise RefusedError(LINE_INVALID, f"line {reader.line_num}: {error}") from None
        if not cells:
            raise RefusedError(MESSAGE_EMPTY, "no line below the header" if header else "the message is empty")
        lines = groups.get(header)
        lines = lines or groups.setdefault(header, _Lines(self.rule.layout(header)))
        lines.cells += cells
        lines.rows += [row] * len(cells)
        lines.numbers += numbers

    def _samples(
        self, header: tuple[str, ...], lines: _Lines, refusals: Refusals, found: _Found, entities: dict[str, int],
        metrics: dict[str, int],
    ) -> None:  # fmt: skip
        """Adds the samples of lines with the same header."""
        rows, layout = np.array(lines.rows, np.int64), lines.layout
        columns, read, labels = self._columns(header, lines)
        times = _times(columns[layout.time], rows, lines.numbers, refusals)
        machine, texts = codes_of(columns[layout.machine])
        series, instances = self._instances(header, columns, labels, machine, texts)
        applied = [self.labels.apply(pairs) for pairs in instances]
        entity = np.array([entities.setdefault(each, len(entities)) for each, _ in applied], np.int64)[series]
        named = codes_of(columns[layout.metric]) if layout.metric is not None else None
        text_in: dict[int, set[str]] = {}
        for place, at in enumerate(layout.rest):
            values, text = read[at]
            for line in np.flatnonzero(text & ~labels[at]).tolist():
                text_in.setdefault(lines.rows[line], set()).add(f"csv.{header[at].strip()}")
            there = np.flatnonzero(~np.isnan(values) & ~labels[at])
            if not len(there):
                continue
            codes, names = _names(header[at].strip(), named, series, [inside for _, inside in applied])
            numbered = np.array([metrics.setdefault(name, len(metrics)) for name in names], np.int64)
            found.rows.append(rows[there])
            found.at.append(there * len(header) + place)
            found.times.append(times[there])
            found.entities.append(entity[there])
            found.metrics.append(numbered[codes][there])
            found.values.append(values[there])
        for row, fields in text_in.items():
            refusal = self.text.refusal(fields)
            refusals.parts += [(row, *refusal)] if refusal else []

    def _columns(
        self, header: tuple[str, ...], lines: _Lines
    ) -> tuple[
        list[pl.Series],
        dict[int, tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]],
        dict[int, npt.NDArray[np.bool_]],
    ]:
        """The columns; of those that may hold numbers or labels also `_numbers` and `_is_label`, by their places."""
        columns = [pl.Series(column, dtype=pl.String).str.strip_chars() for column in zip(*lines.cells, strict=True)]
        read = {at: self._numbers(columns[at]) for at in lines.layout.rest}
        begins = np.flatnonzero(np.diff(np.array(lines.rows, np.int64), prepend=-1))
        return columns, read, {at: self._is_label(header[at], *read[at], begins, len(lines.rows)) for at in read}

    def _numbers(self, column: pl.Series) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """The numbers of a column, NaN where there is none; and where there is text instead."""
        if self.rule.comma:
            column = column.str.replace(",", ".", literal=True)
        number = column.cast(pl.Float64, strict=False)
        known = column.str.contains(_NUMBER)
        text = ~known & ~column.str.to_lowercase().is_in(_MISSING)
        values = pl.select(pl.when(known).then(number)).to_series()
        return values.fill_null(float("nan")).to_numpy(), text.to_numpy()

    def _is_label(
        self, name: str, values: npt.NDArray[np.float64], text: npt.NDArray[np.bool_], begins: npt.NDArray[np.int64],
        lines: int,
    ) -> npt.NDArray[np.bool_]:  # fmt: skip
        """For each line whether a column holds a label there; that is the same for all lines of a message."""
        if self.rule.labels:
            return np.full(lines, name.strip().lower() in self.rule.labels)
        numbers, texts = (np.logical_or.reduceat(each, begins) for each in (~np.isnan(values), text))
        return np.repeat(texts & ~numbers, np.diff(begins, append=lines))

    def _instances(
        self, header: Sequence[str], columns: list[pl.Series], labels: dict[int, npt.NDArray[np.bool_]],
        machine: npt.NDArray[np.int64], machines: list[str],
    ) -> tuple[npt.NDArray[np.int64], list[tuple[tuple[str, str], ...]]]:  # fmt: skip
        """The number of each line's machine and labels among the distinct ones; and these as names and values."""
        name = self.labels.machine[0] if self.labels.machine else ""
        codes, told = machine, [((name, text),) for text in machines]

        def joined(
            before: tuple[npt.NDArray[np.int64], list[tuple[tuple[str, str], ...]]], at: int
        ) -> tuple[npt.NDArray[np.int64], list[tuple[tuple[str, str], ...]]]:
            kept = pl.select(pl.when(pl.Series(labels[at])).then(columns[at]).otherwise(pl.lit(""))).to_series()
            other, texts = codes_of(kept)
            both, first, second = pairs_of(before[0], other, len(texts))
            pairs = zip(first.tolist(), second.tolist(), strict=True)
            return both, [(*before[1][one], (header[at].strip(), texts[two])) for one, two in pairs]

        start: tuple[npt.NDArray[np.int64], list[tuple[tuple[str, str], ...]]] = (codes, list(told))
        return reduce(joined, [at for at, mask in labels.items() if mask.any()], start)


def _first_line(text: str) -> str:
    return text.lstrip("\r\n").split("\n", 1)[0]


def _names(
    column: str, named: tuple[npt.NDArray[np.int64], list[str]] | None, series: npt.NDArray[np.int64], inside: list[str]
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """The metric of each line for a column of numbers: a code, and the names."""
    if named is None:
        return series, [short(f"{column}{each}") for each in inside]
    codes, first, second = pairs_of(named[0], series, len(inside))
    end = "" if column.lower() == _VALUE else f".{column}"
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return codes, [short(f"{named[1][one]}{end}{inside[two]}") if named[1][one] else "" for one, two in pairs]


def _times(
    column: pl.Series, rows: npt.NDArray[np.int64], numbers: list[int], refusals: Refusals
) -> npt.NDArray[np.int64]:
    """Epoch milliseconds of a column; messages with something else in it are refused."""
    frame = column.alias("text").to_frame()
    number = pl.when(pl.col("text").str.contains(_NUMBER)).then(pl.col("text").cast(pl.Float64, strict=False))
    size = number.abs()
    scaled = (
        pl.when(size < 1e11).then(number * 1000).when(size < 1e14).then(number)
        .when(size < 1e17).then(number / 1000).otherwise(number / 1_000_000)
    )  # fmt: skip
    found = frame.select(pl.when(number.is_not_null()).then(scaled.round()).otherwise(instants(pl.col("text"))))
    times = found.to_series().to_numpy().copy()
    for at in np.flatnonzero(~(np.abs(times) < 2**53)).tolist():
        text = column[at] or ""
        try:
            times[at] = instant(text)
        except (ValueError, OverflowError):
            times[at] = float("nan")
        if not abs(times[at]) < 2**53:
            refusals.add(int(rows[at]), LINE_INVALID, f"line {numbers[at]}: {text[:60]!r} is no time")
            times[at] = 0
    return times.astype(np.int64)

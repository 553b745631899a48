"""The decoder of CSV: a message is a header and lines, in wide form (a column for each metric) or in long form."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.spec.decoder import Decoded, Decoder, Messages
from pipelines.contracts.tables.columns import VALUE, distinct, lower
from pipelines.contracts.tables.exports import MARK, Header, Headers, is_restart, plain, several
from pipelines.contracts.tables.numbers import read_numbers
from pipelines.contracts.tables.times import ACCEPTED, read_times
from pipelines.formats.counters import COUNTERS, CounterRule
from pipelines.formats.csv_layout import CSV, LONGEST_HEADER, CsvRule, Layout
from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.measurement import TEXT, TextRule
from pipelines.formats.refusals import FORMAT_UNKNOWN, LINE_INVALID, MESSAGE_EMPTY, Refusals, RefusedError
from pipelines.formats.samples import Coded, codes_of, if_same, pairs_of, short, table

_ROW, _LINE = f"{MARK}row", f"{MARK}line"

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass
class _Lines:
    """Lines of messages that have the same header, and their time in the same columns.

    Args:
        time: The places of the columns that make up the time.
        cells: The fields of each line.
        rows: Index of the message of each line, ascending.
        numbers: Number of each line in its message; the header is line 1.
    """

    time: tuple[int, ...]
    cells: list[list[str]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)


@dataclass
class _Table:
    """Lines by the column.

    Args:
        header: The names of the columns.
        layout: What the columns are for.
        columns: The text of each column, without blanks around it.
        rows: Index of the message of each line, ascending, shape (n,).
        numbers: Number of each line in its message, shape (n,).
        begins: The first line of each message.
        values: The numbers of the columns that may hold some, by their places; NaN where there is none.
        texts: Where these columns hold text instead.
        labels: Where these columns hold a label.
        doubtful: Lines with a number whose decimal mark is not clear.
    """

    header: list[str]
    layout: Layout
    columns: list[pl.Series]
    rows: Ints
    numbers: Ints
    begins: Ints
    values: dict[int, npt.NDArray[np.float64]]
    texts: dict[int, Flags]
    labels: dict[int, Flags]
    doubtful: list[int]


_Samples = tuple[Ints, Ints, Ints, Ints, Ints, Ints, npt.NDArray[np.float64]]
"""(message, line, place, time, code of the machine, code of the metric, value) by column; line and place sort them."""
_NO_SAMPLES: _Samples = (*(np.zeros((6, 0), np.int64)), np.zeros(0))


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
        groups: dict[tuple[Header, tuple[int, ...]], _Lines] = {}
        for row, value in enumerate(messages.values.to_pylist()):
            try:
                self._read(row, value or b"", groups)
            except RefusedError as error:
                refusals.add(row, error.code, str(error))
        samples, entities, metrics = [_NO_SAMPLES], {"": 0}, {"": 0}
        for (header, _), lines in groups.items():
            try:
                self._samples(self._table(header, lines), refusals, samples, entities, metrics)
            except RefusedError as error:
                for row in dict.fromkeys(lines.rows):
                    refusals.add(row, error.code, str(error))
        rows, numbers, at, times, entity, metric, values = map(np.concatenate, zip(*samples, strict=True))
        order = np.lexsort((at, numbers, rows))
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
        groups: dict[tuple[Header, tuple[int, ...]], _Lines] = {}
        self._read(0, value, groups)
        if len(groups) > 1:
            return None
        (((header, _), lines),) = groups.items()
        read = self._table(header, lines)
        there = {at: ~np.isnan(read.values[at]) & ~read.labels[at] for at in read.values}
        numbers = sorted((line, at) for at, mask in there.items() for line in np.flatnonzero(mask).tolist())
        kept = {numbers[each] for each in records}
        part = io.StringIO()
        writer = csv.writer(part, delimiter=self.rule.separates(value.decode("utf-8-sig")))
        writer.writerow(read.header)
        for line in sorted({line for line, _ in kept}):
            blank = {at for at in there if not (read.labels[at][line] or (line, at) in kept)}
            writer.writerow("" if at in blank else column[line] for at, column in enumerate(read.columns))
        return if_same(self, value, records, part.getvalue().encode())

    def _read(self, row: int, value: bytes, groups: dict[tuple[Header, tuple[int, ...]], _Lines]) -> None:
        """Adds the lines of a message to those with the same header.

        Raises:
            RefusedError: If it cannot be used.
        """
        try:
            text = value.decode("utf-8-sig").lstrip("\r\n")
        except UnicodeDecodeError:
            raise RefusedError(FORMAT_UNKNOWN, "the message is no text (UTF-8)") from None
        if len(text.split("\n", 1)[0]) > LONGEST_HEADER:
            raise RefusedError(LINE_INVALID, f"the header has more than {LONGEST_HEADER} characters")
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=self.rule.separates(text), strict=True)
        headers, export = Headers(), several(text)
        parts: list[tuple[Header, list[list[str]], list[int]]] = []
        try:
            for line in reader:
                if not line:
                    continue
                if (headers.header is None or export) and not headers.is_line(line):
                    if headers.header is not None:
                        parts.append((_checked(headers.header), [], []))
                elif len(line) == len(parts[-1][0].names):
                    parts[-1][1].append(line)
                    parts[-1][2].append(reader.line_num)
                elif not (export and is_restart(line)):
                    why = f"line {reader.line_num}: {len(line)} fields; the header has {len(parts[-1][0].names)}"
                    raise RefusedError(LINE_INVALID, why)
        except csv.Error as error:
            raise RefusedError(LINE_INVALID, f"line {reader.line_num}: {error}") from None
        if not any(cells for _, cells, _ in parts):
            raise RefusedError(MESSAGE_EMPTY, "no line below the header" if parts else "the message is empty")
        for header, cells, numbers in parts:
            if cells:
                time = self.rule.times(header.names, cells[0])
                lines = groups.setdefault((header, time), _Lines(time))
                lines.cells += cells
                lines.rows += [row] * len(cells)
                lines.numbers += numbers

    def _table(self, header: Header, lines: _Lines) -> _Table:
        """Lines with the same header, by the column.

        Raises:
            RefusedError: If none of them can be used.
        """
        named = distinct(header.names)
        fields = [pl.Series(column, dtype=pl.String).str.strip_chars() for column in zip(*lines.cells, strict=True)]
        frame = pl.DataFrame([column.alias(name) for name, column in zip(named, fields, strict=True)])
        frame = frame.with_columns(pl.Series(_ROW, lines.rows), pl.Series(_LINE, lines.numbers))
        table = plain(frame, header)
        names = [name for name in table.frame.columns if not name.startswith(MARK)]
        time = lines.time if table.frame is frame else self.rule.times(names, table.frame.select(names).row(0))
        layout = self.rule.layout(names, time, self.labels.default)
        columns = [table.frame[name].fill_null("") for name in names]
        rows, numbers = table.frame[_ROW].to_numpy(), table.frame[_LINE].to_numpy()
        begins = np.flatnonzero(np.diff(rows, prepend=-1))
        chosen = {at for at, name in enumerate(lower(names)) if name in self.rule.labels or names[at] in table.labels}
        may = [at for at in layout.rest if at not in chosen]
        read = read_numbers([columns[at] for at in may], begins, self.rule.mark) if may else None
        values = {at: np.full(len(rows), np.nan) for at in layout.rest}
        texts = {at: np.ones(len(rows), bool) for at in layout.rest}
        for at, number, text in zip(may, read.values, read.texts, strict=True) if read else ():
            values[at] = number.fill_null(float("nan")).to_numpy()
            texts[at] = (text.is_not_null() & number.is_null()).to_numpy()
        labels = {at: np.full(len(rows), at in chosen) for at in layout.rest}
        for at in may if not self.rule.labels else ():
            numeric, textual = (np.logical_or.reduceat(each, begins) for each in (~np.isnan(values[at]), texts[at]))
            labels[at] = np.repeat(textual & ~numeric, np.diff(begins, append=len(rows)))
        doubtful = read.doubtful if read else []
        return _Table(names, layout, columns, rows, numbers, begins, values, texts, labels, doubtful)

    def _samples(
        self, read: _Table, refusals: Refusals, samples: list[_Samples], entities: dict[str, int],
        metrics: dict[str, int],
    ) -> None:  # fmt: skip
        """Adds the samples of lines with the same header."""
        rows, layout, labels = read.rows, read.layout, read.labels
        for line in read.doubtful:
            why = f"line {read.numbers[line]}: a number such as 1,234 may be 1234 or 1.234"
            refusals.add(int(rows[line]), LINE_INVALID, f"{why}; accepted: input.csv_decimal = point or comma")
        times = self._times(read, refusals)
        machines = (
            pl.Series([""]).new_from_index(0, len(rows)) if layout.machine is None else read.columns[layout.machine]
        )
        series, instances = self._instances(read.header, read.columns, labels, *codes_of(machines))
        applied = [self.labels.apply(pairs) for pairs in instances]
        entity = np.array([entities.setdefault(each, len(entities)) for each, _ in applied], np.int64)[series]
        named = codes_of(read.columns[layout.metric]) if layout.metric is not None else None
        text_in: dict[int, set[str]] = {}
        for place, at in enumerate(layout.rest):
            name, values = read.header[at].strip(), read.values[at]
            for line in np.flatnonzero(read.texts[at] & ~labels[at]).tolist():
                text_in.setdefault(int(rows[line]), set()).add(f"csv.{name}")
            there = np.flatnonzero(~np.isnan(values) & ~labels[at])
            if not len(there):
                continue
            codes, metric_names = _names(name, named, series, [inside for _, inside in applied])
            numbered = np.array([metrics.setdefault(metric, len(metrics)) for metric in metric_names], np.int64)
            places, metric = there * len(read.header) + place, numbered[codes][there]
            own = (rows[there], read.numbers[there], places, times[there], entity[there], metric, values[there])
            samples.append(own)
        for row, fields in text_in.items():
            refusal = self.text.refusal(fields)
            refusals.parts += [(row, *refusal)] if refusal else []

    def _times(self, read: _Table, refusals: Refusals) -> Ints:
        """Epoch milliseconds of each line; messages with something else in the column of times are refused."""
        text, *clock = (read.columns[at] for at in read.layout.time)
        for column in clock:
            text = text + " " + column
        times = read_times(text, read.begins, self.rule.zone, self.rule.day_first).values
        for line in times.is_null().arg_true().to_list():
            why = f"line {read.numbers[line]}: {text[line][:60]!r} is no time; accepted: {ACCEPTED}"
            refusals.add(int(read.rows[line]), LINE_INVALID, why)
        return times.fill_null(0).to_numpy()

    def _instances(
        self, header: Sequence[str], columns: list[pl.Series], labels: dict[int, Flags],
        machine: Ints, machines: list[str],
    ) -> tuple[Ints, list[tuple[tuple[str, str], ...]]]:  # fmt: skip
        """The number of each line's machine and labels among the distinct ones; and these as names and values."""
        name = self.labels.machine[0] if self.labels.machine else ""
        machine_labels = [((name, text),) if text else () for text in machines]

        def joined(
            before: tuple[Ints, list[tuple[tuple[str, str], ...]]], at: int
        ) -> tuple[Ints, list[tuple[tuple[str, str], ...]]]:
            kept = pl.select(pl.when(pl.Series(labels[at])).then(columns[at]).otherwise(pl.lit(""))).to_series()
            other, texts = codes_of(kept)
            both, first, second = pairs_of(before[0], other, len(texts))
            pairs = zip(first.tolist(), second.tolist(), strict=True)
            return both, [(*before[1][one], (header[at].strip(), texts[two])) for one, two in pairs]

        start: tuple[Ints, list[tuple[tuple[str, str], ...]]] = (machine, list(machine_labels))
        return reduce(joined, [at for at, mask in labels.items() if mask.any()], start)


def _checked(header: Header) -> Header:
    """A header whose columns differ.

    Raises:
        RefusedError: If two have the same name.
    """
    named = [name for name in lower(header.names) if name]
    if len(set(named)) < len(named):
        shown = ", ".join(header.names)[:200]
        raise RefusedError(LINE_INVALID, f"line 1: two columns have the same name: {shown}")
    return header


def _names(
    column: str, named: tuple[Ints, list[str]] | None, series: Ints, inside: list[str]
) -> tuple[Ints, list[str]]:
    """The metric of each line for a column of numbers: a code, and the names."""
    if named is None:
        return series, [short(f"{column}{each}") for each in inside]
    codes, first, second = pairs_of(named[0], series, len(inside))
    end = "" if column.lower() == VALUE else f".{column}"
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return codes, [short(f"{named[1][one]}{end}{inside[two]}") if named[1][one] else "" for one, two in pairs]

"""What the columns of a CSV message are for, by the names in its header and by the settings."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile, islice

from pipelines.contracts.settings.input import InputSettings, names, told_for
from pipelines.contracts.tables.columns import first, lower, time_columns
from pipelines.contracts.tables.exports import is_annotation
from pipelines.contracts.tables.numbers import is_number
from pipelines.contracts.tables.separators import SEPARATORS, recognised
from pipelines.formats.refusals import LINE_INVALID, MACHINE_UNKNOWN, RefusedError

LONGEST_HEADER = 16_384
"""The most characters of a header."""
_MARKS = {"point": ".", "comma": ","}
_ORDERS = {"day-first": True, "month-first": False}


@dataclass(frozen=True)
class Layout:
    """The places of the columns of a header, from 0.

    Args:
        time: The column of times, or those of the date and of the time of day.
        machine: The column that names the machine; ``None``: none does.
        metric: The column that names the metric of a line; ``None``: the columns of numbers do.
        rest: All others that have a name: numbers and labels.
    """

    time: tuple[int, ...]
    machine: int | None
    metric: int | None
    rest: tuple[int, ...]


@dataclass(frozen=True)
class CsvRule:
    """Which columns are what, and how numbers and times are written.

    Args:
        time: Names of columns that may hold the time, in lower case; the first one in the header does.
        machine: Names of columns that may name the machine.
        metric: Names of columns that may name the metric of a line.
        labels: Names of columns that tell one series from another; empty: those of a message that hold only text.
        separator: What stands between two columns; empty: recognised, message by message.
        mark: The decimal mark; ``None``: the one that more numbers of a message prove.
        zone: The time zone of times that name none.
        day_first: Whether in 01/11/2026 the day comes first; ``None``: as a message shows.
    """

    time: tuple[str, ...]
    machine: tuple[str, ...]
    metric: tuple[str, ...]
    labels: frozenset[str]
    separator: str
    mark: str | None
    zone: str = "UTC"
    day_first: bool | None = None

    @classmethod
    def of(cls, settings: InputSettings, topic: str = "") -> CsvRule:
        """The rule that the settings describe, for a topic without the namespace."""
        return cls(
            names(settings.csv_time.lower()),
            names(settings.csv_machine.lower()),
            names(settings.csv_metric.lower()),
            frozenset(names(settings.csv_labels.lower())),
            SEPARATORS.get(settings.csv_separator, ""),
            _MARKS.get(settings.csv_decimal),
            told_for(settings.timezone, topic) or "UTC",
            _ORDERS.get(settings.csv_dates),
        )

    def times(self, header: Sequence[str], line: Sequence[str]) -> tuple[int, ...]:
        """The places of the columns that make up the time of a line; none if there is none."""
        at = first(header, self.time)
        return () if at is None else time_columns(header, line, at, self.time)

    def layout(self, header: Sequence[str], time: tuple[int, ...], machine: str = "") -> Layout:
        """The places of the columns.

        Args:
            header: The names of the columns.
            time: The places of the columns that make up the time.
            machine: The machine of lines that name none; empty: they are refused.

        Raises:
            RefusedError: If none holds the time, or none names the machine.

        >>> CSV.layout(("Time", "host", "cpu", "mem"), (0,))
        Layout(time=(0,), machine=1, metric=None, rest=(2, 3))
        """
        shown = ", ".join(header)[:200]
        if not time:
            why = f"line 1: no column holds the time, see input.csv_time; columns: {shown}"
            raise RefusedError(LINE_INVALID, why)
        named, metric = (first(header, wanted) for wanted in (self.machine, self.metric))
        if named is None and not machine:
            why = f"no column names the machine, see input.csv_machine and input.default_machine; columns: {shown}"
            raise RefusedError(MACHINE_UNKNOWN, why)
        rest = (at for at, name in enumerate(lower(header)) if name and at not in (*time, named, metric))
        return Layout(time, named, metric, tuple(rest))

    def separates(self, text: str) -> str:
        """The separator of a message, by its first lines.

        >>> CSV.separates("time;host;cpu, percent")
        ';'
        """
        lines = (line for line in text.split("\n", 8)[:8] if line.strip() and not is_annotation(line))
        return self.separator or recognised(list(islice(lines, 2)))


CSV = CsvRule.of(InputSettings())
"""The rule of the default settings."""


def looks_like_csv(value: bytes, rule: CsvRule = CSV) -> bool:
    r"""Whether a message begins with a line of names and a line of as many fields, one of which is a number.

    >>> looks_like_csv(b"time,host,cpu\n1795220820,a,0.5\n"), looks_like_csv(b"hello, world\nbye, all")
    (True, False)
    """
    try:
        text = value[: 2 * LONGEST_HEADER].removeprefix(b"\xef\xbb\xbf").decode(errors="replace")
        lines = dropwhile(is_annotation, (line.rstrip("\r") for line in text.split("\n", 8)[:8]))
        first_two = list(islice(lines, 2))
        header, fields = csv.reader(first_two, delimiter=rule.separates("\n".join(first_two)))
    except (csv.Error, ValueError):
        return False
    return len(header) == len(fields) > 1 and not any(map(is_number, header)) and any(map(is_number, fields))

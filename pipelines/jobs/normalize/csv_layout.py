"""What the columns of a CSV message are for: told by the names in its header and by the settings."""

from __future__ import annotations

import csv
from collections.abc import Collection
from dataclasses import dataclass

from pipelines.contracts.settings.input import InputSettings, names
from pipelines.jobs.normalize.refusals import LINE_INVALID, MACHINE_UNKNOWN, RefusedError

_SEPARATORS = {"auto": "", "comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
LONGEST_HEADER = 16_384
"""The most characters of a header."""


@dataclass(frozen=True)
class Layout:
    """The places of the columns of a header, from 0.

    Args:
        time: The column of times.
        machine: The column that names the machine.
        metric: The column that names the metric of a line; ``None``: the columns of numbers do.
        rest: All others that have a name: numbers and labels.
    """

    time: int
    machine: int
    metric: int | None
    rest: tuple[int, ...]


@dataclass(frozen=True)
class CsvRule:
    """Which columns are what.

    Args:
        time: Names of columns that may hold the time, in lower case; the first one in the header does.
        machine: Names of columns that may name the machine.
        metric: Names of columns that may name the metric of a line.
        labels: Names of columns that tell one series from another; empty: those of a message that hold only text.
        separator: What stands between two columns; empty: the one that the header has most often.
        comma: Whether the decimal mark is a comma.
    """

    time: tuple[str, ...]
    machine: tuple[str, ...]
    metric: tuple[str, ...]
    labels: frozenset[str]
    separator: str
    comma: bool

    @classmethod
    def of(cls, settings: InputSettings) -> CsvRule:
        """The rule that the settings describe."""
        labels = frozenset(names(settings.csv_labels.lower()))
        time, machine, metric = (
            names(each.lower()) for each in (settings.csv_time, settings.csv_machine, settings.csv_metric)
        )
        return cls(time, machine, metric, labels, _SEPARATORS[settings.csv_separator], settings.csv_decimal == "comma")

    def layout(self, header: tuple[str, ...]) -> Layout:
        """The places of the columns.

        Raises:
            RefusedError: If two columns have the same name, or none holds the time, or none names the machine.

        >>> CSV.layout(("Time", "host", "cpu", "mem"))
        Layout(time=0, machine=1, metric=None, rest=(2, 3))
        """
        lower = [name.strip().lower() for name in header]
        named = [name for name in lower if name]
        if len(set(named)) < len(named):
            raise RefusedError(LINE_INVALID, f"line 1: two columns have the same name: {_shown(header)}")
        time, machine, metric = (_first(lower, wanted) for wanted in (self.time, self.machine, self.metric))
        if time is None:
            why = f"line 1: no column holds the time, see input.csv_time; columns: {_shown(header)}"
            raise RefusedError(LINE_INVALID, why)
        if machine is None:
            why = f"no column names the machine, see input.csv_machine; columns: {_shown(header)}"
            raise RefusedError(MACHINE_UNKNOWN, why)
        rest = (at for at, name in enumerate(lower) if name and at not in (time, machine, metric))
        return Layout(time, machine, metric, tuple(rest))

    def separates(self, header: str) -> str:
        """The separator of a message with this first line.

        >>> CSV.separates("time;host;cpu, percent")
        ';'
        """
        return self.separator or max(filter(None, _SEPARATORS.values()), key=header.count)


CSV = CsvRule.of(InputSettings())
"""The rule of the default settings."""


def looks_like_csv(value: bytes, rule: CsvRule = CSV) -> bool:
    r"""Whether a message begins with a line of names and a line of as many fields, one of which is a number.

    >>> looks_like_csv(b"time,host,cpu\n1795220820,a,0.5\n"), looks_like_csv(b"hello, world\nbye, all")
    (True, False)
    """
    try:
        first, second = value[: 2 * LONGEST_HEADER].removeprefix(b"\xef\xbb\xbf").split(b"\n", 2)[:2]
        lines = [first.decode().rstrip("\r"), second.decode().rstrip("\r")]
    except ValueError:
        return False
    separator = rule.separates(lines[0])
    try:
        header, fields = csv.reader(lines, delimiter=separator)
    except (csv.Error, ValueError):
        return False
    return len(header) == len(fields) > 1 and not any(map(_is_number, header)) and any(map(_is_number, fields))


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _first(names_there: list[str], wanted: Collection[str]) -> int | None:
    return next((names_there.index(name) for name in wanted if name in names_there), None)


def _shown(header: tuple[str, ...]) -> str:
    return ", ".join(header)[:200]

"""Which column of a header is for what: by the names that are usual, or that a user gives."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

TIMES = ("time", "timestamp", "@timestamp", "_time", "datetime", "date", "ts", "epoch")
"""Names of columns that may hold the time, in lower case; the first one that is there does."""
MACHINES = ("entity", "host", "host.name", "hostname", "machine", "instance", "server")
"""Names of columns that may name the machine of a line."""
METRICS = ("metric", "metric.name", "metric_name", "measurement")
"""Names of columns that may name the metric of a line."""
VALUE = "value"
"""The name of a column of values that adds nothing to the name of the metric of its line."""

_CLOCK = re.compile(
    r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?\s*(?:[AaPp]\.?[Mm]\.?)?\s*(?:Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})?"
)
_PER = re.compile(r" per (?:[0-9]+ )?(?:millisecond|second|minute|hour|day|week|month|year)s?$")
"""What Kibana adds to the name of a column of times of which each stands for an interval."""
_DAY = re.compile(r"[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}|[A-Z][a-z]{2,8} [0-9]{1,2}, [0-9]{4}")


def lower(header: Sequence[str]) -> list[str]:
    """The names of a header as they are compared."""
    return [name.strip().lower() for name in header]


def first(header: Sequence[str], usual: Collection[str]) -> int | None:
    """The place of the first of some names, in lower case, that a header has.

    >>> first(["Host", "Time"], TIMES), first(["Host"], TIMES), first(["@timestamp per 5 minutes"], TIMES)
    (1, None, 0)
    """
    plain = lower(header)
    spellings = (plain, [_PER.sub("", name) for name in plain])
    return next((names.index(name) for names in spellings for name in usual if name in names), None)


def time_columns(header: Sequence[str], line: Sequence[str | None], at: int, usual: Collection[str]) -> tuple[int, ...]:
    """The places of the columns that make up the time: one, or that of the date and that of the time of day.

    Args:
        header: The names of the columns.
        line: A line below it.
        at: The place of the column of times.
        usual: The names of columns that may hold the time.

    >>> time_columns(["Date", "Time", "cpu"], ["11/20/2026", "12:00 AM", "1"], 1, TIMES)
    (0, 1)
    """
    names = lower(header)
    others = [place for place, name in enumerate(names) if name in (*usual, "day") and place != at]
    for own, other, swapped in ((_CLOCK, _DAY, True), (_DAY, _CLOCK, False)):
        if own.fullmatch((line[at] or "").strip()):
            for place in others:
                if other.fullmatch((line[place] or "").strip()):
                    return (place, at) if swapped else (at, place)
    return (at,)


def distinct(header: Sequence[str]) -> list[str]:
    """Names of columns, all different: a second ``cpu`` is ``cpu_2``; columns without a name are spaces.

    >>> distinct(["", "cpu ", "cpu"])
    [' ', 'cpu', 'cpu_2']
    """
    names: dict[str, None] = {}
    for number, name in enumerate(header, 1):
        begin = name.strip().replace("\0", "")
        unique, count = begin or " " * number, 2
        while unique in names:
            unique, count = f"{begin}_{count}", count + 1
        names[unique] = None
    return list(names)

"""What a panel asks of Elasticsearch: conditions, buckets and measures, or single documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Operation = Literal["count", "max", "min", "average", "median", "unique", "newest"]
Format = Literal["whole", "score", "value", "time", "text"]


@dataclass(frozen=True)
class Among:
    """True if a field has one of some values; ``no``: if it has none of them."""

    field: str
    values: tuple[str, ...]
    no: bool = False


@dataclass(frozen=True)
class Present:
    """True if a field has a value."""

    field: str


@dataclass(frozen=True)
class AtLeast:
    """True if a number is at least a value."""

    field: str
    value: float


@dataclass(frozen=True)
class InIndices:
    """True if the document is in an index whose name matches one of some patterns with a ``*`` at the end."""

    patterns: tuple[str, ...]


Condition = Among | Present | AtLeast | InIndices


@dataclass(frozen=True)
class Over:
    """One bucket for each interval of time; the reader's time range decides how long an interval is.

    Args:
        field: The field with the time.
        each_window: Whether every window has a bucket of its own, as long as the time range is short enough for it.
    """

    field: str = "@timestamp"
    each_window: bool = False


@dataclass(frozen=True)
class Top:
    """One bucket for each of the values of a field.

    Args:
        field: The field, which is no prose.
        size: The most values that are shown.
        by: Number of the measure that says which values are shown; ``None``: the first ones of the alphabet.
        title: Title of the column.
    """

    field: str
    size: int
    by: int | None = 0
    title: str = ""


@dataclass(frozen=True)
class Group:
    """A bucket of a name for the documents for which all conditions are true."""

    name: str
    where: tuple[Condition, ...]


@dataclass(frozen=True)
class Groups:
    """One bucket for each of some groups."""

    groups: tuple[Group, ...]
    title: str = ""


@dataclass(frozen=True)
class Versions:
    """One bucket for each version of the chain that the site compares."""

    title: str = "version"


Bucket = Over | Top | Groups | Versions


@dataclass(frozen=True)
class Measure:
    """A number, or a newest value, of each bucket.

    Args:
        operation: How it is computed. ``newest``: the value in the document with the highest ``@timestamp``.
        field: What it is computed from; empty for ``count``.
        title: Title of the line or column.
        format: How it is written.
        colour: Colour of the line, as ``#rrggbb``; empty: any.
    """

    operation: Operation
    field: str = ""
    title: str = ""
    format: Format = "whole"
    colour: str = ""


@dataclass(frozen=True)
class Summary:
    """Measures in buckets within buckets, of the documents for which all conditions are true."""

    measures: tuple[Measure, ...]
    buckets: tuple[Bucket, ...] = ()
    where: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Documents:
    """The newest documents for which all conditions are true, with some of their fields."""

    columns: tuple[str, ...]
    where: tuple[Condition, ...] = ()

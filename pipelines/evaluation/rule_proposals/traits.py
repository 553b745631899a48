"""What false alarms may have in common: machines, metrics and tags, times of the week, direction and size of a change.

Each is a condition that a rule can have. All of them are taken from the false alarms themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import floor, inf, log10

import numpy as np
import polars as pl

from pipelines.contracts.globs import LONGEST, matches
from pipelines.contracts.records import Rule
from pipelines.contracts.week_times import DAYS, are_within
from pipelines.evaluation.rule_proposals.rows import FALSE, Cover, Flags, Rows
from pipelines.jobs.detectors.rules import withheld

LEAST = 3
"""So many false alarms at least have something in common."""

_MOST = 200
"""So many conditions of one kind are tried at most: those of the most false alarms."""

_NAMES = 5_000
"""So many names of false alarms are cut into globs at most; the work is bounded."""

_LENGTHS = (1, 2, 3, 4, 6, 8, 12)
_LENGTHS_OF_DAYS = (1, 2, 3, 4)
_SPANS_OF_DAYS = (*DAYS, "mon-fri", "sat-sun")
_SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0)
_HOUR, _MONDAY = 3_600_000, 4 * 86_400_000  # 1970-01-05
_PIECES = re.compile(r"[^\W\d_]+|\d+|[\W_]")


@dataclass(frozen=True)
class Trait:
    """A condition.

    Attributes:
        fields: The fields of a rule that say it; without any it holds always.
        cover: What it holds for.
        width: How much it holds for beyond these alarms; the narrower of two conditions is the safer one.
        chance: How likely it is that it holds for an alarm by chance; 1: that is not reckoned.
        common: Whether it is looked for. A limit on the size is not: some limit lies above any few values, so it is
            only taken if it spares other alarms.
    """

    fields: Mapping[str, object]
    cover: Cover
    width: float
    chance: float = 1.0
    common: bool = True

    @property
    def order(self) -> tuple[float, int, str]:
        """The narrower first, then the one with more literal characters."""
        text = str(self.fields)
        return self.width, text.count("*") - len(text), text


@dataclass(frozen=True)
class Traits:
    """Conditions of each kind, those of the most false alarms first; each kind has the one that holds always."""

    machines: Sequence[Trait]
    metrics: Sequence[Trait]
    times: Sequence[Trait]
    effects: Sequence[Trait]


def traits_of(rows: Rows, timezone: str) -> Traits:
    """The conditions that hold for some false alarms.

    Args:
        rows: The alarms.
        timezone: IANA name of the time zone in which times of the week are counted.
    """
    false = rows.windows.filter(pl.col("label") == FALSE)
    names = rows.windows
    machines: list[Found] = [
        ({"entity": glob}, matches(glob, names["entity"]), None, 1.0) for glob in _globs(false["entity"], _of_machine)
    ]
    metrics: list[Found] = [
        ({"metric": glob}, matches(glob, names["metric"]), None, 1.0) for glob in _globs(false["metric"], _of_metric)
    ]
    always: Found = ({}, np.ones(names.height, np.bool_), inf, 1.0)
    return Traits(
        _chosen(rows, [*machines, always]),
        _chosen(rows, [*metrics, always]),
        _chosen(rows, [*_times(rows, timezone), always]),
        [*_chosen(rows, [*_directions(rows), always]), *_chosen(rows, _sizes(rows, false), common=False)],
    )


Found = tuple[dict[str, object], Flags, float | None, float]
"""Fields of a rule, the windows for which they hold, the width if it is not the number of windows, and the chance."""


def _chosen(rows: Rows, found: Iterable[Found], common: bool = True) -> list[Trait]:
    """Of conditions that hold for the same alarms the narrowest; those that hold for enough false alarms."""
    kept: dict[Cover | None, Trait] = {}
    for fields, flags, width, chance in found:
        cover = rows.cover(flags)
        if cover.false.bit_count() < LEAST:
            continue
        trait = Trait(fields, cover, float(flags.sum()) if width is None else width, chance, common)
        key = cover if fields else None
        if key not in kept or trait.order < kept[key].order:
            kept[key] = trait
    return sorted(kept.values(), key=lambda it: (-it.cover.false.bit_count(), it.order))[:_MOST]


def _globs(names: pl.Series, cut: Callable[[str], Iterable[str]]) -> list[str]:
    """The globs of names, without those that few of the rows match."""
    counted = names.value_counts().sort("count", names.name, descending=[True, False]).head(_NAMES)
    numbers: dict[str, int] = {}
    for name, count in counted.iter_rows():
        for glob in cut(name):
            numbers[glob] = numbers.get(glob, 0) + count
    usable = [(-count, glob) for glob, count in numbers.items() if count >= LEAST and 0 < len(glob) <= LONGEST]
    return [glob for _, glob in sorted(usable)][: 5 * _MOST]


def _of_machine(name: str) -> Iterator[str]:
    """The globs that one name gives: the name, its beginnings and its ends.

    >>> list(_of_machine("lab-12"))
    ['lab-12', 'lab*', 'lab-*', '*-12', '*12']
    """
    pieces = _PIECES.findall(_literal(name))
    yield "".join(pieces)
    for at in range(1, len(pieces)):
        yield "".join(pieces[:at]) + "*"
    for at in range(1, len(pieces)):
        yield "*" + "".join(pieces[at:])


def _of_metric(name: str) -> Iterator[str]:
    """The globs that one name gives: the name, beginnings of it, and each of its tags, alone and with the name.

    >>> list(_of_metric("disk.used{dev=sda,path=/}"))
    ['disk.used{dev=sda,path=/}', 'disk*', 'disk.*', 'disk.used*', '*{dev=sda,*', 'disk.used{dev=sda,*', '*,path=/}', 'disk.used{*,path=/}']
    """  # noqa: E501
    text = _literal(name)
    base, brace, tags = text.partition("{")
    yield text
    pieces = _PIECES.findall(base)
    for at in range(1, len(pieces) + bool(brace)):
        yield "".join(pieces[:at]) + "*"
    own = tags.removesuffix("}").split(",") if brace else []
    for at, tag in enumerate(own if len(own) > 1 else ()):
        end = "}" if at == len(own) - 1 else ",*"
        yield ("*{" if at == 0 else "*,") + tag + end
        yield base + ("{" if at == 0 else "{*,") + tag + end
    if len(own) == 1:
        yield "*{" + tags


def _literal(name: str) -> str:
    """A name as a glob; there is no other way to say a star."""
    return name.replace("*", "?")


def _times(rows: Rows, timezone: str) -> Iterator[Found]:
    """Hours of the day, days of the week, and hours of such days."""
    local = rows.windows["window_start"].cast(pl.Datetime("ms", "UTC")).dt.convert_time_zone(timezone).dt
    hour = (local.weekday().cast(pl.Int64) - 1) * 24 + local.hour().cast(pl.Int64)
    week = pl.Series([_MONDAY + at * _HOUR for at in range(168)])
    for text in _spans():
        held = are_within(text, "UTC", week)
        hours = int(held.sum())
        zone = {} if timezone == "UTC" else {"timezone": timezone}
        yield {"times": text, **zone}, held[hour.to_numpy()], float(hours), hours / 168


def _spans() -> Iterator[str]:
    for length, begin in product(_LENGTHS, range(24)):
        yield f"{begin:02}:00-{(begin + length) % 24:02}:00"
    yield from _SPANS_OF_DAYS
    for days, length, begin in product(_SPANS_OF_DAYS, _LENGTHS_OF_DAYS, range(24)):
        yield f"{days} {begin:02}:00-{(begin + length) % 24:02}:00"


def _directions(rows: Rows) -> Iterator[Found]:
    for only in ("up", "down"):
        yield {"only": only}, _withheld(rows, only=only), None, 0.5


def _sizes(rows: Rows, false: pl.DataFrame) -> Iterator[Found]:
    """Changes that are small, by themselves or as a share of what is typical, and values that are small."""
    for share in _SHARES:
        yield {"min_change_share": share}, _withheld(rows, min_change_share=share), None, 1.0
    for bound in _bounds((false["actual"] - false["typical"]).abs()):
        yield {"min_change": bound}, _withheld(rows, min_change=bound), None, 1.0
    value = rows.windows["actual"].fill_null(float("nan")).to_numpy()
    for bound in _bounds(false["actual"]):
        yield {"skip_result": True, "below": bound}, value < bound, None, 1.0


def _withheld(rows: Rows, **fields: object) -> Flags:
    actual, typical = (rows.windows[name].fill_null(float("nan")).to_numpy() for name in ("actual", "typical"))
    return withheld(Rule(id="tried", time=0, **fields), actual, typical)


def _bounds(values: pl.Series) -> list[float]:
    """Round numbers above some values: 1, 2 and 5, and ten times these, and so on."""
    known = values.drop_nulls().unique().to_list()
    return sorted({_above(value) for value in known if 0 < value < 1e300})[-_MOST:]


def _above(value: float) -> float:
    """The next round number above a value.

    >>> _above(0.03), _above(4.9), _above(5.0), _above(999.0)
    (0.05, 5.0, 10.0, 1000.0)
    """
    power = floor(log10(value))
    return next(bound for step in (1, 2, 5, 10, 20) if (bound := float(f"{step}e{power}")) > value)

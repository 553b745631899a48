"""Compares what was said with what was computed again: every field of the incident and of its verdicts, bit for bit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import isclose
from typing import Any, NamedTuple

from engine.spec.duration import iso
from pipelines.contracts.records import Incident
from pipelines.contracts.records.novelty import QUIET_KINDS
from pipelines.proof.account import Key

HOW_OFTEN = frozenset({"revision", "event.ingested"})
"""Fields that tell how often and when something was written, which depends on the micro-batches, and not what is so."""

EARLIER = frozenset(
    {"incident.state", "updated", "message", "candidates", "unknown_share", "log_changes", "reopenings"}
)
"""Fields of an incident in which others, and logs, of up to a day before it have a part."""

_ROUNDING = 1e-9
"""Relative difference of two numbers that the order of additions explains."""
_ABSENT = "nothing"


class Row(NamedTuple):
    """One line of what was compared.

    Attributes:
        what: The incident, or a series.
        compared: How many fields or verdicts were compared.
        equal: How many of them are equal, bit for bit.
        rounded: How many others differ by the rounding of sums only.
    """

    what: str
    compared: int
    equal: int
    rounded: int


class Difference(NamedTuple):
    """A field that differs.

    Attributes:
        what: The incident, or the verdict.
        field: Name of the field; empty if one side has nothing at all.
        said: What was said.
        computed: What was computed again.
    """

    what: str
    field: str
    said: Any
    computed: Any

    def __str__(self) -> str:
        return f"{self.what}{self.field and f', {self.field}'}: said {self.said!r}, computed again {self.computed!r}"


@dataclass(frozen=True)
class Comparison:
    """The result.

    Attributes:
        rows: What was compared.
        differences: What differs, the incident first, then the verdicts by time.
    """

    rows: tuple[Row, ...]
    differences: tuple[Difference, ...]

    @property
    def proven(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def compare(
    said: tuple[Incident, Mapping[Key, Mapping[str, Any]]],
    computed: tuple[Incident | None, Mapping[Key, Mapping[str, Any]]],
    left_out: Collection[str] = (),
    *,
    rounded: bool = False,
) -> Comparison:
    """Compares an incident and its verdicts.

    An ordinary verdict that only one side has is not compared: which of them are stored beside an incident depends on
    corrections (decision 0017). News that only one side has differs.

    Args:
        said: The incident and its verdicts as they were written.
        computed: The same as computed again.
        left_out: Fields of the incident that are not compared.
        rounded: True if numbers may differ by the rounding of sums, as windows were computed anew.
    """
    incident, verdicts = said
    again, verdicts_again = computed
    name = f"incident {incident.id}"
    row, differences = _fields(name, _plain(incident), _plain(again) if again else None, left_out, rounded)
    rows, found = [row], list(differences)
    by_series: dict[tuple[str, str], list[Row]] = {}
    for key in sorted(verdicts.keys() | verdicts_again.keys(), key=lambda each: (each[3], each)):
        one, other = verdicts.get(key), verdicts_again.get(key)
        if (one is None or other is None) and (one or other or {}).get("kind") in QUIET_KINDS:
            continue
        what = f"verdict on {key[1]} of {key[0]} at {iso(key[3])}"
        row, differences = _fields(what, one, other, (), rounded)
        by_series.setdefault(key[:2], []).append(row)
        found += differences
    for (entity, metric), its in sorted(by_series.items()):
        equal = sum(each.compared == each.equal for each in its)
        close = sum(each.compared == each.equal + each.rounded for each in its) - equal
        rows.append(Row(f"{metric} of {entity}", len(its), equal, close))
    return Comparison(tuple(rows), tuple(found))


def _plain(incident: Incident) -> dict[str, Any]:
    return incident.model_dump(mode="json", by_alias=True, exclude_none=True)


def _fields(
    what: str,
    one: Mapping[str, Any] | None,
    other: Mapping[str, Any] | None,
    left_out: Collection[str],
    rounded: bool,
) -> tuple[Row, list[Difference]]:
    if one is None or other is None:
        present = [_ABSENT if each is None else each.get("kind") or each.get("message") for each in (one, other)]
        return Row(what, 1, 0, 0), [Difference(what, "", *present)]
    names = sorted((one.keys() | other.keys()) - HOW_OFTEN - set(left_out))
    unlike = [name for name in names if one.get(name) != other.get(name)]
    close = [name for name in unlike if rounded and _close(one.get(name), other.get(name))]
    differences = [Difference(what, name, one.get(name), other.get(name)) for name in unlike if name not in close]
    return Row(what, len(names), len(names) - len(unlike), len(close)), differences


def _close(one: Any, other: Any) -> bool:
    """Whether two values differ by rounding only, in each of their parts."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_close(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, float) and isinstance(other, int | float):
        return isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    return bool(one == other)

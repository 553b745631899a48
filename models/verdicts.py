"""What a model says of one step of n series."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.numbers.arrays import Array, Ints
from models.records import Table


class Kind(StrEnum):
    """What kind of news a verdict is; its code in arrays is its place here."""

    NORMAL = "normal"
    ANOMALY = "anomaly"
    LEARNING = "learning"
    STATE_CHANGE = "state_change"
    NEW_NORMAL = "new_normal"
    ABSENCE = "absence"
    RECOVERED = "recovered"

    @property
    def code(self) -> int:
        """The number that stands for the kind in `Verdicts.kind`."""
        return list(Kind).index(self)


@dataclass(frozen=True)
class Verdicts:
    """One verdict per row, in the order of the rows asked for; every array has the shape (n,).

    Args:
        record_score: Novelty, 0 to 100.
        probability: Chance of evidence at least so strong, were all as before; in (0, 1].
        typical: Median of what was expected; NaN only if nothing was ever seen of the series.
        lower: Lower end of the band in which the value was expected; NaN until two values of the series were learned.
        upper: Upper end of it.
        kind: Codes of `Kind`, int64.
        since: Onset of the anomaly, epoch milliseconds; -1 if there is none.
        evidence: Each channel by name, in nats (-ln p).
    """

    record_score: Array
    probability: Array
    typical: Array
    lower: Array
    upper: Array
    kind: Ints
    since: Ints
    evidence: dict[str, Array]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays by name; those of a group, such as the channels, as ``evidence.<name>``."""
        every = {f.name: getattr(self, f.name) for f in fields(self)}
        groups = {name: value for name, value in every.items() if isinstance(value, dict)}
        named = {f"{group}.{name}": array for group, arrays in groups.items() for name, array in arrays.items()}
        return {name: value for name, value in every.items() if name not in groups} | named


def without_band(records: Table) -> tuple[Array, Array, Array, Array, Array, Ints, Ints]:
    """The first seven fields of `Verdicts` of records without a typical value and a band, such as those of machines.

    Args:
        records: Records with the fields ``record_score``, ``probability``, ``kind`` and ``since``, shape (n,).
    """
    unknown = np.full(len(records), np.nan)
    return records["record_score"], records["probability"], unknown, unknown, unknown, records["kind"], records["since"]


@dataclass(frozen=True)
class SeriesVerdicts(Verdicts):
    """Verdicts of a mixture of experts.

    As `Verdicts`.

    Args:
        experts: How much each expert, or family in place of all of them, was believed, by name; they add up to 1.
        expected: Where each of them expected the value, by name.
        onset: Since when values have been unusual, epoch milliseconds, whatever the kind; -1: they are not.
        context: What words on it rest on beside these, by name, see `models.series.past` and `models.regimes`; NaN
            where it is no news.
        incident: Codes of `models.series.course.Course`: whether an incident that was announced goes on or ends here.
        turned: Codes of `Kind`: what the incident that began at ``since`` turns out to be with this value; -1: none.
        state_score: How far the value lies from the last accepted normal while an incident is open, reported or not, 0
            to 100; 0: none is.
        state: The same as evidence, in nats, see `models.regimes.distance`.
        lent: Evidence that the value was lent as the same was news before, in nats, see `models.regimes.again`.
    """

    experts: dict[str, Array]
    expected: dict[str, Array]
    onset: Ints
    context: dict[str, Array]
    incident: Ints
    turned: Ints
    state_score: Array
    state: Array
    lent: Array

    def part(self, rows: slice) -> SeriesVerdicts:
        """Some of the verdicts."""
        every: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        for name, value in every.items():
            grouped = isinstance(value, dict)
            every[name] = {key: array[rows] for key, array in value.items()} if grouped else value[rows]
        return SeriesVerdicts(**every)


class Standing(NamedTuple):
    """How a series stands after each of n values, once what can be learned of it has been.

    Args:
        onset: Since when the incident that is open has lasted, reported or not, epoch milliseconds; -1: none is open;
            shape (n,).
        values: How many values it has learned from, shape (n,).
        regime: The slot of its present regime, shape (n,).
        levels: The level of each regime that it is known in, NaN for empty slots, shape (n, slots).
    """

    onset: Ints
    values: Array
    regime: Ints
    levels: Array

    def part(self, rows: slice) -> Standing:
        """Of some of the values."""
        return Standing(*(column[rows] for column in self))  # type: ignore[arg-type]

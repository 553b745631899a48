"""Interval join: pairs of two streams with the same key whose times lie within bounds of each other."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from engine.operators.two_sided import How, TwoSided, pair_columns
from engine.spec.choice import check_choice
from engine.spec.duration import DurationField
from engine.spec.errors import NewnormalError


@dataclass(frozen=True)
class IntervalJoin(TwoSided):
    """Pairs with left time + lower <= right time <= left time + upper. The time of a pair is the later of the two.

    Args:
        lower: Lower bound, a duration; it may begin with a minus.
        upper: Upper bound, likewise.
        how: ``left``: a left record without a pair is a result too, with nulls on the right, once no pair can come any
            more. Its time is the end of the interval, or its own time if that is later.

    Raises:
        NewnormalError: ``INTERVAL_INVALID`` if the upper bound lies before the lower one; ``CHOICE_INVALID``.
    """

    lower: DurationField = DurationField("lower", signed=True)
    upper: DurationField = DurationField("upper", signed=True)
    how: How = "inner"

    def results(self, columns: pa.Schema) -> pa.Schema | None:
        return pa.schema([columns.field(self.time), *pair_columns(self, self.key, columns)])

    def __post_init__(self) -> None:
        check_choice(self.how, How, "IntervalJoin(how)")
        if self.upper < self.lower:
            what = f"upper {self.upper} lies before lower {self.lower}"
            raise NewnormalError("INTERVAL_INVALID", what, "interval join", 'e.g. lower="-5s", upper="5s"')

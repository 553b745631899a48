"""Temporal join: each record is enriched by the version of its key that was valid at the record's event time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from engine.operators.two_sided import How, TwoSided, pair_columns
from engine.spec.choice import check_choice
from engine.spec.duration import DurationField
from engine.spec.expressions import expression
from engine.spec.steps import Where, after


@dataclass(frozen=True)
class TemporalJoin(TwoSided):
    """Pairs each record of the left stream with the version of its key in the right stream that is valid at its time.

    The right stream is a table that changes slowly, such as a compacted topic: a version is valid from its own time
    (inclusive) until the time of the next version of its key. The result has the time of the record. This is the join
    of SQL with ``FOR SYSTEM_TIME AS OF``.

    What the table was before the watermark never changes. So a version that comes behind the watermark is valid from
    the watermark on, as in a compacted topic the last message of a key counts; no version is refused. A record that
    comes late by no more than ``allowed_lateness`` is paired with the version of its own time, later ones are too late.

    Args:
        how: ``left``: a record without a valid version is a result too, with nulls.
        deleted: SQL condition on the columns of a version: one for which it is true deletes its key from its time on.
            ``None``: a version deletes if all its columns but key and time are null, as those of a tombstone are.
        allowed_lateness: How far behind the watermark a record may lie. Versions are kept for so long after the
            watermark has passed their successors.
    """

    free: ClassVar[tuple[str, ...]] = (*TwoSided.free, "allowed_lateness")

    how: How = "inner"
    deleted: str | None = None
    allowed_lateness: DurationField = DurationField("allowed_lateness", "0s")

    @property
    def deletion(self) -> str:
        """The SQL condition under which a version deletes its key."""
        if self.deleted is not None:
            return self.deleted
        values = [name for name in self.right if name not in (*self.key, self.time)]
        quoted = (name.replace('"', '""') for name in values)
        return " AND ".join(f'"{name}" IS NULL' for name in quoted) or "1 = 0"

    def late_forms(self, inputs: Sequence[pa.Schema]) -> Sequence[pa.Schema]:
        return super().late_forms(inputs[: self.split])

    def results(self, columns: pa.Schema) -> pa.Schema | None:
        pair = pa.schema([columns.field(self.time), *pair_columns(self, self.key, columns)])
        if self.deleted is not None:
            version = pa.schema([columns.field(name) for name in self.right])
            after([Where(self.deleted)], version, "TemporalJoin(deleted)")
        return pair

    def __post_init__(self) -> None:
        check_choice(self.how, How, "TemporalJoin(how)")
        if self.deleted is not None:
            expression(self.deleted, "TemporalJoin(deleted)")

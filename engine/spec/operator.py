"""Keyed, stateful logic: what a job declares, the vectorised logic built from it, and its specification."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from engine.spec.duration import NEVER

Row = dict[str, Any]
Key = tuple[Any, ...]
SIDE = "__side"
"""Column of results that names the side output which a result goes to; none or null: the main output."""


@dataclass(frozen=True)
class Progress:
    """How far a shard has come in event time and in processing time, before and after the batch at hand.

    Attributes:
        before: The watermark before the batch, epoch milliseconds.
        now: The watermark after it.
        clock_before: Processing time before the batch: the greatest arrival time seen, epoch milliseconds.
        clock: Processing time with the batch; heartbeats move it too.
    """

    before: int
    now: int
    clock_before: int = NEVER
    clock: int = NEVER


class Operator(ABC):  # noqa: B024
    """What a job declares: a value that says what is computed, not how.

    What computes it is found by its type: `engine.vectorized.build` gives the logic, `engine.reference.reference` the
    meaning in plain Python, `engine.explain.describe` the words.
    """

    def bound(self, key: tuple[str, ...], time: str, loops: tuple[int, ...] = ()) -> Operator:
        """The same on a stream with this key and event-time column; ``loops``: its inputs that hold no watermark."""
        return self

    def result_time(self, time: str) -> str:
        """The event-time column of the results; ``time`` is that of the input."""
        return time

    def results(self, given: pa.Schema) -> pa.Schema | None:
        """The columns of the results; ``None`` if they are not known before the operator runs.

        Args:
            given: The columns of the records that come in.

        Raises:
            NewnormalError: ``COLUMN_UNKNOWN`` if the operator names a column that does not come in.
        """
        return None

    def late_forms(self, given: Sequence[pa.Schema]) -> Sequence[pa.Schema]:
        """The columns of records that may come too late: none where it does not tell.

        Args:
            given: The columns of each input.
        """
        return ()

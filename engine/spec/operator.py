"""The base of all operators: what a job declares about its keyed, stateful logic."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.spec.duration import NEVER
from engine.spec.grid import ANYWHERE, Grid
from engine.spec.state_form import StateForm, described, types

Row = dict[str, Any]
Key = tuple[Any, ...]
SIDE = "__side"
"""Column of results that names the side output to which a result goes; missing or null: the main output."""


@dataclass(frozen=True)
class Progress:
    """Watermark and processing time of a shard, before and after the current micro-batch.

    Attributes:
        before: The watermark before the batch, epoch milliseconds.
        now: The watermark after it.
        clock_before: Processing time before the batch: the greatest arrival time seen, epoch milliseconds.
        clock: Processing time after the batch; heartbeats advance it too.
        in_log: For each record of the batch the watermark that stands in the log of its own partition before its
            message; `NEVER` where it is not known. ``None``: not known for any record.
    """

    before: int
    now: int
    clock_before: int = NEVER
    clock: int = NEVER
    in_log: Sequence[int] | npt.NDArray[np.int64] | None = None

    def passed(self, records: int) -> npt.NDArray[np.int64]:
        """For each record of the batch the watermark by which it may be too late.

        That is the one in the log of its partition. As the watermark of the shard waits for all its partitions, it is
        not ahead of that, unless the partition was idle or is not known in the log: then the shard's decides.

        >>> Progress(10, 20, in_log=[NEVER, 15]).passed(2).tolist()
        [10, 15]
        """
        if self.in_log is None:
            return np.full(records, self.before, np.int64)
        return np.maximum(np.asarray(self.in_log, np.int64), self.before)


class Operator(ABC):  # noqa: B024
    """The specification of an operator: a value that says what is computed, not how.

    Its implementations are found by its type: `engine.vectorized.build` gives the logic over columns,
    `engine.reference.reference` its meaning in plain Python, `engine.explain.describe` its description.
    """

    def bound(self, key: tuple[str, ...], time: str, loops: tuple[int, ...] = ()) -> Operator:
        """This operator on a stream with this key and time column; ``loops``: inputs that do not hold the watermark."""
        return self

    def result_time(self, time: str) -> str:
        """The event-time column of the results; ``time`` is that of the input."""
        return time

    def results(self, columns: pa.Schema) -> pa.Schema | None:
        """The columns of the results; ``None`` if they are not known before the operator runs.

        Args:
            columns: The columns of the records that come in.

        Raises:
            NewnormalError: ``COLUMN_UNKNOWN`` if the operator names a column that does not come in.
        """
        return None

    def result_ahead(self, ahead: int) -> int:
        """By how many milliseconds the time column of the results lies after their event time.

        Args:
            ahead: The same of the input: 0, or 1 where that column is the end of a window, whose last instant is one
                before (Beam's ``maxTimestamp``, Flink's ``window_time``). So windows of windows nest.
        """
        return ahead

    def result_grid(self, grid: Grid) -> Grid:
        """The instants at which the event times of all results lie.

        A watermark that passes none of them says nothing new of the results, so it need not be written behind them.

        Args:
            grid: The same of the records that come in.
        """
        return ANYWHERE

    free: ClassVar[tuple[str, ...]] = ()
    """The fields that may change while the operator has state, without a change of what the state means."""

    def state_form(self, columns: pa.Schema | None) -> StateForm | None:
        """What the state of the operator depends on; ``None`` if it has none. By default all fields but `free`.

        Args:
            columns: The columns of the records that come in; ``None`` if they are not known.
        """
        own: list[str] = [field.name for field in fields(self)] if is_dataclass(self) else []
        parts = {name: described(getattr(self, name)) for name in own if name not in self.free}
        return StateForm({"operator": type(self).__name__, **parts}, types(columns))

    def late_forms(self, inputs: Sequence[pa.Schema]) -> Sequence[pa.Schema]:
        """The columns of records that may be late; empty if the operator does not say.

        Args:
            inputs: The columns of each input.
        """
        return ()

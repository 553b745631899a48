"""Aggregates over windows of each key: the specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from engine.aggregates import AnyAggregate, Rate, Signed
from engine.aggregates.check import result_types
from engine.spec.columns import check_names, require
from engine.spec.duration import Duration
from engine.spec.errors import NewnormalError
from engine.spec.grid import ANYWHERE, Grid
from engine.spec.operator import Operator
from engine.spec.state_form import StateForm, described, types
from engine.triggers import ACCUMULATING, AccumulatingAndRetracting, Accumulation, AfterWatermark, Trigger
from engine.windows import Evictor, Policy, Sliding, Window

BOUNDS = ("window_start", "window_end")
PANE_COLUMNS = {"revision": pa.int64(), "pane": pa.int64(), "timing": pa.string(), "retraction": pa.bool_()}
"""Columns that distinguish the results of one window, and their types."""
TRIGGER_STATE = ("__fresh", "__opened")
"""Columns of the table of open windows: the state of their pane."""


def window_results(
    key: Sequence[str], aggregates: Mapping[str, AnyAggregate], added: Sequence[str], columns: pa.Schema
) -> pa.Schema:
    """The columns of the results of windows: the key, `BOUNDS`, the aggregates, and those ``added`` of `PANE_COLUMNS`.

    Raises:
        NewnormalError: ``COLUMN_UNKNOWN``; ``AGGREGATE_INVALID``.
    """
    require(key, columns, "key_by()")
    types = result_types(aggregates, columns, key)
    if taken := [name for name in (*key, *types) if name in (*BOUNDS, *PANE_COLUMNS)]:
        what = f"{', '.join(taken)} has the name of a column that the results of windows have"
        accepted = f"other names than {', '.join((*BOUNDS, *PANE_COLUMNS))}"
        raise NewnormalError("NAME_RESERVED", what, "aggregate()", accepted, "no job")
    keys, bounds = [columns.field(name) for name in key], [pa.field(name, pa.int64(), False) for name in BOUNDS]
    return pa.schema([*keys, *bounds, *types.items(), *((name, PANE_COLUMNS[name]) for name in added)])


@dataclass(frozen=True)
class WindowAggregate(Operator):
    """Aggregates over windows of each key.

    Attributes:
        trigger: When windows fire; ``None``: when the watermark passes their end, and again after late records.
        panes: How the panes of one window relate.
        evict: Which records of a window count; ``None``: all.
        ahead: By how many milliseconds ``time`` lies after the event time, see `Operator.result_ahead`.
    """

    key: tuple[str, ...]
    time: str
    window: Window
    allowed_lateness: Duration
    aggregates: dict[str, AnyAggregate]
    trigger: Trigger | None = None
    panes: Accumulation = ACCUMULATING
    evict: Evictor | None = None
    ahead: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "allowed_lateness", Duration(self.allowed_lateness, "allowed_lateness"))
        rates = [name for name, aggregate in self.aggregates.items() if isinstance(aggregate, Rate)]
        if rates and not self.shared:
            what = f"{', '.join(rates)}: a rate needs the sample ahead of its window"
            accepted = "Tumbling windows or Sliding ones of whole slides, accumulating, without trigger and evictor"
            raise NewnormalError("AGGREGATE_UNSUPPORTED", what, "aggregate()", accepted)

    @property
    def once(self) -> bool:
        """Whether each window has one result, which no later one replaces."""
        return self.fires == AfterWatermark() and not self.allowed_lateness

    @property
    def shared(self) -> bool:
        """Whether windows can be put together from shared slices: aligned windows that fire at the watermark.

        Only the way of computing depends on this; the results are the same as for windows that are kept one by one.
        """
        plain = self.fires == AfterWatermark() and self.evictor is None and self.panes == ACCUMULATING
        return plain and isinstance(self.window, Sliding) and self.window.shares_slices

    def state_form(self, columns: pa.Schema | None) -> StateForm | None:
        """Aggregates may be added and taken away; the columns that they read keep their types.

        A trigger may be added to windows that had none, if their results accumulate as before.
        """
        fixed = {"operator": "WindowAggregate", "kept as": "slices" if self.shared else "windows"}
        fixed |= {"key": described(self.key), "time": self.time, "windows": described(self.window)}
        fixed |= {"allowed lateness": described(self.allowed_lateness)}
        if not self.shared:
            own = {"trigger": self.fires, "panes": self.panes, "evictor": self.evictor}
            fixed |= {name: described(value) for name, value in own.items()}
        if any(isinstance(aggregate, Signed) for aggregate in self.aggregates.values()):
            fixed |= {"retractions": "taken off"}
        plain = replace(self, trigger=None)
        added = self.fires != AfterWatermark() and plain.fires == AfterWatermark() and self.panes == ACCUMULATING
        takes = plain.state_form(columns) if added and not self.evictor else None
        named = [getattr(a, name, None) for a in self.aggregates.values() for name in ("column", "by")]
        read = {name for name in named if isinstance(name, str)}
        stored = types(columns) if self.evictor else types(columns, *sorted(read)) if read else {}
        return StateForm(fixed, stored, takes.fixed if takes else {})

    @property
    def sliding(self) -> Sliding:
        """The windows, which must be aligned (`Sliding` or `Tumbling`)."""
        assert isinstance(self.window, Sliding)
        return self.window

    @property
    def fires(self) -> Trigger:
        """When windows fire."""
        own = self.window.trigger if isinstance(self.window, Policy) else AfterWatermark()
        return self.trigger or own

    @property
    def evictor(self) -> Evictor | None:
        """The evictor that says which records of a window count; ``None`` if all do."""
        return self.evict or (self.window.evict if isinstance(self.window, Policy) else None)

    def late_forms(self, inputs: Sequence[pa.Schema]) -> Sequence[pa.Schema]:
        return inputs

    @property
    def revised(self) -> pa.Schema | None:
        """The columns of results that may be older than the watermark (revisions); ``None`` if there are none.

        Their type is null, which stands for any type. ``pane`` and ``timing`` are left out: record types may lack them.
        """
        if not self.allowed_lateness:
            return None
        return pa.schema(
            [(name, pa.null()) for name in (*self.key, *BOUNDS, *self.aggregates, "revision", *self._taken_back)]
        )

    @property
    def pane_columns(self) -> list[str]:
        """Names of the columns that distinguish the results of one window."""
        return ["pane", "timing", "revision", *self._taken_back]

    @property
    def _taken_back(self) -> list[str]:
        return ["retraction"] if isinstance(self.panes, AccumulatingAndRetracting) else []

    def results(self, columns: pa.Schema) -> pa.Schema | None:
        check_names([*self.key, *self.aggregates, *self.fires.shown], "aggregate()")
        return window_results(self.key, self.aggregates, self.pane_columns, columns)

    def result_ahead(self, ahead: int) -> int:
        return 1

    def result_grid(self, grid: Grid) -> Grid:
        return self.window.ends if isinstance(self.window, Sliding) else ANYWHERE

    def result_time(self, time: str) -> str:
        return "window_end"

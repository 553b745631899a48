"""A window that is filled by many micro-batches: nothing is lost, its state stays in few pieces, and none is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.reference import Arrival, Watermark
from engine.windows import Sliding, Tumbling, Window
from tests.engine.panes import event, job

T0 = 1_700_000_000_000
ARRIVED = T0 + 86_400_000
BATCHES = 40
FEW = 20
"""A segment of the state is a round trip to Spark: forty of them for one window were forty round trips."""


@pytest.mark.parametrize("window", [Tumbling("40s"), Sliding("40s", every="20s")], ids=["one slice", "two slices"])
@pytest.mark.parametrize("late", [False, True], ids=["in time", "the last one late"])
def test_a_window_of_many_batches_is_whole_and_kept_in_few_pieces(
    driven: Callable[..., Any], window: Window, late: bool
) -> None:
    """A record a second, each in a batch of its own: their values are 0, 1, ..., 39."""
    run, over = driven(job(window, lateness="1m"), 1), [Watermark("t", 0, ARRIVED, T0 + 40_000)]
    segments = []
    for second in range(BATCHES):
        if late and second == BATCHES - 1:
            run.run([over])
        run.run([[Arrival("t", 0, ARRIVED, event("a", T0 + 1000 * second, float(second)))]])
        segments.append(len(run.states[0].values))
    assert max(segments) <= FEW
    run.run([over])
    rows = [row for row in run.rows if row["window_start"] == T0]
    assert [(row["n"], row["sum"]) for row in rows][-1] == (BATCHES, sum(range(BATCHES)))
    assert len(rows) == 1 + late
    run.run([[Watermark("t", 0, ARRIVED, T0 + 600_000)]])
    assert set(run.states[0].values) == {"notes"}, "nothing is kept of windows that are over for good"

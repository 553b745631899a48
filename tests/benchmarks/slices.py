"""Sliding windows of many slices, in one process: what a live minute of "the last 24 h, every minute" costs.

Slices are compared with the same windows kept one by one, which a trigger has them do. These would have to take each
record of the filling into hundreds of windows, so the comparison has few keys; the memory of slices is measured with
more and more keys.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from engine.aggregates import Count, Max, Mean
from engine.operators.windows import WindowAggregate
from engine.spec.duration import Duration
from engine.spec.operator import Progress
from engine.state.segments import DictSegments, ShardState
from engine.triggers import AfterAny, AfterWatermark, Never, Trigger
from engine.vectorized.build import build
from engine.windows import Sliding

MINUTE, SLICES = 60_000, 1440
KEYS, COMPARED = (2_500, 5_000, 10_000), 50
LIVE, AT_ONCE = 3, 60
T0 = 1_766_000_000_000 - 1_766_000_000_000 % (SLICES * MINUTE)


def run(keys: Sequence[int] | None = None, slices: int = SLICES, compared: int = COMPARED) -> dict[str, Any]:
    """Measures a live minute with some numbers of keys, and both ways of keeping windows with few.

    Args:
        keys: Numbers of keys, by default `KEYS`.
        slices: Slices of each window.
        compared: Number of keys with which the two ways are compared.
    """
    one_by_one = AfterAny(AfterWatermark(), Never())  # fires as windows without a trigger do
    ways = {"slices": _measured(compared, slices, None), "one by one": _measured(compared, slices, one_by_one)}
    ratio = ways["slices"]["cpu_seconds"] / ways["one by one"]["cpu_seconds"]
    of_keys = {str(n): _measured(n, slices, None) for n in keys or KEYS}
    return {"slices": slices, "compared_keys": compared, **ways, "ratio": round(ratio, 2), "keys": of_keys}


def _measured(keys: int, slices: int, trigger: Trigger | None) -> dict[str, float]:
    """CPU seconds of a live minute, the median of some, and the memory at most above that before the first (MB)."""
    window = Sliding(f"{slices}m", every="1m")
    aggregates = {"n": Count(), "mean": Mean("v"), "most": Max("v")}
    operator = WindowAggregate(("k",), "time", window, Duration("0s"), aggregates, trigger)
    processor, segments, end = build(operator), DictSegments(), T0 + slices * MINUTE
    for first in range(0, slices, AT_ONCE):
        state = ShardState(segments)
        processor.process(_records(keys, range(first, min(slices, first + AT_ONCE))), state, Progress(end, end))
        state.save()
    Path("/proc/self/clear_refs").write_text("5")
    before, spent = _memory("VmRSS"), []
    for live in range(LIVE):
        began, now = time.process_time(), end + (live + 1) * MINUTE
        state = ShardState(segments)
        records = _records(keys, range(slices + live, slices + live + 1))
        results = processor.process(records, state, Progress(now - MINUTE, now)).records
        size = state.save()
        spent.append(time.process_time() - began)
        assert results.height == keys and results["n"].unique().to_list() == [slices]
    found = {"cpu_seconds": float(np.median(spent)), "memory_mb": _memory("VmHWM") - before, "state_mb": size / 1e6}
    return {name: round(value, 3) for name, value in found.items()}


def _records(keys: int, minutes: range) -> pl.DataFrame:
    times = np.repeat(np.arange(minutes.start, minutes.stop) * MINUTE + T0, keys)
    names = np.tile([f"key-{n:05}" for n in range(keys)], len(minutes))
    return pl.DataFrame({"time": times, "k": names, "v": times % 1_000 / 7})


def _memory(name: str) -> float:
    """Memory of this process, MB: ``VmRSS`` now, ``VmHWM`` at most since it was last cleared."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return float(lines[name].split()[0]) / 1e3

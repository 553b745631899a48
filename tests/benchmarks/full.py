"""When will it be full? Coverage and width of forecasts, false ones, and how early: beside straight lines.

Simulated series of many shapes have a known crossing. Recorded ones have bounds at levels that they cross later,
and one that they never come to.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from models.numbers.arrays import Array, Ints
from pipelines.evaluation import show
from tests.benchmarks.filling import BOUND, HELD_BACK, SHAPES, STEP, UNSEEN, Shape, fillings
from tests.benchmarks.measures.datasets import asd, cloud_monitoring, nab
from tests.benchmarks.measures.full import COLUMNS, Bounded, Worth, by_line, by_model, worth

LINES = (1.0, 4.0, 24.0)
"""Hours of the straight lines."""

_LEVELS = (0.5, 0.75, 0.95)
"""Where the bounds of recorded series lie, between the highest value of the first two days and that of all."""

_LEAST = 500
"""Values of a recorded series that is long enough."""


def simulated(shapes: dict[str, Shape], each: int, seed: int) -> list[Bounded]:
    """So many simulated series of each shape."""
    made = fillings(shapes, each, seed)
    return [
        Bounded(
            one.shape,
            np.arange(len(one.values)) * STEP,
            BOUND - one.values,
            BOUND,
            one.full * STEP if one.full >= 0 else np.inf,
        )
        for one in made
    ]


def recorded(data: Path) -> list[Bounded]:
    """The recorded series of some data sets, each with several bounds, upward and downward."""
    frames: dict[str, Callable[[], pl.DataFrame]] = {
        "asd": lambda: pl.concat([machine.values() for machine in asd(data / "asd")]),
        "nab": lambda: nab(data / "nab").values,
        "cloud_monitoring": lambda: cloud_monitoring(data / "cloud_monitoring"),
    }
    series = []
    for name, read in frames.items():
        if not (data / name).is_dir():
            continue
        for _, rows in read().group_by("entity", "metric", maintain_order=True):
            ordered = rows.filter(pl.col("value").is_finite()).unique("time").sort("time")
            if ordered.height >= _LEAST:
                time, value = ordered["time"].to_numpy(), ordered["value"].to_numpy()
                series += [one for way in (value, -value) for one in _with_bounds(name, time, way)]
    return series


def _with_bounds(name: str, time: Ints, value: Array) -> list[Bounded]:
    before, highest, lowest = value[time < time[0] + 2 * 86_400_000].max(), value.max(), value.min()
    if highest <= before or highest <= lowest:
        return []
    made = []
    for level in _LEVELS:
        bound = before + level * (highest - before)
        first = int(np.flatnonzero(value >= bound)[0])
        made.append(Bounded(name, time[:first], bound - value[:first], bound - lowest, float(time[first])))
    never = highest + 0.2 * (highest - lowest)
    made.append(Bounded(f"{name}, never", time, never - value, never - lowest, np.inf))
    return made


def run(each: int, seed: int, data: Path | None) -> dict[str, Any]:
    """Measures; prints tables; returns the figures.

    Args:
        each: Simulated series of each shape.
        seed: Of the simulation.
        data: Folder of the recorded data; ``None``: only simulated series are measured.
    """
    sets = {"simulated": simulated(SHAPES, each, seed), "shapes held back": simulated(HELD_BACK | UNSEEN, each, seed)}
    if data:
        sets["recorded"] = recorded(data)
    figures: dict[str, Any] = {"each": each, "seed": seed}
    for name, series in sets.items():
        by_kind = worth(series, [by_model(one) for one in series])
        ways = {"model": by_kind["all"]}
        for hours in LINES:
            ways[f"line, {hours:g} h"] = worth(series, [by_line(one, hours) for one in series])["all"]
        _show(f"{name}: beside straight lines", ways)
        _show(f"{name}: the model, by kind", by_kind)
        figures[name] = {way: dict(zip(COLUMNS, one.row(), strict=True)) for way, one in (ways | by_kind).items()}
    return figures


def _show(title: str, rows: dict[str, Worth]) -> None:
    show.table(title, ["", *COLUMNS], [[name, *one.row()] for name, one in rows.items()])

"""Verdicts on logs as frames: those of many windows are made at once, as a frame costs much and a row little."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from models.numbers.arrays import Ints
from models.templates.model import CHANNELS
from pipelines.jobs.detectors.logs.state import METRIC

INFLUENCERS = 5
"""The most templates and severities that a verdict names."""

EVIDENCE = (*CHANNELS, "severity")
"""The evidence channels of a verdict on a machine's log."""

_NUMBERS = ("record_score", "state_score", "probability", "actual", "typical", "lower", "upper")
_COLUMNS = {"__m": pl.Int64, "entity": pl.String, "kind": pl.String, **dict.fromkeys(_NUMBERS, pl.Float64)}
_COLUMNS |= {
    "since": pl.Int64,
    "incident_state": pl.String,
    **dict.fromkeys(("_changes", "_unusual", "_unrest"), pl.Boolean),
    **dict.fromkeys(EVIDENCE, pl.Float64),
}
OWN = ("_changes", "_unusual", "_unrest")
"""Columns that the verdicts have while they are made, and not as `Novelty`."""

NAMED = {"__m": pl.Int64, "key": pl.String, "value": pl.Float64}
NAMED |= {"template": pl.String, "example": pl.String, "level": pl.Int64}
"""What contributes to verdicts: a template or severity of a machine, its evidence in nats, its texts, its severity."""


class JudgedWindow(NamedTuple):
    """The verdicts of a window, not yet as a frame.

    Attributes:
        end: End of the window, epoch milliseconds.
        machines: How many machines were judged.
        columns: The numbers and texts of the machines that get a verdict, ``__m`` being the number of the machine.
        named: `NAMED` by column, ``__m`` as above.
    """

    end: int
    machines: int
    columns: dict[str, Any]
    named: dict[str, Any]

    @property
    def calm(self) -> bool:
        """Whether no machine has an incident, or may be at the beginning of one."""
        return not (self.columns["_unrest"].any() or self.columns["_changes"].any())


def framed(windows: Sequence[JudgedWindow], size: int) -> pl.DataFrame:
    """The verdicts of windows as a frame, in order of window end and machine.

    Args:
        windows: The windows, at least one.
        size: Their length, milliseconds.

    Returns:
        The columns of `Novelty` that are known here, and `OWN`.
    """
    before = np.cumsum([0, *(window.machines for window in windows)])
    ends = [np.full(len(window.columns["__m"]), window.end) for window in windows]
    end = pl.Series(np.concatenate(ends), dtype=pl.Int64)
    frame = _joined(_COLUMNS, [window.columns for window in windows], before).with_columns(
        metric=pl.lit(METRIC),
        metric_kind=pl.lit("count"),
        window_start=end - size,
        window_end=end,
        since=pl.when(pl.col("since") >= 0).then("since"),
        decided=pl.lit(None, pl.Int64),
        evidence=pl.struct(EVIDENCE),
        revision=pl.lit(0, pl.Int64),
    )
    named = _influencers(_joined(NAMED, [window.named for window in windows], before))
    return frame.join(named, on="__m", how="left").drop("__m", *EVIDENCE).sort("window_end", "entity")


def _joined(schema: dict[str, Any], parts: Sequence[dict[str, Any]], before: Ints) -> pl.DataFrame:
    """The columns of some windows one after the other; ``before``: machines of the windows before each one."""
    frames = [pl.DataFrame({**part, "__m": part["__m"] + at}, schema) for part, at in zip(parts, before, strict=False)]
    return pl.concat(frames)


def _influencers(named: pl.DataFrame) -> pl.DataFrame:
    """What contributes most to each verdict, and the text of the strongest template.

    Args:
        named: Columns `NAMED`.

    Returns:
        A row per machine and window: its number ``__m``, ``influencers`` with their shares, ``template``, ``example``,
        and ``level``, the syslog severity of the template.
    """
    share = pl.col("value") / pl.col("value").sum().over("__m")
    of_template = pl.col("template").is_not_null()
    return (
        named.sort("__m", "value", "key", descending=[False, True, False])
        .with_columns(value=share)
        .group_by("__m", maintain_order=True)
        .agg(
            influencers=pl.struct("key", "value").head(INFLUENCERS),
            template=pl.col("template").filter(of_template).first(),
            example=pl.col("example").filter(of_template).first(),
            level=pl.col("level").filter(of_template).first(),
        )
    )

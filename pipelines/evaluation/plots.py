"""The plots of an evaluation: figures by threshold, delays, and series with their verdicts and labelled spans."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipelines.contracts.records.novelty import ALARM_KINDS
from pipelines.evaluation.judge import JudgedVerdicts
from pipelines.evaluation.truth import EVERY, Span

_POINTS = 20_000
"""The most windows of a series that are drawn; of a longer series the part around its first span is drawn."""


def threshold(verdicts: JudgedVerdicts, out: Path) -> None:
    """Plots the share of spans found, and the false alarms, for each threshold."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axis = figure.subplots()
    rows = {score: level.figures() for score, level in verdicts.levels.items()}
    found = [row["found"] if row["found"] is not None else np.nan for row in rows.values()]
    axis.plot(list(rows), found, "o-", color="tab:blue", label="found")
    axis.set_ylim(0, 1.02)
    axis.set_xlabel("record_score from which a verdict is an alert")
    axis.set_ylabel("share of spans found", color="tab:blue")
    cost = axis.twinx()
    alarms = [row["false_alarms_per_series_day"] or 0.0 for row in rows.values()]
    cost.plot(list(rows), alarms, "s-", color="tab:red", label="false alarms")
    cost.set_yscale("symlog", linthresh=0.01)
    cost.set_ylabel("false alarms per series and day", color="tab:red")
    figure.savefig(out, dpi=90)


def delays(verdicts: JudgedVerdicts, out: Path) -> None:
    """Plots a histogram of the delays with which spans were found."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    axis = figure.subplots()
    windows = [delay for delay in verdicts.news.delays if delay is not None]
    axis.hist(windows, bins=min(50, max(1, max(windows, default=0) + 1)), color="tab:blue")
    axis.set_xlabel("windows from the start of a span to the first alert in it")
    axis.set_ylabel(f"spans ({len(windows)} of {len(verdicts.news.delays)} found)")
    figure.savefig(out, dpi=90)


def difference(
    versions: Sequence[tuple[str, pl.DataFrame, float]], span: tuple[int, int], metric: str, out: BinaryIO
) -> None:
    """Plots one series as two versions judged it, as SVG: values, both bands and typical values, both scores.

    Args:
        versions: For each version its name, its verdicts on the series, and the score from which it raises alarms.
        span: First and last instant of the difference, epoch milliseconds; it is marked.
        metric: Name of the metric; `EVERY` has no values.
        out: File to which the plot is written.
    """
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.6, 1])
    valued = [own for _, own, _ in versions if own["actual"].count()]
    for (name, own, threshold), color in zip(versions, ("tab:blue", "tab:orange"), strict=True):
        if valued:
            _expected(above, own, color, None, f"expected by {name}")
        _score(below, own, color, f"alarm of {name}", name)
        below.axhline(threshold, color=color, linewidth=0.6, linestyle=":")
    if valued:
        _values(above, valued[0], "value")
    else:
        above.text(
            0.5, 0.5, "no value: a verdict on several metrics or log lines", ha="center", transform=above.transAxes
        )
        above.set_yticks([])
    for axis in (above, below):
        axis.axvspan(np.datetime64(span[0], "ms"), np.datetime64(span[1], "ms"), color="grey", alpha=0.15)
    below.legend(loc="upper left", fontsize=7)
    below.set_xlabel("end of the window, UTC")
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": metric, "font.family": "sans-serif"}):
        figure.savefig(out, format="svg", metadata={"Date": None})


def _values(axis: Axes, own: pl.DataFrame, label: str = "actual") -> None:
    """The values of a series, which decide the limits of the axis."""
    axis.plot(_time(own), own["actual"].to_numpy(), color="black", linewidth=0.7, label=label)
    known = own["actual"].cast(pl.Float64).drop_nulls().drop_nans()
    if known.len():
        low, high = float(known.min()), float(known.max())  # type: ignore[arg-type]
        axis.set_ylim(low - 0.5 * (high - low) - 1e-9, high + 0.5 * (high - low) + 1e-9)
    axis.legend(loc="upper left", fontsize=8)


def _expected(axis: Axes, own: pl.DataFrame, color: str, typical: str | None, expected: str) -> None:
    """The typical value and the band in which values were expected."""
    time, bounds = _time(own), own.select(pl.col("lower", "upper").cast(pl.Float64).fill_null(np.nan))
    axis.plot(time, own["typical"].to_numpy(), color=color, linewidth=0.7, label=typical)
    axis.fill_between(
        time, bounds["lower"].to_numpy(), bounds["upper"].to_numpy(), color=color, alpha=0.15, label=expected
    )


def _score(axis: Axes, own: pl.DataFrame, color: str, news: str, label: str | None = None) -> None:
    """The scores, with a dot where they are news."""
    axis.plot(_time(own), own["record_score"].to_numpy(), color=color, linewidth=0.7, label=label)
    alarms = own.filter(pl.col("kind").is_in(ALARM_KINDS))
    axis.plot(_time(alarms), alarms["record_score"].to_numpy(), ".", color=color, label=news)
    axis.set_ylim(0, 102)
    axis.set_ylabel("record_score")


def _time(own: pl.DataFrame) -> np.ndarray:
    return own["window_end"].cast(pl.Datetime("ms")).to_numpy()


def series(verdicts: pl.DataFrame, spans: Sequence[Span], entity: str, metric: str, out: Path) -> None:
    """Plots one series: values, band, score, and labelled spans. One without verdicts shows its spans only."""
    own = verdicts.filter(pl.col("entity") == entity, pl.col("metric") == metric).sort("window_end")
    shown = [span for span in spans if span.entity == entity and span.shows_in(metric)]
    if own.height > _POINTS and shown:
        middle = int(np.searchsorted(own["window_end"].to_numpy(), shown[0].start))
        own = own.slice(max(0, middle - _POINTS // 2), _POINTS)
    bounds = own["window_end"].to_list() or [at for span in shown for at in (span.start - 1, span.end + 1)]
    figure = Figure(figsize=(14, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    if not own.height:
        above.text(0.5, 0.5, "no verdict is stored of this series", ha="center", transform=above.transAxes)
    elif metric != EVERY:
        _expected(above, own, "tab:blue", "typical", "expected")
        _values(above, own)
    _score(below, own, "tab:red", "news")
    for span in shown:
        first, last = np.datetime64(span.start, "ms"), np.datetime64(span.end, "ms")
        for axis in (above, below):
            axis.axvspan(first, last, color="tab:orange" if span.wrong else "tab:green", alpha=0.25)
    if bounds and min(bounds) < max(bounds):
        above.set_xlim(np.datetime64(min(bounds), "ms"), np.datetime64(max(bounds), "ms"))
    above.set_title(f"{entity} {metric}", loc="left")
    figure.savefig(out, dpi=80)

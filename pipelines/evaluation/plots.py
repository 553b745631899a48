"""The plots of an evaluation: figures by threshold, delays, and series with their verdicts and labelled spans."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from pipelines.contracts.records.novelty import ALARM_KINDS
from pipelines.evaluation.judge import JudgedVerdicts
from pipelines.evaluation.truth import EVERY, Span

_POINTS = 20_000
"""The most windows of a series that are drawn; of a longer series the part around its first span is drawn."""


def threshold(judged: JudgedVerdicts, out: Path) -> None:
    """Plots the share of spans found, and the false alarms, for each threshold."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axis = figure.subplots()
    rows = {score: level.figures() for score, level in judged.levels.items()}
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


def delays(judged: JudgedVerdicts, out: Path) -> None:
    """Plots a histogram of the delays with which spans were found."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    axis = figure.subplots()
    found = [delay for delay in judged.news.found if delay is not None]
    axis.hist(found, bins=min(50, max(1, max(found, default=0) + 1)), color="tab:blue")
    axis.set_xlabel("windows from the start of a span to the first alert in it")
    axis.set_ylabel(f"spans ({len(found)} of {len(judged.news.found)} found)")
    figure.savefig(out, dpi=90)


def series(verdicts: pl.DataFrame, spans: Sequence[Span], entity: str, metric: str, out: Path) -> None:
    """Plots one series: values, band, score, and labelled spans."""
    own = verdicts.filter(pl.col("entity") == entity, pl.col("metric") == metric).sort("window_end")
    shown = [span for span in spans if span.entity == entity and span.shows_in(metric)]
    if own.height > _POINTS and shown:
        middle = int(np.searchsorted(own["window_end"].to_numpy(), shown[0].start))
        own = own.slice(max(0, middle - _POINTS // 2), _POINTS)
    time = own["window_end"].cast(pl.Datetime("ms")).to_numpy()
    figure = Figure(figsize=(14, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    if metric != EVERY:
        above.plot(time, own["actual"].to_numpy(), color="black", linewidth=0.7, label="actual")
        above.plot(time, own["typical"].to_numpy(), color="tab:blue", linewidth=0.7, label="typical")
        lower, upper = own["lower"].to_numpy(), own["upper"].to_numpy()
        above.fill_between(time, lower, upper, color="tab:blue", alpha=0.15, label="expected")
        low, high = np.nanpercentile(own["actual"].cast(pl.Float64).fill_null(np.nan).to_numpy(), [0, 100])
        above.set_ylim(low - 0.5 * (high - low) - 1e-9, high + 0.5 * (high - low) + 1e-9)
        above.legend(loc="upper left", fontsize=8)
    below.plot(time, own["record_score"].to_numpy(), color="tab:red", linewidth=0.7)
    news = own.filter(pl.col("kind").is_in(ALARM_KINDS))
    below.plot(
        news["window_end"].cast(pl.Datetime("ms")).to_numpy(), news["record_score"].to_numpy(), "r.", label="news"
    )
    below.set_ylim(0, 100)
    below.set_ylabel("record_score")
    for span in shown:
        first, last = np.datetime64(span.start, "ms"), np.datetime64(span.end, "ms")
        for axis in (above, below):
            axis.axvspan(first, last, color="tab:orange" if span.wrong else "tab:green", alpha=0.25)
    above.set_xlim(time[0], time[-1])
    above.set_title(f"{entity} {metric}", loc="left")
    figure.savefig(out, dpi=80)

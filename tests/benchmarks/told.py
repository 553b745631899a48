"""What the production detector tells of recorded series, beside what simple scores would tell as often falsely."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load
from pipelines.evaluation import baselines, datasets, show
from pipelines.evaluation.recorded import judge
from pipelines.evaluation.told import Labelled, Told, at_most, one_line, told

BUDGETS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""False alarms a series and month at which scores are compared."""

_DAY = 86_400_000
_SOON = 15
_METRIC = "value"
SETS = ("web_kpis", "nab", "cloud_monitoring")


def run(data: Path, out: Path, only: list[str] | None = None) -> dict[str, Any]:
    """Judges each data set, prints a table of each, writes ``out/told.json`` and a plot; returns the figures."""
    there = [name for name in SETS if name in (only or SETS) and (data / name).exists()]
    if not there:
        wanted = ", ".join(only or SETS)
        raise NewnormalError("DATA_ABSENT", f"{data} has none of {wanted}", "options --data, --only", ", ".join(SETS))
    figures = {name: of(name, data, out) for name in there}
    show.write(out, "told", figures)
    return figures


def of(name: str, data: Path, out: Path) -> dict[str, Any]:
    """Judges one data set.

    Args:
        name: One of `SETS`.
        data: The folder of the data sets.
        out: Folder of plots.
    """
    known = _labelled(name, data / name)
    settings = load().detector
    with show.bar(name) as progress:
        verdicts = judge(known.drop("label"), settings, progress)
    series: list[Labelled] = []
    kinds: list[Any] = []
    scores: dict[str, list[Any]] = {name: [] for name in ("record_score", "state_score", "one line", "difference")}
    own = verdicts.filter(pl.col("metric") == _METRIC).select("entity", "window_end", "kind", *list(scores)[:2])
    own = own.unique(["entity", "window_end"], keep="last", maintain_order=True)
    distinct = known.unique(["entity", "time"], keep="first", maintain_order=True).sort("entity", "time")
    for (entity,), rows in distinct.group_by("entity", maintain_order=True):
        made = rows.join(own.filter(entity=entity), left_on="time", right_on="window_end", how="left")
        time, value = rows["time"].to_numpy(), rows["value"].to_numpy()
        step = float(np.median(np.diff(time)))
        each = Labelled(str(entity), time, value, rows["label"].to_numpy() > 0, None if name == "nab" else _SOON)
        series.append(each)
        kinds.append(made["kind"].fill_null("").to_numpy())
        scores["record_score"].append(made["record_score"].to_numpy())
        scores["state_score"].append(made["state_score"].to_numpy())
        scores["one line"].append(one_line(value, int(_DAY / step)))
        scores["difference"].append(baselines.difference(np.nan_to_num(value)))
    return _shown(name, series, kinds, scores, out)


def _shown(
    name: str, series: list[Labelled], kinds: list[Any], scores: dict[str, list[Any]], out: Path
) -> dict[str, Any]:
    as_shipped = told(series, [kind == "anomaly" for kind in kinds])
    curves = {score: at_most(series, each, BUDGETS) for score, each in scores.items()}
    rows: list[list[object]] = [["told, as shipped", as_shipped.share, as_shipped.false, as_shipped.delay]]
    show.table(f"{name}: {len(series)} series, {as_shipped.spans} spans", ["", "found", "false", "delay, rows"], rows)
    compared = [[score, *(made.share if made else 0.0 for made in curve.values())] for score, curve in curves.items()]
    show.table("found at most so many false alarms a series and month", ["score", *map(str, BUDGETS)], compared)
    months = sum(each.months for each in series)
    near = [each.near for each in series]
    news = {
        kind: {
            "a series and month": sum(int((own == kind).sum()) for own in kinds) / months,
            "near a label": _share(
                sum(int((own == kind)[close].sum()) for own, close in zip(kinds, near, strict=True)),
                sum(int((own == kind).sum()) for own in kinds),
            ),
        }
        for kind in ("anomaly", "state_change", "new_normal", "recovered", "absence")
    }
    show.table(
        "news", ["kind", "a series and month", "near a label"], [[kind, *of.values()] for kind, of in news.items()]
    )
    _plot(name, as_shipped, curves, out)
    return {
        "as shipped": vars(as_shipped) | {"share": as_shipped.share},
        "curves": {
            score: {str(b): made.share if made else 0.0 for b, made in each.items()} for score, each in curves.items()
        },
        "news": news,
    }


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def _labelled(name: str, folder: Path) -> pl.DataFrame:
    if name == "nab":
        known = datasets.nab(folder)
        row = pl.int_range(pl.len()).over("entity")
        inside = [
            pl.col("entity").eq(file) & row.is_between(first, last)
            for file, windows in known.windows.items()
            for first, last in windows
        ]
        return known.values.with_columns(label=pl.any_horizontal(inside))
    if name == "cloud_monitoring":
        return datasets.cloud_monitoring(folder)
    return datasets.web_kpis(folder)


def _plot(name: str, shipped: Told, curves: dict[str, dict[float, Told | None]], out: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415  only when plots are drawn

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415  after the backend is chosen

    figure, axis = plt.subplots(figsize=(8, 5), layout="constrained")
    for score, curve in curves.items():
        axis.plot(list(curve), [made.share if made else 0.0 for made in curve.values()], marker="o", label=score)
    axis.plot([shipped.false], [shipped.share], marker="*", markersize=16, linestyle="", label="told, as shipped")
    axis.set(xscale="log", xlabel="false alarms a series and month", ylabel="share of spans found", title=name)
    axis.legend()
    figure.savefig(out / f"told-{name}.png", dpi=80)
    plt.close(figure)

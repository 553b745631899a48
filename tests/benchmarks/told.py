"""What the production detector and its incidents tell of recorded series and machines.

Beside it stands what simple scores would tell as often falsely.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from engine.spec.errors import NewnormalError
from pipelines.contracts.records.novelty import JOINED
from pipelines.contracts.records.severity import SEVERITIES
from pipelines.contracts.settings import load
from pipelines.evaluation import show
from pipelines.evaluation.recorded import judge
from pipelines.jobs.incidents.bursts import Rules
from pipelines.jobs.incidents.job import rules
from tests.benchmarks.measures import baselines, datasets
from tests.benchmarks.measures.told import Labelled, Told, at_most, one_line, told
from tests.benchmarks.measures.told_incidents import ToldIncident, as_one_site, is_near, measured, told_incidents

BUDGETS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""False alarms a series and month at which scores are compared."""

PROMISED = (1.0, 2.0, 4.0)
"""False incidents a week, of all series of a set as one site."""

_DAY = 86_400_000
_WEEK = 7 * _DAY
_SOON = 15
_METRIC = "value"
SETS = ("web_kpis", "nab", "cloud_monitoring", "asd")


def run(data: Path, out: Path, only: list[str] | None = None) -> dict[str, Any]:
    """Judges each data set, prints a table of each, writes ``out/told.json`` and a plot; returns the figures."""
    there = [name for name in SETS if name in (only or SETS) and (data / name).exists()]
    if not there:
        wanted = ", ".join(only or SETS)
        raise NewnormalError("FILE_UNUSABLE", f"{data} has none of {wanted}", "options --data, --only", ", ".join(SETS))
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
    if name == "asd":
        return _machines(name, data / name, out)
    known = _labelled(name, data / name)
    with show.bar(name) as progress:
        verdicts = judge(known.drop("label"), load().detector, progress)
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
    return _shown(name, series, kinds, scores, verdicts, out)


def _machines(name: str, folder: Path, out: Path) -> dict[str, Any]:
    """Machines of many metrics: an alarm is one of the machine or of any of its metrics; training rows come before."""
    machines = datasets.asd(folder)
    with show.bar(name) as progress:
        verdicts = judge(pl.concat([machine.values() for machine in machines]), load().detector, progress)
    series: list[Labelled] = []
    kinds: list[Any] = []
    scores: dict[str, list[Any]] = {score: [] for score in ("record_score", "state_score", "pca", "averaged one line")}
    for machine in machines:
        joined = verdicts.filter(entity=machine.name, metric=JOINED)[len(machine.train) :]
        time = joined["window_end"].to_numpy()
        series.append(Labelled(machine.name, time, np.zeros(len(time)), machine.labels > 0))
        told_of = verdicts.filter(pl.col("entity") == machine.name, pl.col("kind") == "anomaly")["window_end"].unique()
        kinds.append(np.where(np.isin(time, told_of.to_numpy()), "anomaly", joined["kind"].to_numpy()))
        scores["record_score"].append(joined["record_score"].to_numpy())
        scores["state_score"].append(joined["state_score"].to_numpy())
        scores["pca"].append(baselines.pca(machine.train, machine.test))
        whole = np.concatenate([machine.train, machine.test])
        lines = [one_line(column, _DAY // datasets.ASD_STEP) for column in whole.T]
        scores["averaged one line"].append(np.mean(lines, axis=0)[len(machine.train) :])
    return _shown(name, series, kinds, scores, verdicts, out)


def _shown(
    name: str,
    series: list[Labelled],
    kinds: list[Any],
    scores: dict[str, list[Any]],
    verdicts: pl.DataFrame,
    out: Path,
) -> dict[str, Any]:
    settings = rules(load().incidents)
    of_values = verdicts.filter(pl.col("kind") != "absence")  # labels tell of values, not of what is missing
    incidents = told_incidents(of_values, settings)
    as_shipped, by_incidents = told(series, [kind == "anomaly" for kind in kinds]), measured(series, incidents)
    curves = {score: at_most(series, each, BUDGETS) for score, each in scores.items()}
    rows: list[list[object]] = [
        [what, made.share, made.false, made.delay]
        for what, made in (("told by an anomaly", as_shipped), ("told by an incident", by_incidents))
    ]
    show.table(f"{name}: {len(series)} series, {as_shipped.spans} spans", ["", "found", "false", "delay, rows"], rows)
    compared = [[score, *(made.share if made else 0.0 for made in curve.values())] for score, curve in curves.items()]
    show.table("found at most so many false alarms a series and month", ["score", *map(str, BUDGETS)], compared)
    severities = _severities(series, incidents)
    show.table(
        "incidents", ["severity", "at a label", "false"], [[word, *of.values()] for word, of in severities.items()]
    )
    pages = {str(promised): _pages(series, of_values, replace(settings, false_pages=promised)) for promised in PROMISED}
    show.table(
        "all as one site: false incidents a week",
        ["promised", "seen", "in the first week", "later", "found"],
        [[promised, *seen.values()] for promised, seen in pages.items()],
    )
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
    _plot(name, {"told by an anomaly": as_shipped, "told by an incident": by_incidents}, curves, out)
    return {
        "as shipped": vars(as_shipped) | {"share": as_shipped.share},
        "incidents": vars(by_incidents) | {"share": by_incidents.share, "severities": severities, "pages": pages},
        "curves": {
            score: {str(b): made.share if made else 0.0 for b, made in each.items()} for score, each in curves.items()
        },
        "news": news,
    }


def _pages(series: list[Labelled], verdicts: pl.DataFrame, rules: Rules) -> dict[str, float]:
    """False incidents a week of all series as one site, and the share of spans that it is told of."""
    named = {each.name: each for each in series}
    made = as_one_site(verdicts, rules)
    starts = dict(verdicts.group_by("entity").agg(pl.col("window_end").min()).iter_rows())
    weeks = float(np.median([(each.time[-1] - starts[each.name]) / _WEEK for each in series]))
    false = [(each.told - starts[each.entity]) / _WEEK for each in made if not is_near(named[each.entity], each.told)]
    early = sum(at < 1 for at in false)
    later = (len(false) - early) / (weeks - 1) if weeks > 1 else float("nan")
    return {
        "seen": len(false) / weeks,
        "in the first week": float(early),
        "later": later,
        "found": measured(series, made).share,
    }


def _severities(series: list[Labelled], incidents: list[ToldIncident]) -> dict[str, dict[str, int]]:
    """How many incidents of each severity are told near a label, and how many are false."""
    named = {each.name: each for each in series}
    placed = [(each.severity, is_near(named[each.entity], each.told)) for each in incidents]
    return {
        word: {"at a label": placed.count((word, True)), "false": placed.count((word, False))} for word in SEVERITIES
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


def _plot(name: str, shipped: dict[str, Told], curves: dict[str, dict[float, Told | None]], out: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415  only when plots are drawn

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415  after the backend is chosen

    figure, axis = plt.subplots(figsize=(8, 5), layout="constrained")
    for score, curve in curves.items():
        axis.plot(list(curve), [made.share if made else 0.0 for made in curve.values()], marker="o", label=score)
    for what, made in shipped.items():
        axis.plot([made.false], [made.share], marker="*", markersize=16, linestyle="", label=what)
    axis.set(xscale="log", xlabel="false alarms a series and month", ylabel="share of spans found", title=name)
    axis.legend()
    figure.savefig(out / f"told-{name}.png", dpi=80)
    plt.close(figure)

"""VUS-PR and AUC-PR, one production setting for all: cloud_monitoring (a metric each), ASD (machines of 19 metrics)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from models.numbers.arrays import Array
from pipelines.contracts.records.novelty import JOINED
from pipelines.contracts.settings import load
from pipelines.evaluation import bootstrap, show
from pipelines.evaluation.recorded import judge
from pipelines.evaluation.vus import auc_pr, period, vus_pr
from tests.benchmarks.measures import baselines, datasets

Scores = dict[str, dict[str, np.ndarray]]
"""Scores by series and method."""


def run(data: Path, out: Path) -> dict[str, Any]:
    """Judges both data sets, prints tables, writes ``out/vus.json``; returns the figures."""
    figures = {"cloud_monitoring": cloud(data / "cloud_monitoring"), "asd": asd(data / "asd")}
    show.write(out, "vus", figures)
    _plot(figures, out)
    return figures


def cloud(folder: Path) -> dict[str, Any]:
    known = datasets.cloud_monitoring(folder)
    with show.bar("cloud_monitoring") as progress:
        verdicts = judge(known.drop("label"), load().detector, progress)
    figures = {}
    for name, value, labels, own in labelled(known, verdicts):
        methods = {
            "ours": own["record_score"].to_numpy(),
            "ours: state_score": own["state_score"].to_numpy(),
            "windowed_gaussian": baselines.windowed_gaussian(value),
            "difference": baselines.difference(value),
            "random": np.random.default_rng(0).random(len(value)),
        }
        figures[name] = _measured(methods, labels, period(value))
    return _summary("cloud_monitoring", figures)


def labelled(known: pl.DataFrame, verdicts: pl.DataFrame) -> Iterator[tuple[str, Array, Array, pl.DataFrame]]:
    """Of each series with a label: its name, and of its rows with a value these, labels and verdicts."""
    for (name,), rows in known.group_by("entity", maintain_order=True):
        there = np.isfinite(rows["value"].fill_null(float("nan")).to_numpy())
        labels = rows["label"].to_numpy()[there]
        if labels.any():
            own = verdicts.filter(entity=name).filter(pl.Series(there))
            yield str(name), rows["value"].to_numpy()[there], labels, own


def of_machine(machine: datasets.Machine, verdicts: pl.DataFrame) -> pl.DataFrame:
    """The joined verdicts on the rows of a machine that have labels."""
    return verdicts.filter(entity=machine.name, metric=JOINED)[len(machine.train) :]


def asd(folder: Path) -> dict[str, Any]:
    figures = {}
    machines = datasets.asd(folder)
    with show.bar("ASD") as progress:
        verdicts = judge(pl.concat([machine.values() for machine in machines]), load().detector, progress)
    for machine in machines:
        joined = of_machine(machine, verdicts)
        methods = {
            "ours": joined["record_score"].to_numpy(),
            "ours: state_score": joined["state_score"].to_numpy(),
            "pca_residual": baselines.pca(machine.train, machine.test),
            "pca_weighted": baselines.pca_weighted(machine.train, machine.test),
            "averaged": baselines.averaged(machine.train, machine.test),
            "random": np.random.default_rng(0).random(len(machine.test)),
        }
        figures[machine.name] = _measured(methods, machine.labels, period(machine.test[:, 0]))
    return _summary("ASD", figures)


def _measured(methods: dict[str, np.ndarray], labels: np.ndarray, window: int) -> dict[str, dict[str, float]]:
    return {
        name: {"vus_pr": vus_pr(labels, scores, window), "auc_pr": auc_pr(labels, scores)}
        for name, scores in methods.items()
    }


def _summary(title: str, figures: dict[str, dict[str, dict[str, float]]]) -> dict[str, Any]:
    """Means, and ours beside each other method: paired difference and ratio with their 95 % intervals."""
    methods = list(next(iter(figures.values())))
    each = {name: np.array([series[name]["vus_pr"] for series in figures.values()]) for name in methods}
    rows: list[list[object]] = []
    against: dict[str, Any] = {}
    for name in methods:
        area = float(np.mean([series[name]["auc_pr"] for series in figures.values()]))
        row: list[object] = [name, float(each[name].mean()), area]
        if name != "ours":
            gap, ratio = bootstrap.paired(each["ours"], each[name]), bootstrap.ratio(each["ours"], each[name])
            against[name] = {"difference": vars(gap), "ratio": vars(ratio)}
            row += [f"{gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]"]
            row += [f"{ratio.mean:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"]
        rows.append(row)
    columns = ["method", "VUS-PR", "AUC-PR", "ours - it [95 %]", "ours / it [95 %]"]
    show.table(f"{title}: {len(figures)} series", columns, rows)
    return {"means": {str(row[0]): row[1] for row in rows}, "against": against, "series": figures}


def _plot(figures: dict[str, Any], out: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415  only when plots are drawn

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415  after the backend is chosen

    figure, axes = plt.subplots(len(figures), 1, figsize=(14, 5 * len(figures)), layout="constrained")
    for axis, (title, part) in zip(axes, figures.items(), strict=True):
        names = list(part["series"])
        for method in part["means"]:
            axis.plot([part["series"][name][method]["vus_pr"] for name in names], "o", label=method, alpha=0.7)
        axis.set_xticks(range(len(names)), names, rotation=60, fontsize=7)
        axis.set_ylabel("VUS-PR")
        axis.set_title(title, loc="left")
        axis.legend()
    figure.savefig(out / "vus.png", dpi=80)
    plt.close(figure)

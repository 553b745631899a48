"""NAB: all 58 series side by side through the production detection, scored by the benchmark's own rules."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from models.config import DetectorConfig
from models.model_config import ModelConfig
from pipelines.contracts.settings import DetectorSettings, load
from pipelines.evaluation import show
from pipelines.evaluation.recorded import judge
from pipelines.jobs.detectors.metrics.detection import Detection
from tests.benchmarks.measures import datasets, nab
from tests.benchmarks.measures.variations import variation

SHOWN = 6
"""Series plotted."""


def run(data: Path, out: Path, variations: int = 0) -> dict[str, Any]:
    """Judges, writes ``out/<category>/<file>.csv`` in NAB's layout, ``out/nab.json`` and plots; returns the figures."""
    settings, data = load().detector, data / "nab" if (data / "nab").exists() else data
    known = datasets.nab(data)
    with show.bar("NAB") as progress:
        verdicts = judge(known.values, settings, progress)
    scores = by_file(verdicts, known)
    _write(known, scores, out)
    rows = {"ours": scored(known, scores)}
    for reference in sorted((data / "reference_scores").glob("*.parquet")):
        rows[reference.stem] = scored(known, _reference(reference))
    figures: dict[str, Any] = {"scores": rows}
    names = [profile.name for profile in known.profiles]
    if variations:
        each = np.array([_varied(known, settings, seed, variations) for seed in range(1, variations + 1)])
        mean, deviation = each.mean(axis=0).tolist(), each.std(axis=0, ddof=1).tolist()
        figures["variations"] = {
            "count": variations,
            "names": names,
            "mean": mean,
            "sd": deviation,
            "each": each.tolist(),
        }
        rows[f"ours, {variations} random settings: mean"] = dict(zip(names, mean, strict=True))
        rows["... standard deviation"] = dict(zip(names, deviation, strict=True))
    show.table("NAB score, 0 to 100", ["detector", *names], [[name, *row.values()] for name, row in rows.items()])
    show.write(out, "nab", figures)
    _plot(known, verdicts, out)
    return figures


def _varied(known: datasets.Nab, settings: DetectorSettings, seed: int, count: int) -> list[float]:
    detection = Detection(settings, ModelConfig(series=variation(DetectorConfig(), seed)))
    with show.bar(f"NAB, setting {seed} of {count}") as progress:
        verdicts = judge(known.values, settings, progress, detection)
    return list(scored(known, by_file(verdicts, known)).values())


def by_file(verdicts: pl.DataFrame, known: datasets.Nab) -> dict[str, np.ndarray]:
    parts = verdicts.select("entity", "record_score").partition_by("entity", as_dict=True)
    return {file: parts[(file,)]["record_score"].to_numpy() for file in known.windows}


def scored(known: datasets.Nab, scores: Mapping[str, np.ndarray]) -> dict[str, float]:
    files = [nab.NabFile(scores[file], windows) for file, windows in known.windows.items()]
    return {profile.name: nab.evaluate(files, profile).score for profile in known.profiles}


def _reference(path: Path) -> dict[str, np.ndarray]:
    frame = pl.read_parquet(path).with_columns(pl.col("file").cast(pl.String)).sort("row")
    return {str(file): part["anomaly_score"].to_numpy() for (file,), part in frame.group_by("file")}


def _write(known: datasets.Nab, scores: Mapping[str, np.ndarray], out: Path) -> None:
    time = pl.from_epoch("time", time_unit="ms").dt.strftime("%Y-%m-%d %H:%M:%S")
    for (file,), rows in (
        known.values.select("entity", "value", timestamp=time).partition_by("entity", as_dict=True).items()
    ):
        path = out / str(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        rows.select("timestamp", "value", anomaly_score=pl.Series(scores[str(file)] / 100)).write_csv(path)


def _plot(known: datasets.Nab, verdicts: pl.DataFrame, out: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415  only when plots are drawn

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415  after the backend is chosen

    files = [file for file, windows in known.windows.items() if windows][:: max(1, 53 // SHOWN)][:SHOWN]
    figure, axes = plt.subplots(len(files), 1, figsize=(14, 2.6 * len(files)))
    figure.subplots_adjust(left=0.05, right=0.96, bottom=0.03, top=0.97, hspace=0.35)
    for axis, file in zip(axes, files, strict=True):
        rows = verdicts.filter(entity=file)
        row = np.arange(rows.height)
        axis.fill_between(row, rows["lower"], rows["upper"], color="tab:blue", alpha=0.2, linewidth=0)
        axis.plot(row, rows["actual"], color="black", linewidth=0.5)
        for first, last in known.windows[file]:
            axis.axvspan(first, last, color="tab:orange", alpha=0.3)
        score = axis.twinx()
        score.plot(row, rows["record_score"], color="tab:red", linewidth=0.6)
        score.set_ylim(0, 100)
        axis.set_title(file, loc="left", fontsize=9)
    figure.savefig(out / "nab.png", dpi=80)
    plt.close(figure)

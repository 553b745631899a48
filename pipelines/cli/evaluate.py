"""`newnormal evaluate`: verdicts against labels or a ground truth."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.console import Console
from rich.table import Table

from datagen.series import read_labels, read_series
from engine import kafka_content
from engine.errors import NewnormalError
from pipelines import topics
from pipelines.cli.options import Kafka, Namespace, StateDir, overrides
from pipelines.evaluation import show, truth
from pipelines.evaluation.judge import Judged, judge
from pipelines.evaluation.recorded import judge as scored
from pipelines.evaluation.truth import EVERY, Span
from pipelines.settings import DetectorSettings, Settings, load

_COLUMNS = (
    "window_start",
    "window_end",
    "entity",
    "metric",
    "actual",
    "typical",
    "lower",
    "upper",
    "record_score",
    "kind",
)
_SHOWN = (20, 35, 50, 65, 80, 95)


def evaluate(
    files: Annotated[list[Path] | None, typer.Argument(help="CSV files: series, or verdicts of `score`")] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option(help="Ground truth or operators' labels (JSON lines), or CSV with a label column"),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for evaluation.json and plots")] = Path("evaluation"),
    plots: Annotated[int, typer.Option(help="Series to plot at most")] = 12,
    threshold: Annotated[float | None, typer.Option(help="record_score from which a value is an anomaly")] = None,
    kafka: Kafka = None,
    namespace: Namespace = None,
    state_dir: StateDir = None,
) -> None:
    """Say how good the verdicts were: what was found and how soon, false alarms, threshold by threshold, with plots.

    With FILES: each is scored by the production detector (unless it holds verdicts already) and held against its own
    label column, or against --labels. Without: what the topic novelties holds, against the topics groundtruth and
    labels, or against --labels.
    """
    settings = load(**(overrides(kafka, None, state_dir, namespace) | {"detector.threshold": threshold}))
    verdicts, spans = _of_files(files, labels, settings.detector) if files else _of_topics(settings)
    if labels:
        entities = verdicts["entity"].unique().sort().to_list()
        spans = [span for path in labels for span in truth.read(path, entities)]
    if not spans:
        accepted = "a label column, --labels, or messages in the topics groundtruth or labels"
        raise NewnormalError(
            "TRUTH_ABSENT", "nothing is known of these series", "evaluate", accepted, "nothing was judged"
        )
    judged = judge(verdicts, spans)
    if not judged.spans:
        what = f"none of {len(spans)} spans lies within the time and the machines judged"
        raise NewnormalError("TRUTH_ELSEWHERE", what, "evaluate", "spans of the machines judged", "nothing was judged")
    show.write(out, "evaluation", judged.figures())
    _plots(verdicts, judged, out, plots)
    _tables(judged)
    Console(stderr=True).print(f"figures and plots are in {out}")


def _of_files(
    files: list[Path], labels: list[Path] | None, settings: DetectorSettings
) -> tuple[pl.DataFrame, list[Span]]:
    ready, values, spans = [], [], []
    for file in files:
        header = _header(file)
        if {"record_score", "time", "metric", "kind"} <= header:
            ready.append(_verdicts(file))
            continue
        if not labels:
            column = read_labels(file)
            spans += truth.of_column(column, file.stem) if column is not None else []
        series, _ = read_series(file, keep_missing=True)
        values.append(series.select("time", "metric", "value", entity=pl.lit(file.stem)))
    if values:
        with show.bar("scoring") as progress:
            ready.append(scored(pl.concat(values), settings, progress).select(_COLUMNS))
    return pl.concat(ready, how="diagonal_relaxed"), spans


def _header(file: Path) -> set[str]:
    try:
        with file.open() as lines:
            return set(lines.readline().strip().split(","))
    except (OSError, UnicodeDecodeError) as error:
        raise NewnormalError("SERIES_UNREADABLE", str(error), str(file), "a CSV file", "nothing was judged") from None


def _verdicts(file: Path) -> pl.DataFrame:
    frame = pl.read_csv(file, infer_schema_length=None)
    time = pl.col("time").str.to_datetime(time_unit="ms", time_zone="UTC").dt.epoch("ms")
    floats = [pl.col(name).cast(pl.Float64) for name in _COLUMNS[4:9]]
    return frame.select(
        time.alias("window_start"),
        time.alias("window_end"),
        pl.lit(file.stem).alias("entity"),
        "metric",
        *floats,
        "kind",
    )


def _of_topics(settings: Settings) -> tuple[pl.DataFrame, list[Span]]:
    from deploy.embedded.services import running
    from pipelines.sql import tables

    bootstrap = running(settings, elasticsearch=False).kafka.bootstrap or ""
    reader = tables.consumer(bootstrap)
    try:
        there = tables.known(reader, settings.namespace)
        if topics.NOVELTIES not in there:
            raise NewnormalError("TOPIC_UNKNOWN", f"there is no topic {topics.NOVELTIES}", bootstrap)
        told = kafka_content.values(bootstrap, settings.topic(topics.NOVELTIES))
        verdicts, _ = tables.frame(topics.NOVELTIES, told)
        known = [name for name in (topics.GROUNDTRUTH, topics.LABELS) if name in there]
        every = (kafka_content.values(bootstrap, settings.topic(name)) for name in known)
        lines = [line for some in every for line in some]
    finally:
        reader.close()
    latest = verdicts.sort("revision", maintain_order=True).unique(
        ["entity", "metric", "window_start", "window_end"], keep="last", maintain_order=True
    )
    spans, refused = truth.of_messages(lines)
    if refused:
        Console(stderr=True).print(f"{refused} messages of {', '.join(known)} could not be read and are left out")
    return latest.select(_COLUMNS), spans


def _plots(verdicts: pl.DataFrame, judged: Judged, out: Path, most: int) -> None:
    from pipelines.evaluation import plots

    plots.threshold(judged, out / "threshold.png")
    plots.delays(judged, out / "delays.png")
    pairs = [(s.entity, m) for s in judged.spans for m in (s.metrics if EVERY not in s.metrics else ())]
    everywhere = {span.entity for span in judged.spans if EVERY in span.metrics}
    found = (
        verdicts.filter(pl.col("entity").is_in(list(everywhere)))
        .select("entity", "metric")
        .unique()
        .sort("entity", "metric")
    )
    for entity, metric in list(dict.fromkeys([*pairs, *found.rows()]))[:most]:
        name = re.sub(r"[^\w.-]+", "_", f"{entity}-{metric}" if metric != EVERY else f"{entity}-all")
        plots.series(verdicts, judged.spans, entity, metric, out / f"series-{name}.png")


def _tables(judged: Judged) -> None:
    table = Table(title=f"{len(judged.spans)} spans", title_justify="left")
    for column in ("alerts", "found", "median delay", "alerts explained", "false alarms a series and day"):
        table.add_column(column, justify="left" if column == "alerts" else "right")
    for name, level in {"news": judged.news, **{f"score from {s}": judged.levels[s] for s in _SHOWN}}.items():
        row = level.figures()
        shown = (row["found"], row["median_delay_windows"], row["alerts_explained"], row["false_alarms_per_series_day"])
        table.add_row(name, *("-" if value is None else f"{value:.3g}" for value in shown))
    console = Console(stderr=True)
    console.print(table)
    figures = judged.figures()
    for what, part in (("ranking", figures["ranking"]["mean"]), ("kinds", figures["called"])):
        told = ", ".join(f"{name} {value:.3f}" for name, value in part.items() if value is not None)
        console.print(f"{what}: {told or 'nothing to compare'}")

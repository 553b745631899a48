"""`newnormal evaluate`: compares verdicts with labels or a ground truth."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.console import Console
from rich.table import Table

from datagen.series import Reading, files_of, names_of, read_files, read_labels
from engine.kafka import content as kafka_content
from engine.printing import cell, visible_lines
from engine.spec.errors import NewnormalError
from pipelines.cli.csv_options import ReadingOptions, reads_files
from pipelines.cli.options import Overrides, with_kafka
from pipelines.cli.output_files import folder_to_write
from pipelines.contracts import topics
from pipelines.contracts.settings import DetectorSettings, Settings, load
from pipelines.evaluation import show, truth
from pipelines.evaluation.comparison.words import figure
from pipelines.evaluation.judge import JudgedTimes, JudgedVerdicts, judge
from pipelines.evaluation.stored import sparse
from pipelines.evaluation.truth import EVERY, Span

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
_SPARSE = (
    "The topic holds verdicts around incidents only (detector.emit). Windows without one count as quiet; series "
    "without any are not counted, and scores are ranked among the stored windows. With detector.emit = all the "
    "detector writes all of them; `newnormal compare` measures a version that is replayed so."
)
_SHOWN = (20, 35, 50, 65, 80, 95)


@reads_files
@with_kafka
def evaluate(
    overrides: Overrides,
    how: ReadingOptions,
    files: Annotated[list[Path] | None, typer.Argument(help="CSV files: series, or verdicts of `score`")] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option(help="Files of ground truth or of operators' labels (JSON lines), or CSV with a label column"),
    ] = None,
    out: Annotated[Path, typer.Option(callback=folder_to_write, help="Folder for evaluation.json and plots")] = Path(
        "evaluation"
    ),
    plots: Annotated[int, typer.Option(help="Most series that are plotted")] = 12,
    threshold: Annotated[float | None, typer.Option(help="record_score from which a value is an anomaly")] = None,
) -> None:
    """Measure how good verdicts are: what was found and how soon, and false alarms, for each threshold, with plots.

    With FILES, the production detector scores each file (unless it already holds verdicts); the verdicts are compared
    with the file's own label column, or with --labels. Without FILES, the verdicts of the topic novelties are compared
    with the topics groundtruth and labels, or with --labels.
    """
    own = {"detector.threshold": threshold, "detector.timezone": how.timezone}
    settings = load(**(overrides | own))
    if files:
        verdicts, spans = _of_files(files_of(files), how.reading, settings.detector, labelled=not labels)
        time = None
    else:
        verdicts, spans, time = _of_topics(settings)
    if labels:
        entities = verdicts["entity"].unique().sort().to_list()
        spans = [span for path in labels for span in truth.read(path, entities)]
    if not spans:
        accepted = "a label column, --labels, or messages in the topics groundtruth or labels"
        raise NewnormalError(
            "TRUTH_ABSENT", "there are no labels of these series", "evaluate", accepted, "nothing was evaluated"
        )
    judgement = judge(verdicts, spans, time)
    if not judgement.spans:
        what = f"none of {len(spans)} labelled spans overlaps the machines and times of the verdicts"
        accepted = "labels of machines and times that have verdicts"
        raise NewnormalError("TRUTH_ELSEWHERE", what, "evaluate", accepted, "nothing was evaluated")
    show.write(out, "evaluation", judgement.figures())
    _plots(verdicts, judgement, out, plots)
    _tables(judgement)
    Console(stderr=True, soft_wrap=True).print(cell(f"figures and plots are in {out}"))


def _of_files(
    files: list[Path], reading: Reading, settings: DetectorSettings, *, labelled: bool
) -> tuple[pl.DataFrame, list[Span]]:
    """Verdicts on the values of files, and the labelled spans of these files.

    Args:
        files: CSV files of values, or of verdicts as `newnormal score` writes them; the latter are used as they are.
        reading: How the files are read.
        settings: Settings of the detector.
        labelled: True if the files' own label columns are read; else no spans are returned.
    """
    named = zip(files, names_of(files), strict=True)
    ready = {file: _verdicts(file, name) for file, name in named if _holds_verdicts(file)}
    parts, spans = list(ready.values()), []
    recorded = [file for file in files if file not in ready]
    if recorded:
        from pipelines.evaluation.on_cores import judge_on_cores as scored  # it loads the models

        series, reports = read_files(recorded, reading, keep_missing=True)
        console = Console(stderr=True, soft_wrap=True)
        for file, name, report in zip(recorded, names_of(recorded), reports, strict=True):
            console.print(visible_lines(str(report)), markup=False, highlight=False)
            column = read_labels(file, reading) if labelled and not report.failure else None
            spans += truth.of_column(column, reading.entity or name) if column is not None else []
        with show.bar("scoring", "values") as progress:
            parts.append(
                scored(series.select("time", "entity", "metric", "value"), settings, progress).select(_COLUMNS)
            )
    return pl.concat(parts, how="diagonal_relaxed"), spans


def _holds_verdicts(file: Path) -> bool:
    """True if a file holds verdicts as `newnormal score` writes them."""
    try:
        with file.open(encoding="utf-8", errors="replace") as lines:
            return {"record_score", "time", "metric", "kind"} <= set(lines.readline(10_000).strip().split(","))
    except OSError:
        return False  # the file is then read as a series, which reports the error


def _verdicts(file: Path, name: str) -> pl.DataFrame:
    try:
        frame = pl.read_csv(file, infer_schema_length=None)
        time = pl.col("time").str.to_datetime(time_unit="ms", time_zone="UTC").dt.epoch("ms")
        floats = [pl.col(column).cast(pl.Float64) for column in _COLUMNS[4:9]]
        entity = pl.col("entity").cast(pl.String) if "entity" in frame.columns else pl.lit(name).alias("entity")
        return frame.select(
            time.alias("window_start"),
            time.alias("window_end"),
            entity,
            pl.col("metric", "kind").cast(pl.String),
            *floats,
        ).select(_COLUMNS)
    except (OSError, pl.exceptions.PolarsError) as error:
        accepted = "a file of verdicts as `newnormal score` writes it"
        what = str(error).splitlines()[0]
        raise NewnormalError("SERIES_UNREADABLE", what, str(file), accepted, "nothing was evaluated") from None


def _of_topics(settings: Settings) -> tuple[pl.DataFrame, list[Span], JudgedTimes]:
    """The final verdicts of the topic, the labelled spans, and the time that was judged."""
    from deploy.embedded.services import running  # Kafka: only when topics are read
    from pipelines.query import tables  # Kafka: only when topics are read

    bootstrap = running(settings, elasticsearch=False).kafka.bootstrap or ""
    reader = tables.consumer(bootstrap)
    try:
        there = tables.topic_names(reader, settings.namespace)
        if topics.NOVELTIES not in there:
            raise NewnormalError("TOPIC_UNKNOWN", f"there is no topic {topics.NOVELTIES}", bootstrap)
        messages = kafka_content.values(bootstrap, settings.topic(topics.NOVELTIES))
        verdicts, _ = tables.frame(topics.NOVELTIES, messages)
        sources = [name for name in (topics.GROUNDTRUTH, topics.LABELS) if name in there]
        contents = (kafka_content.values(bootstrap, settings.topic(name)) for name in sources)
        lines = [line for some in contents for line in some]
    finally:
        reader.close()
    latest = verdicts.sort("revision", maintain_order=True).unique(
        ["entity", "metric", "window_start", "window_end"], keep="last", maintain_order=True
    )
    spans, refused = truth.of_messages(lines)
    if refused:
        left_out = f"{refused} messages of {', '.join(sources)} could not be read and are left out"
        Console(stderr=True).print(cell(left_out))
    missing = sparse(latest, settings.detector.emit)
    if missing:
        Console(stderr=True, soft_wrap=True).print(_SPARSE, highlight=False)
    return latest.select(_COLUMNS), spans, JudgedTimes.of(latest, sparse=missing)


def _plots(verdicts: pl.DataFrame, figures: JudgedVerdicts, out: Path, most: int) -> None:
    from pipelines.evaluation import plots  # Matplotlib: only when plots are asked for

    plots.threshold(figures, out / "threshold.png")
    plots.delays(figures, out / "delays.png")
    pairs = [(s.entity, m) for s in figures.spans for m in (s.metrics if EVERY not in s.metrics else ())]
    everywhere = {span.entity for span in figures.spans if EVERY in span.metrics}
    rows = verdicts.filter(pl.col("entity").is_in(list(everywhere))).select("entity", "metric").unique().sort(pl.all())
    for entity, metric in list(dict.fromkeys([*pairs, *rows.rows()]))[:most]:
        name = re.sub(r"[^\w.-]+", "_", f"{entity}-{metric}" if metric != EVERY else f"{entity}-all")
        plots.series(verdicts, figures.spans, entity, metric, out / f"series-{name}.png")


def _tables(verdicts: JudgedVerdicts) -> None:
    table = Table(title=f"{len(verdicts.spans)} labelled spans", title_justify="left")
    for column in ("alerts", "found", "median delay (windows)", "alerts explained", "false alarms per series and day"):
        table.add_column(column, justify="left" if column == "alerts" else "right")
    for name, level in {"news": verdicts.news, **{f"score from {s}": verdicts.levels[s] for s in _SHOWN}}.items():
        row = level.figures()
        shown = (row["found"], row["median_delay_windows"], row["alerts_explained"], row["false_alarms_per_series_day"])
        table.add_row(name, *map(figure, shown))
    console = Console(stderr=True)
    console.print(table)
    figures = verdicts.figures()
    for what, part in (("ranking", figures["ranking"]["mean"]), ("kinds", figures["called"])):
        values = ", ".join(f"{name} {value:.3f}" for name, value in part.items() if value is not None)
        console.print(f"{what}: {values or 'nothing to compare'}")

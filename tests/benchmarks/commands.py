"""The benchmarks as commands: `newnormal bench` hands its command line over to them."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Annotated

import typer

from deploy.embedded.external import check_kafka
from engine.spec.errors import NewnormalError
from pipelines.cli.options import Kafka, StateDir
from pipelines.cli.output_files import file_to_write, folder_to_write
from pipelines.contracts.settings import load
from pipelines.plan.coefficients import SHIPPED

app = typer.Typer(help="Measure speed and accuracy; docs/benchmarks.md holds earlier figures.", no_args_is_help=True)
_WITH_OUTPUT_OF_THEIR_OWN = ("nab", "vus", "kinds", "told", "causes", "ablation")


def _folder_to_read(path: Path | None) -> Path | None:
    """Checks that a folder of recorded data is there, before a process is started for it.

    Raises:
        NewnormalError: ``FILE_UNUSABLE``.
    """
    if path is not None and not path.is_dir():
        raise NewnormalError("FILE_UNUSABLE", f"{path} is no folder", "option --data", "a folder with the data sets")
    return path


Report = Annotated[Path | None, typer.Option(callback=file_to_write, help="Write the figures to this JSON file.")]


@app.command()
def throughput(
    records: Annotated[int, typer.Option(help="Records of the measured load.")] = 6_000_000,
    keys: Annotated[int, typer.Option(help="Series that the records are spread over.")] = 10_000,
    out: Report = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Measure extractor and normalizer beside a hand-written Structured Streaming job, and compare their outputs."""
    _run("throughput", out, records, keys, _answering(kafka, state_dir), state_dir)


@app.command()
def replay(
    records: Annotated[int, typer.Option(help="Records that the extractor reads.")] = 12_000_000,
    keys: Annotated[int, typer.Option(help="Series that the records are spread over.")] = 10_000,
    chain_records: Annotated[int, typer.Option(help="Records that the whole chain reads.")] = 3_000_000,
    out: Report = None,
) -> None:
    """Measure replays: the extractor beside its rate in a warm session, the chain beside its detector alone."""
    _run("replay", out, records, keys, chain_records)


@app.command()
def cluster(
    records: Annotated[int, typer.Option(help="Records of the load.")] = 4_000_000,
    keys: Annotated[int, typer.Option(help="Series that the records are spread over.")] = 10_000,
    turns: Annotated[int, typer.Option(min=1, help="How often each is measured, in turn.")] = 2,
    out: Report = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Measure normalizer and extractor on two Spark workers of one core, beside a local Spark with two cores."""
    _run("cluster", out, records, keys, turns, _answering(kafka, state_dir), state_dir)


@app.command()
def checkpoints(
    records: Annotated[int, typer.Option(help="Records of each run.")] = 6_000_000,
    keys: Annotated[int, typer.Option(help="Series that the records are spread over.")] = 100_000,
    out: Report = None,
) -> None:
    """Measure what checkpoints cost the extractor: by Spark's own times, and beside a checkpoint in memory."""
    _run("checkpoints", out, records, keys)


@app.command()
def savepoints(
    series: Annotated[int, typer.Option(help="Series whose state is kept.")] = 100_000,
    out: Report = None,
) -> None:
    """Measure a savepoint while the jobs run, and the time from kill -9 of the driver to its next result."""
    _run("savepoints", out, series)


@app.command()
def sink(
    documents: Annotated[int, typer.Option(min=150_000, help="Number of documents.")] = 500_000,
    out: Report = None,
) -> None:
    """Measure how fast documents are stored in Elasticsearch: by the sink alone, and by its job from Kafka."""
    _run("sink", out, documents)


@app.command()
def latency(
    rate: Annotated[int, typer.Option(help="Records a second.")] = 20_000,
    seconds: Annotated[int, typer.Option(help="Length of the measured part.")] = 60,
    out: Report = None,
    state_dir: StateDir = None,
) -> None:
    """Measure the latency of the whole chain under a steady load.

    The time is measured from the end of a window plus the watermark's bound, to the feature record, and to the document
    that a search can find.
    """
    _run("latency", out, rate, seconds, state_dir)


@app.command()
def soak(
    series: Annotated[int, typer.Option(help="Series of the site.")] = 100_000,
    minutes: Annotated[float, typer.Option(min=2, help="Length of the measured part; 5 minutes come before.")] = 30.0,
    log: Annotated[Path | None, typer.Option(callback=folder_to_write, help="Folder for rates and memory.")] = None,
    out: Report = None,
) -> None:
    """Measure whether all jobs hold their rate on a large site that stores context only, and with how much memory."""
    _run("soak", out, series, minutes, log)


@app.command()
def view(
    series: Annotated[int, typer.Option(help="Series in the view.")] = 1_000_000,
    rate: Annotated[int, typer.Option(help="States a second that are updated meanwhile.")] = 20_000,
    seconds: Annotated[int, typer.Option(help="Length of each measured part.")] = 20,
    out: Report = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Measure how fast the state view answers, in process and over HTTP, while its states are updated."""
    _run("view", out, series, rate, seconds, _answering(kafka, state_dir), state_dir)


@app.command()
def gateway(
    series: Annotated[int, typer.Option(min=2_000, help="Series that are pushed, a multiple of 2,000.")] = 100_000,
    seconds: Annotated[int, typer.Option(help="Length of each measured part.")] = 15,
    out: Report = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Measure how many samples a second the gateway takes until Kafka has acknowledged them, for each protocol.

    The load comes from this machine and goes to its loopback address only.
    """
    _run("gateway", out, series, seconds, _answering(kafka, state_dir), state_dir)


@app.command()
def logs(
    lines: Annotated[int, typer.Option(help="Log lines.")] = 400_000,
    machines: Annotated[int, typer.Option(help="Machines that write the lines.")] = 1_000,
    data: Annotated[
        Path | None,
        typer.Option(
            callback=_folder_to_read, help="Folder of recorded logs with true templates, or one that holds loghub/."
        ),
    ] = None,
    out: Report = None,
) -> None:
    """Measure log lines per second on one core, and the templates of recorded logs.

    Four parts are timed: JSON to columns, masking, the job that mines templates, and lines without a known template.
    With --data: for each system the grouping accuracy, the kinds of lines that were new without being so, and the
    time a line.
    """
    _run("logs", out, lines, machines, data)


@app.command()
def engine(
    part: Annotated[
        list[str] | None, typer.Option(help="windows, process, sliding or growth; repeatable. Default: all.")
    ] = None,
    keys: Annotated[
        list[int] | None, typer.Option(help="Number of series; repeatable. Default: 10,000 and then 100,000.")
    ] = None,
    records: Annotated[
        int | None, typer.Option(help="Records of each load. Default: each part has its own number.")
    ] = None,
    out: Report = None,
    plot: Annotated[
        Path | None, typer.Option(callback=file_to_write, help="Write a plot of the growth of state and time here.")
    ] = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Measure the engine beside jobs written by hand: windows, a stateful process, sliding windows.

    The part growth measures how state and time grow with the number of keys.
    """
    _run("engine", out, part or None, keys or None, records, _answering(kafka, state_dir), state_dir, plot)


@app.command()
def model(
    series: Annotated[int, typer.Option(help="Series judged together.")] = 10_000,
    seconds: Annotated[float, typer.Option(help="Length of the measured part.")] = 20.0,
    windows: Annotated[int, typer.Option(help="Windows of each series in one call: more than 1 is a history.")] = 1,
    out: Report = None,
) -> None:
    """Measure the model alone: values judged and learned per second on one core, and bytes of state per series."""
    _run("model", out, series, seconds, windows)


@app.command()
def detector(
    keys: Annotated[int, typer.Option(help="Number of series; each machine has ten.")] = 10_000,
    windows: Annotated[int, typer.Option(help="Windows of each series.")] = 240,
    out: Report = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Measure the detector on Spark beside the models alone, and compare their verdicts.

    The detector reads columnar features; it is measured once writing all verdicts, and once writing only novelties.
    """
    _run("detector", out, keys, windows, _answering(kafka, state_dir), state_dir)


@app.command()
def shard(
    keys: Annotated[int, typer.Option(help="Number of series; half of them are in the shard.")] = 10_000,
    windows: Annotated[int, typer.Option(help="Windows of each series.")] = 60,
    batch: Annotated[int, typer.Option(help="Windows of a micro-batch.")] = 20,
    emit: Annotated[str, typer.Option(help="The setting detector.emit: all, context or novel.")] = "all",
    outliers: Annotated[float, typer.Option(help="Share of the values that are outliers.")] = 0.001,
    out: Report = None,
) -> None:
    """Measure one shard of the detector job without Spark: CPU time per row of decoding, operator and messages."""
    _run("shard", out, keys, windows, batch, emit, outliers)


@app.command()
def slices(
    keys: Annotated[list[int] | None, typer.Option(help="Numbers of keys; once for each.")] = None,
    count: Annotated[int, typer.Option(min=2, help="Slices of each window.")] = 1440,
    compared: Annotated[int, typer.Option(min=1, help="Keys with which both ways are compared.")] = 50,
    out: Report = None,
) -> None:
    """Measure a live minute of sliding windows of many slices, beside the same windows kept one by one."""
    _run("slices", out, keys, count, compared)


@app.command()
def large(
    keys: Annotated[int, typer.Option(min=1_000, help="Number of series; half of them are in the shard.")] = 100_000,
    emit: Annotated[str, typer.Option(help="The setting detector.emit: all, context or novel.")] = "novel",
    out: Report = None,
) -> None:
    """Measure one shard of extractor and detector: a micro-batch that touches 1 % of the series beside one of all."""
    _run("large", out, keys, emit)


@app.command()
def plan(
    records: Annotated[
        int, typer.Option(min=1_000_000, help="Records of each load of extractor and normalizer.")
    ] = 4_000_000,
    documents: Annotated[int, typer.Option(min=150_000, help="Documents that the sink stores.")] = 300_000,
    lines: Annotated[int, typer.Option(min=10_000, help="Log lines.")] = 200_000,
    out: Annotated[
        Path, typer.Option(callback=file_to_write, help="File of coefficients; the default ships with the package.")
    ] = SHIPPED,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Measure the coefficients of [bold]newnormal plan[/bold], at two numbers of series, by the other benchmarks."""
    _run("plan", out, records, documents, lines, _answering(kafka, state_dir), state_dir)


Data = Annotated[
    Path, typer.Option(callback=_folder_to_read, help="Folder of the data sets: nab/, cloud_monitoring/, asd/.")
]
Out = Annotated[
    Path, typer.Option(callback=folder_to_write, help="Folder for results: figures as JSON, plots, scores.")
]


@app.command()
def nab(
    data: Data,
    out: Out,
    variations: Annotated[int, typer.Option(help="Random settings around the chosen ones to judge as well.")] = 0,
) -> None:
    """Score the detector on NAB by its official rules; also write OUT/<category>/<file>.csv, NAB's own layout."""
    _run("nab", None, data, out, variations)


@app.command()
def vus(data: Data, out: Out) -> None:
    """Measure VUS-PR and AUC-PR on cloud_monitoring and ASD, beside simple detectors, with bootstrap intervals."""
    _run("vus", None, data, out)


@app.command()
def told(
    data: Data,
    out: Out,
    only: Annotated[
        list[str] | None,
        typer.Option(help="web_kpis, nab, cloud_monitoring or asd; repeatable. Default: all that are there."),
    ] = None,
) -> None:
    """Measure what anomalies and incidents tell of recorded series: spans found, delay, false ones, severities.

    False ones are counted a series and month, and a week for a site of all series, beside what was promised. Beside
    it stands what simple scores, one line of arithmetic among them, would find with as many false alarms.
    """
    _run("told", None, data, out, only or None)


@app.command()
def causes(data: Data, out: Out) -> None:
    """Measure how often incidents name where a recorded fault of services with a call graph began: petshop, nezha.

    Beside it stand two simple rankings of the same machines, how often it is said that none of them is the cause, and
    how often shares are right.
    """
    _run("causes", None, data, out)


@app.command()
def wide(
    metrics: Annotated[int, typer.Option(min=64, help="Metrics of each machine.")] = 200,
    machines: Annotated[int, typer.Option(min=1, help="Machines of each kind.")] = 4,
    width: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Metrics of a machine whose cost is measured; repeatable. Default: 10 to 400."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 1,
    out: Report = None,
) -> None:
    """Measure simulated machines of many metrics: how well breaks are found, and CPU time and state by metrics."""
    _run("wide", out, metrics, machines, width or (10, 32, 64, 200, 400), seed)


@app.command()
def kinds(
    out: Out,
    entities: Annotated[int, typer.Option(help="Number of machines; a fifth of them are hosts.")] = 200,
    weeks: Annotated[int, typer.Option(help="Weeks of event time.")] = 6,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 101,
) -> None:
    """Measure on a simulated site how well anomalies and new normals are told apart.

    The figures are: share of injections found, delay, false alarms, confusion of the kinds, and acceptance of new
    levels.
    """
    _run("kinds", None, out, entities, weeks, seed)


@app.command()
def incidents(
    entities: Annotated[int, typer.Option(min=10, help="Number of machines; a fifth of them are hosts.")] = 25,
    weeks: Annotated[int, typer.Option(min=2, help="Weeks of event time.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 1,
    out: Report = None,
) -> None:
    """Measure on a simulated site how many incidents hold exactly one event, with and without a topology."""
    _run("incidents", out, entities, weeks, seed)


@app.command()
def ablation(
    data: Data,
    out: Out,
    datasets: Annotated[
        str, typer.Option(help="Of nab, cloud_monitoring, asd, kinds, with commas between them. Default: all.")
    ] = "",
    only: Annotated[
        str, typer.Option(help="Constants, or how they begin, such as series.weight,regimes. Default: all.")
    ] = "",
    noise: Annotated[int, typer.Option(min=2, help="Random settings whose spread is the noise.")] = 8,
) -> None:
    """Measure what each constant of the models is worth: accuracy with it halved, doubled and its mechanism off.

    OUT/ablation.jsonl keeps each result: a run that was stopped goes on where it was. Two runs with different data sets
    may share a folder.
    """
    _run("ablation", None, data, out, datasets, only, noise)


@app.command()
def decoders(
    records: Annotated[int, typer.Option(help="Samples or log lines of each format.")] = 100_000,
    formats: Annotated[str, typer.Option(help="Names of formats with commas between them. Default: all.")] = "",
    out: Report = None,
) -> None:
    """Measure how fast each input format is decoded, in samples or log lines a second of one core's CPU time."""
    _run("decoders", out, records, formats)


@app.command()
def calibration(
    series: Annotated[int, typer.Option(help="Series of each family.")] = 500,
    windows: Annotated[int, typer.Option(help="Windows of each series that are measured.")] = 2000,
    warm: Annotated[int, typer.Option(help="Windows of each series that are learned before.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the values.")] = 1,
    out: Report = None,
) -> None:
    """Measure calibration: how often each stated probability really occurs on stationary series of each family."""
    _run("calibration", out, series, windows, warm, seed)


def _answering(kafka: str | None, state_dir: Path | None) -> str | None:
    """Checks that the broker of the command line or of the settings answers, if one is named; returns ``kafka``.

    Raises:
        NewnormalError: ``SETTING_INVALID``, or ``KAFKA_UNREACHABLE`` if the broker does not answer.
    """
    bootstrap = load(**{"kafka.bootstrap": kafka, "state_dir": state_dir}).kafka.bootstrap
    if bootstrap:
        check_kafka(bootstrap)
    return kafka


def _run(name: str, report: Path | None, *arguments: object) -> None:
    """Runs a benchmark; prints and writes the figures of those that have no output of their own.

    Args:
        name: Name of the benchmark's module.
        report: File to which its figures are written.
        arguments: Arguments of its function ``run``.
    """
    figures = importlib.import_module(f"tests.benchmarks.{name}").run(*arguments)
    if name not in _WITH_OUTPUT_OF_THEIR_OWN:
        text = json.dumps(figures, indent=2)
        if report:
            report.write_text(text + "\n", encoding="utf-8")
        typer.echo(text)
